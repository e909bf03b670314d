//! How much of a source tree the C front end understands, folder by folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use clap::Args;

/// Folders that must be understood.
const FOLDERS: &[&str] = &["fs", "net", "kernel", "mm", "drivers"];

/// Functions lost or damaged, in hundredths of a percent, that are still good.
const LIMIT: u64 = 70;

#[derive(Debug, Args)]
pub(crate) struct ScanParseCheck {
    /// An unpacked linux-source-6.1.
    #[arg(long)]
    tree: PathBuf,
}

impl ScanParseCheck {
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        println!("| folder | functions | in part | not at all | together |\n|---|---|---|---|---|");
        let mut bad = Vec::new();
        for folder in FOLDERS {
            let (functions, damaged, lost) = self.measure(folder)?;
            let share = (damaged + lost) * 10_000 / functions.max(1);
            println!(
                "| {folder} | {functions} | {damaged} | {lost} | {}.{:02} % |",
                share / 100,
                share % 100
            );
            if share > LIMIT {
                bad.push(*folder);
            }
        }
        anyhow::ensure!(
            bad.is_empty(),
            "more than 0.7 % of functions were not understood in {}",
            bad.join(", ")
        );
        Ok(())
    }

    fn measure(&self, folder: &str) -> anyhow::Result<(u64, u64, u64)> {
        let manifest = crate::shell::root().join("Cargo.toml");
        let path = self.tree.join(folder);
        let output = Command::new("cargo")
            .args(["run", "--quiet", "--release", "--manifest-path"])
            .arg(manifest)
            .args([
                "-p",
                "raddle-scan",
                "--example",
                "measure",
                "--",
                "single",
                "missing-barrier",
            ])
            .arg(&path)
            .output()
            .context("cannot run cargo")?;
        anyhow::ensure!(
            output.status.success(),
            "scanning {} failed: {}",
            path.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        let value: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let number = |key: &str| value[key].as_u64().unwrap_or(0);
        Ok((number("functions"), number("damaged"), number("lost")))
    }
}
