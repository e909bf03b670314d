//! How many lock sites are hardened in real programs, of those that can be reached with another lock held, and what ends
//! the regions of the others. The table is kept in `bench/harden-locks.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::Place;
use super::programs::{self, fetch_debian, shell};

/// Programs that their own build systems build; `CC` and `CXX` are ours.
const PACKAGES: [(&str, &str); 2] = [
    (
        "redis",
        "make distclean >/dev/null 2>&1; make -s -j2 MALLOC=libc OPTIMIZATION=-O2 CC=\"$CC\" \
         REDIS_CFLAGS=\"$WHOLE\" REDIS_LDFLAGS=\"$WHOLE\" redis-server",
    ),
    (
        "leveldb",
        "rm -rf built && mkdir built && cd built && cmake -DCMAKE_BUILD_TYPE=Release \
         -DCMAKE_C_COMPILER=\"$CC\" -DCMAKE_CXX_COMPILER=\"$CXX\" -DCMAKE_CXX_FLAGS=\"$WHOLE\" \
         -DCMAKE_AR=/usr/bin/llvm-ar-22 -DCMAKE_RANLIB=/usr/bin/llvm-ranlib-22 -DLEVELDB_BUILD_TESTS=OFF \
         -DLEVELDB_BUILD_BENCHMARKS=OFF .. >/dev/null && make -s -j2",
    ),
];

/// Programs that the other tables measure as well.
const COMPILED: [&str; 2] = ["memcached", "pbzip2"];

/// Lock sites of one build.
#[derive(Debug, Default)]
struct Locks {
    all: u32,
    all_hardened: u32,
    nested: u32,
    nested_hardened: u32,
    /// What ends the regions of nested sites that are left alone.
    ends: BTreeMap<String, u32>,
}

impl Locks {
    fn of(report: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(report)
            .with_context(|| format!("cannot read {}", report.display()))?;
        let mut locks = Self::default();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line)?;
            if let Some(site) = line.get("site").filter(|site| site["kind"] == "deadlock") {
                locks.add(site);
            }
        }
        Ok(locks)
    }

    fn add(&mut self, site: &Value) {
        let how = &site["outcome"]["hardened"];
        let is_hardened = how.is_object() && how["trusts"].as_array().is_none_or(Vec::is_empty);
        let is_nested = site["nested"] == true;
        self.all += 1;
        self.all_hardened += u32::from(is_hardened);
        self.nested += u32::from(is_nested);
        self.nested_hardened += u32::from(is_nested && is_hardened);
        if is_nested && !is_hardened {
            let ends = site["ended_by"].as_array().into_iter().flatten();
            let first = ends.filter_map(Value::as_str).next();
            let end = first.map_or("the beginning of the function", |end| {
                end.split(" (line").next().unwrap_or(end)
            });
            *self.ends.entry(end.to_owned()).or_default() += 1;
        }
    }

    /// The most frequent ends.
    fn reasons(&self) -> String {
        let mut ends: Vec<_> = self.ends.iter().collect();
        ends.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let parts = ends
            .iter()
            .take(6)
            .map(|(end, count)| format!("{end} {count}"));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// How a program is compiled.
#[derive(Debug, Clone, Copy)]
struct Build {
    undo: &'static str,
    /// With link-time optimisation, so that all of it is in sight.
    is_whole: bool,
}

impl Build {
    fn flag(self) -> &'static str {
        if self.is_whole { "-flto" } else { "" }
    }

    fn name(self) -> String {
        let kind = if self.is_whole { "whole" } else { "files" };
        format!("locks-{kind}-{}", self.undo)
    }
}

/// Measures all programs and writes the table.
pub(super) fn print(place: &Place) -> anyhow::Result<()> {
    let mut table = String::from(
        "| program | compiled | `--harden-undo` | lock sites hardened | of those that another lock may be held at | regions of the others end at |\n|---|---|---|---|---|---|\n",
    );
    for is_whole in [false, true] {
        for undo in ["proven", "plain"] {
            let build = Build { undo, is_whole };
            for name in COMPILED {
                let report = build_program(place, name, build)?;
                add_row(&mut table, name, build, &Locks::of(&report)?);
            }
            for (name, commands) in PACKAGES {
                let report = build_package(place, name, commands, build)?;
                add_row(&mut table, name, build, &Locks::of(&report)?);
            }
        }
    }
    show(&table);
    Ok(())
}

fn add_row(table: &mut String, name: &str, build: Build, locks: &Locks) {
    let _infallible = writeln!(
        table,
        "| {name} | {} | {} | {} of {} | {} of {} | {} |",
        if build.is_whole {
            "as a whole"
        } else {
            "file by file"
        },
        build.undo,
        locks.all_hardened,
        locks.all,
        locks.nested_hardened,
        locks.nested,
        locks.reasons()
    );
}

/// Compiles one of the other tables' programs in one command.
fn build_program(place: &Place, name: &str, build: Build) -> anyhow::Result<PathBuf> {
    let program = programs::ALL
        .iter()
        .find(|program| program.name == name)
        .context("the table of programs lacks one")?;
    let folder = program.fetch(place)?;
    let report = fresh_report(place, name, build)?;
    let commands = format!(
        "{} {} --harden-undo={} --harden-report={} {} {} {} -o {} {}",
        place.raddle.display(),
        program.driver,
        build.undo,
        report.display(),
        build.flag(),
        program.flags.join(" "),
        program.sources.join(" "),
        folder.join(build.name()).display(),
        program.libraries.join(" ")
    );
    shell(&folder, &commands)?;
    Ok(report)
}

fn fresh_report(place: &Place, name: &str, build: Build) -> anyhow::Result<PathBuf> {
    let report = place.work.join(format!("{name}-{}.jsonl", build.name()));
    if report.exists() {
        fs::remove_file(&report)?;
    }
    Ok(report)
}

fn build_package(
    place: &Place,
    name: &str,
    commands: &str,
    build: Build,
) -> anyhow::Result<PathBuf> {
    let folder = place.work.join(name);
    if !folder.exists() {
        fetch_debian(place, name, &folder)?;
    }
    let report = fresh_report(place, name, build)?;
    let raddle = place.raddle.display();
    for link in ["raddle-cc", "raddle-c++"] {
        let at = place.work.join(link);
        if at.is_symlink() {
            fs::remove_file(&at)?;
        }
        std::os::unix::fs::symlink(&place.raddle, &at)
            .with_context(|| format!("cannot link {raddle}"))?;
    }
    let work = place.work.display();
    let setting = format!(
        "export WHOLE={} CC={work}/raddle-cc CXX={work}/raddle-c++ \
         RADDLE_HARDEN_OPTIONS='--harden-undo={} --harden-report={}'; ",
        build.flag(),
        build.undo,
        report.display()
    );
    shell(&folder, &format!("{setting}{commands}"))?;
    Ok(report)
}

/// The table, with what was compiled.
#[expect(clippy::print_stdout, reason = "the table is the result")]
fn show(table: &str) {
    println!(
        "Sources are Debian's packages, compiled with `-O2`; as a whole means with `-flto`.\n\
         A lock counts as held where it may be held, in the function or up the chain of callers in sight.\n\
         Sites that count on promises of other objects are not counted as hardened.\n\n{table}"
    );
}
