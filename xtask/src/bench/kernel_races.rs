//! `cargo xtask bench kernel-races`: real races of Linux, brought back one by one by undoing their fixes.
//!
//! The kernel is built once from Debian's source with `corpus/kernel/races/kernel.config`; each patch then costs one
//! object and a link. Images are kept and made again when the patch or the configuration has changed. Every race is
//! looked for with several seeds, its recording is replayed, and the same test must stay clean on the unmodified
//! kernel.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::Value;

use crate::shell;

const SOURCE: &str = "/usr/src/linux-source-6.1.tar.xz";
/// The kernel without any patch.
const UNMODIFIED: &str = "unmodified";

#[derive(Debug, Args)]
pub(crate) struct KernelRaces {
    /// The raddle to use; default: a release build.
    #[arg(long)]
    raddle: Option<PathBuf>,
    /// Folder for the source, the build and the images; default: `kernel-races` in the target folder.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Schedules to look for a race in.
    #[arg(long, default_value_t = 5_000)]
    schedules: u64,
    /// Schedules to run on the unmodified kernel.
    #[arg(long, default_value_t = 1_500)]
    clean: u64,
    /// Seeds to look for each race with.
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// Jobs of make, and workers of raddle.
    #[arg(long, short, default_value_t = 2)]
    jobs: usize,
    /// Build the kernels and stop.
    #[arg(long)]
    build_only: bool,
}

impl KernelRaces {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let folder = self
            .folder
            .clone()
            .unwrap_or_else(|| shell::target_folder().join("kernel-races"));
        std::fs::create_dir_all(folder.join("images"))?;
        let corpus = shell::root().join("corpus/kernel/races");
        let patches = patches(&corpus)?;
        let builder = Builder {
            folder: &folder,
            corpus: &corpus,
            jobs: self.jobs,
        };
        let unmodified = builder.image(None)?;
        let mut images = Vec::new();
        for name in &patches {
            images.push((name, builder.image(Some(name))?));
        }
        if self.build_only {
            return Ok(());
        }
        let raddle = shell::release_build(self.raddle.as_deref())?;
        println!(
            "| race | found at schedule (seeds 0-{}) | how it shows | replays | unmodified kernel |",
            self.seeds - 1
        );
        println!("|---|---|---|---|---|");
        for (name, image) in images {
            let row = self.measure(&raddle, &folder, &corpus.join(name), &image, &unmodified)?;
            println!("| `{name}` | {row} |");
        }
        Ok(())
    }

    /// One row of the table.
    fn measure(
        &self,
        raddle: &Path,
        folder: &Path,
        case: &Path,
        image: &Path,
        unmodified: &Path,
    ) -> anyhow::Result<String> {
        let test = case.with_extension("ktest");
        let name = case.file_name().context("a patch has a name")?;
        let output = folder.join("recordings").join(name);
        if output.exists() {
            std::fs::remove_dir_all(&output)?;
        }
        std::fs::create_dir_all(&output)?;
        let mut found = Vec::new();
        let mut shows = String::from("not found");
        for seed in 0..self.seeds {
            let report = self.explore(raddle, folder, image, &test, &output, seed, true)?;
            found.push(match report["summary"][0]["first_failing"].as_u64() {
                Some(first) => first.to_string(),
                None => format!("> {}", self.schedules),
            });
            if let Some(title) = report["findings"][0]["title"].as_str() {
                title.clone_into(&mut shows);
            }
        }
        let replays = replay_all(raddle, folder, &output)?;
        let clean = self.explore(raddle, folder, unmodified, &test, &output, 0, false)?;
        let summary = &clean["summary"][0];
        Ok(format!(
            "{} | {shows} | {replays} | {} failing of {} |",
            found.join(", "),
            summary["failing"],
            summary["schedules"]
        )
        .trim_end_matches(" |")
        .to_owned())
    }

    #[expect(clippy::too_many_arguments, reason = "one command line")]
    fn explore(
        &self,
        raddle: &Path,
        folder: &Path,
        image: &Path,
        test: &Path,
        output: &Path,
        seed: u64,
        until_found: bool,
    ) -> anyhow::Result<Value> {
        let mut command = Command::new(raddle);
        command
            .args(["kernel", "explore", "--json", "--time", "3600", "--kernel"])
            .arg(image)
            .arg("--cache")
            .arg(folder.join("cache"))
            .arg("--output")
            .arg(output)
            .args(["--seed", &seed.to_string()])
            .args(["--jobs", &self.jobs.to_string()])
            .arg(test);
        let schedules = if until_found {
            command.arg("--until-found");
            self.schedules
        } else {
            self.clean
        };
        command.args(["--schedules", &schedules.to_string()]);
        let result = command
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start raddle")?;
        ensure!(
            matches!(result.status.code(), Some(0 | 1)),
            "exploring {} on {} ended with {}",
            test.display(),
            image.display(),
            result.status
        );
        serde_json::from_slice(&result.stdout).context("raddle printed no JSON")
    }
}

