//! `cargo xtask bench clean`: correct programs of many idioms and languages, of which nothing may be reported.
//!
//! The programs are in `bench/programs/clean`, one file each, and stand in no other test. Each is explored up to a number
//! of schedules or CPU seconds, whichever comes first, with data races looked for in every schedule.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use clap::Args;

use super::cpu;
use crate::shell;

/// Explores correct programs.
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Schedules of each program at most.
    #[arg(long, default_value_t = 5000)]
    schedules: u64,
    /// Seconds of each program at most.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Only programs whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// The raddle to use; default: a release build.
    #[arg(long)]
    raddle: Option<PathBuf>,
}

impl Clean {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        shell::release_build(self.raddle.as_deref())?;
        let folder = shell::target_folder().join("bench-clean");
        std::fs::create_dir_all(&folder)?;
        println!("| program | schedules | failing | findings |");
        println!("|---|---|---|---|");
        let (mut programs, mut schedules, mut alarms) = (0, 0, 0);
        let before = cpu::of_children();
        for source in sources()? {
            let name = file_name(&source);
            if !name.contains(&self.only) {
                continue;
            }
            let summary = self.explore(&folder, &command(&source, &folder)?)?;
            let number = |key: &str| summary[key].as_u64().unwrap_or(0);
            let (run, failing, found) =
                (number("schedules"), number("failing"), number("findings"));
            ensure!(run > 1, "{name}: nothing was explored");
            println!("| {name} | {run} | {failing} | {found} |");
            programs += 1;
            schedules += run;
            alarms += failing + found;
        }
        let seconds = cpu::of_children() - before;
        println!(
            "\n{programs} programs, {schedules} schedules, {alarms} false alarms, {seconds:.0} CPU seconds with compilation."
        );
        ensure!(alarms == 0, "there are false alarms");
        Ok(())
    }

    fn explore(&self, folder: &Path, command: &[String]) -> anyhow::Result<serde_json::Value> {
        let raddle = self.raddle.clone().unwrap_or_else(shell::released);
        let output = Command::new(raddle)
            .args(["explore", "--jobs", "1", "--json", "--races"])
            .args(["--schedules", &self.schedules.to_string()])
            .args(["--time", &self.seconds.to_string(), "--output"])
            .arg(folder)
            .arg("--")
            .args(command)
            .output()?;
        let mut document: serde_json::Value =
            serde_json::from_slice(&output.stdout).with_context(|| {
                let said = String::from_utf8_lossy(&output.stderr);
                format!("{}: {said}", command.join(" "))
            })?;
        Ok(document["summary"].take())
    }
}

/// All programs, in the order of their names.
fn sources() -> anyhow::Result<Vec<PathBuf>> {
    let folder = shell::root().join("bench/programs/clean");
    let files = std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = files.collect::<anyhow::Result<_>>()?;
    files.sort();
    Ok(files)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Compiles a program where that is needed, and says how it is run.
fn command(source: &Path, folder: &Path) -> anyhow::Result<Vec<String>> {
    let name = file_name(source);
    let extension = source.extension().unwrap_or_default().to_string_lossy();
    let program = folder.join(name.replace('.', "-"));
    let compiler = match &*extension {
        "c" => "gcc -O1 -g -pthread",
        "cpp" => "g++ -O1 -g -std=c++20 -pthread",
        "rs" => "rustc --edition 2024 -O -g",
        "go" => "go build",
        "py" => {
            let source = source.to_string_lossy().into_owned();
            return Ok(vec!["/usr/bin/python3".to_owned(), source]);
        }
        other => bail!("{name}: it is not known how to run .{other}"),
    };
    let mut words = compiler.split(' ');
    let status = Command::new(words.next().unwrap_or_default())
        .args(words)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .status()?;
    ensure!(status.success(), "{name} does not compile");
    Ok(vec![program.to_string_lossy().into_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_sixty_programs_in_five_languages() {
        let sources = sources().expect("the folder exists");
        assert_eq!(sources.len(), 60);
        for extension in ["c", "cpp", "rs", "go", "py"] {
            let of_it = sources
                .iter()
                .filter(|path| path.extension().is_some_and(|e| e == extension));
            assert!(of_it.count() >= 4, "{extension}");
        }
    }
}
