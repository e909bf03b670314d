//! Table 4 of the paper for our scanner, the speed over trees, and Coccinelle's lock checks beside it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use clap::Args;

pub(super) const LEVELS: &[(&str, &str)] = &[
    ("single", "one sub-pattern"),
    ("subs", "all sub-patterns"),
    ("locks", "+ paths, locks"),
    ("full", "+ aliases"),
];

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// What each analysis brings, speed and memory.
    Speed,
    /// How many of the real fixes that patterns were written with are found once they are undone.
    Tuned,
    /// The same for fixes that were not looked at while patterns were written.
    HeldOut,
    /// Tables 1 to 5 of the paper.
    Tables,
}

#[derive(Debug, Args)]
pub(crate) struct Scan {
    #[arg(value_enum, default_value_t = What::Speed)]
    what: What,
    /// An unpacked linux-source-6.1.
    #[arg(long)]
    pub(super) tree: PathBuf,
    /// Part of the tree for the ablation.
    #[arg(long, default_value = "fs")]
    part: String,
    /// Part of the tree for Coccinelle, which is slower by far.
    #[arg(long, default_value = "fs")]
    coccinelle_part: String,
    /// Seconds after which a Coccinelle script is stopped.
    #[arg(long, default_value_t = 460)]
    coccinelle_limit: u64,
    /// Measure the whole tree as well (about a minute and 3 GiB).
    #[arg(long)]
    whole: bool,
}

#[derive(Debug)]
pub(super) struct Measured {
    pub(super) value: serde_json::Value,
}

impl Measured {
    pub(super) fn number(&self, key: &str) -> u64 {
        self.value[key].as_u64().unwrap_or(0)
    }

    pub(super) fn seconds(&self) -> String {
        hundredths(self.number("cpu_ms") / 10)
    }
}

pub(super) fn hundredths(value: u64) -> String {
    format!("{}.{:02}", value / 100, value % 100)
}

impl Scan {
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self.what {
            What::Speed => {}
            What::Tuned => return self.recall("tuned"),
            What::HeldOut => return self.recall("held-out"),
            What::Tables => {
                build("measure")?;
                build("statistics")?;
                return super::scan_tables::run(self, self.whole);
            }
        }
        build("measure")?;
        let names: Vec<&str> = LEVELS.iter().map(|(_, name)| *name).collect();
        println!("| pattern | {} |", names.join(" | "));
        println!("|---|{}", "---|".repeat(LEVELS.len()));
        for pattern in self.patterns()? {
            let mut row = vec![pattern.clone()];
            for (level, _) in LEVELS {
                let measured = self.measure(level, &pattern, &self.part)?;
                row.push(format!(
                    "{} ({} s, {} MiB)",
                    measured.number("reports"),
                    measured.seconds(),
                    measured.number("peak_kib") / 1024
                ));
            }
            println!("| {} |", row.join(" | "));
        }
        println!();
        self.speed()?;
        self.coccinelle()
    }

    /// Undoes the fixes of one list and prints which of them are reported.
    fn recall(&self, list: &str) -> anyhow::Result<()> {
        build("recall")?;
        let program = example("recall")?;
        let fixes = format!("crates/scan/test_data/fixes/{list}.toml");
        let status = Command::new(&program)
            .arg(fixes)
            .arg(&self.tree)
            .status()
            .with_context(|| format!("cannot run {}", program.display()))?;
        anyhow::ensure!(status.success(), "the fixes could not be undone");
        Ok(())
    }

    /// The names of the shipped patterns, in the order of the scanner.
    fn patterns(&self) -> anyhow::Result<Vec<String>> {
        let listed = self.measure("single", "all", "scripts/mod")?;
        let patterns = listed.value["patterns"]
            .as_object()
            .context("the measuring program names no patterns")?;
        Ok(patterns.keys().cloned().collect())
    }

    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn speed(&self) -> anyhow::Result<()> {
        println!(
            "| what | files | lines | CPU s | peak MiB | entries | saved by the cache |\n|---|---|---|---|---|---|---|"
        );
        let mut runs = vec![
            ("full", self.part.as_str()),
            ("uncached", self.part.as_str()),
            ("locks", self.part.as_str()),
        ];
        if self.whole {
            runs.push(("full", "."));
        }
        for (level, part) in runs {
            let measured = self.measure(level, "all", part)?;
            println!(
                "| {part}, all patterns{} | {} | {} | {} | {} | {} | {} |",
                match level {
                    "uncached" => ", no lock cache",
                    "locks" => ", no aliases",
                    _ => "",
                },
                measured.number("files"),
                measured.number("lines"),
                measured.seconds(),
                measured.number("peak_kib") / 1024,
                measured.number("visits"),
                measured.number("hits"),
            );
        }
        println!();
        Ok(())
    }

    pub(super) fn measure(
        &self,
        level: &str,
        pattern: &str,
        part: &str,
    ) -> anyhow::Result<Measured> {
        let program = example("measure")?;
        let output = Command::new(&program)
            .args([level, pattern, part])
            .current_dir(&self.tree)
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        anyhow::ensure!(
            output.status.success(),
            "measuring {level} {pattern} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let value = serde_json::from_slice(&output.stdout)?;
        Ok(Measured { value })
    }

    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn coccinelle(&self) -> anyhow::Result<()> {
        let ours = self.measure("full", "all", &self.coccinelle_part)?;
        println!(
            "| on {} | reports | CPU s |\n|---|---|---|",
            self.coccinelle_part
        );
        println!(
            "| raddle, {} patterns | {} | {} |",
            ours.value["patterns"]
                .as_object()
                .map_or(0, serde_json::Map::len),
            ours.number("reports"),
            ours.seconds()
        );
        if !crate::shell::has("spatch") {
            println!("\nCoccinelle is not installed (Debian package coccinelle).");
            return Ok(());
        }
        for script in ["call_kern", "double_lock", "flags", "mini_lock"] {
            let command = format!(
                "set -o pipefail; TIMEFORMAT='%U %S'; time timeout {limit} spatch -D report --no-show-diff --very-quiet --no-includes \
                 --include-headers --cocci-file scripts/coccinelle/locks/{script}.cocci {part} 2>/dev/null | wc -l",
                limit = self.coccinelle_limit,
                part = self.coccinelle_part
            );
            let output = Command::new("bash")
                .args(["-c", &command])
                .current_dir(&self.tree)
                .output()?;
            let times = String::from_utf8_lossy(&output.stderr).into_owned();
            let seconds: f64 = times
                .split_whitespace()
                .filter_map(|word| word.parse::<f64>().ok())
                .sum();
            let reports = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let stopped = if output.status.success() {
                String::new()
            } else {
                format!(", stopped after {} s", self.coccinelle_limit)
            };
            println!("| Coccinelle {script} | {reports} | {seconds:.2}{stopped} |");
        }
        Ok(())
    }
}

fn build(name: &str) -> anyhow::Result<()> {
    crate::shell::run(
        "cargo",
        &[
            "build",
            "--quiet",
            "--release",
            "-p",
            "raddle-scan",
            "--example",
            name,
        ],
    )
}

pub(super) fn example(name: &str) -> anyhow::Result<PathBuf> {
    let program = crate::shell::target_folder()
        .join("release/examples")
        .join(name);
    anyhow::ensure!(program.is_file(), "{} was not built", program.display());
    Ok(program)
}