/// Replays every recording twice; all must be the recorded run.
fn replay_all(raddle: &Path, folder: &Path, output: &Path) -> anyhow::Result<String> {
    let mut same = 0;
    let mut all = 0;
    for entry in std::fs::read_dir(output)? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "kraddle") {
            continue;
        }
        let result = Command::new(raddle)
            .args(["kernel", "replay", "--times", "2", "--cache"])
            .arg(folder.join("cache"))
            .arg(&path)
            .output()?;
        let text = String::from_utf8_lossy(&result.stderr);
        all += 1;
        same += usize::from(text.contains("bit for bit; the same failure"));
    }
    Ok(format!("{same} of {all} bit for bit"))
}

/// Names of the patches, sorted.
fn patches(corpus: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(corpus)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "patch") {
            let stem = path.file_stem().context("a patch has a name")?;
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Makes kernels.
struct Builder<'a> {
    folder: &'a Path,
    corpus: &'a Path,
    jobs: usize,
}

impl Builder<'_> {
    /// The kernel with this patch; from the last time if nothing has changed.
    fn image(&self, patch: Option<&str>) -> anyhow::Result<PathBuf> {
        let name = patch.unwrap_or(UNMODIFIED);
        let image = self.folder.join("images").join(format!("{name}.bzImage"));
        let config = std::fs::read_to_string(self.corpus.join("kernel.config"))?;
        let file = patch.map(|name| self.corpus.join(format!("{name}.patch")));
        let content = match &file {
            Some(file) => std::fs::read_to_string(file)?,
            None => String::new(),
        };
        // What an image was made of lies beside it.
        let key = format!("{config}\n{content}");
        let key_file = image.with_extension("made-of");
        if image.is_file() && std::fs::read_to_string(&key_file).is_ok_and(|made_of| made_of == key)
        {
            return Ok(image);
        }
        self.configure()?;
        if let Some(file) = &file {
            self.apply(file, false)?;
        }
        let built = self.make(&["bzImage"]);
        if let Some(file) = &file {
            self.apply(file, true)?;
        }
        built?;
        // For `--symbols`: source lines of this very kernel.
        let vmlinux = image.with_extension("vmlinux");
        std::fs::copy(self.folder.join("build/vmlinux"), vmlinux)?;
        std::fs::copy(self.folder.join("build/arch/x86/boot/bzImage"), &image)?;
        std::fs::write(&key_file, key)?;
        Ok(image)
    }

    /// Unpacks and configures, once.
    fn configure(&self) -> anyhow::Result<()> {
        let source = self.folder.join("linux");
        if !source.is_dir() {
            ensure!(
                Path::new(SOURCE).is_file(),
                "{SOURCE} is missing: run `cargo xtask setup`"
            );
            let unpacked = self.folder.join("linux-source-6.1");
            let folder = self.folder.display().to_string();
            shell::run("tar", &["-C", &folder, "-xf", SOURCE])?;
            std::fs::rename(unpacked, &source)?;
        }
        let config = self.folder.join("build/.config");
        let fragment = self.corpus.join("kernel.config");
        let made_of = self.folder.join("build/.made-of");
        let wanted = std::fs::read(&fragment)?;
        if config.is_file() && std::fs::read(&made_of).is_ok_and(|made_of| made_of == wanted) {
            return Ok(());
        }
        std::fs::create_dir_all(self.folder.join("build"))?;
        self.make(&["tinyconfig"])?;
        let merge = source
            .join("scripts/kconfig/merge_config.sh")
            .display()
            .to_string();
        let (config, fragment) = (config.display().to_string(), fragment.display().to_string());
        let build = self.folder.join("build").display().to_string();
        shell::run(&merge, &["-m", "-O", &build, &config, &fragment])?;
        self.make(&["olddefconfig"])?;
        std::fs::write(made_of, wanted)?;
        Ok(())
    }

    fn apply(&self, patch: &Path, reverse: bool) -> anyhow::Result<()> {
        let source = self.folder.join("linux").display().to_string();
        let patch = patch.display().to_string();
        let mut arguments = vec!["-d", &source, "-p1", "--forward", "-i", &patch];
        if reverse {
            arguments[3] = "-R";
        }
        shell::run("patch", &arguments)
    }

    fn make(&self, goals: &[&str]) -> anyhow::Result<()> {
        let source = self.folder.join("linux").display().to_string();
        let build = format!("O={}", self.folder.join("build").display());
        let jobs = format!("-j{}", self.jobs);
        let mut arguments = vec!["-s", "-C", &source, &build, &jobs];
        arguments.extend(goals);
        shell::run("make", &arguments)
    }
}
