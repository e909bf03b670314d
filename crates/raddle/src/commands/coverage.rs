//! `raddle coverage`: how many of the interleavings that no serial order gives have been tested.

mod html;
mod lcov;

use std::path::PathBuf;

use clap::Args;
use raddle_campaign::{Reach, Spaces};
use raddle_report::words::{counted, printable};

use crate::coverage::{Build, Count, CoverageFile};
use crate::exit::{Code, Failure};
use crate::keep;
use crate::output::{Destination, Output};

/// Characters of a build-id that are shown.
const ID_CHARACTERS: usize = 12;

/// Show the interleaving coverage that `--coverage FILE` of explore, predict and cargo raddle test has added up.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle explore --coverage cov.json -- ./program && raddle coverage cov.json\n  raddle coverage cov.json --html coverage.html --lcov coverage.info"
)]
pub(crate) struct Coverage {
    /// The file.
    file: PathBuf,
    /// Write a page with all lines, like those of line coverage.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write branch coverage as lcov has it, for other viewers: a branch is an interleaving that nothing forbids.
    #[arg(long, value_name = "FILE")]
    lcov: Option<PathBuf>,
    /// Show only this build, by the beginning of its id; default: the one that was tested last.
    #[arg(long, value_name = "ID")]
    build: Option<String>,
}

impl Coverage {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let file = CoverageFile::read(&self.file)?;
        let build = self.chosen(&file)?;
        if let Some(path) = &self.html {
            keep::write(path, html::page(build).as_bytes())?;
        }
        if let Some(path) = &self.lcov {
            keep::write(path, lcov::tracefile(build).as_bytes())?;
        }
        let mut output = Output::open(&Destination::Stdout)?;
        output.write(&text(build))?;
        if file.builds.len() > 1 {
            output.write("\nall builds, the one that was tested last at the end:\n")?;
            for build in &file.builds {
                output.write(&format!("  {}\n", headline(build)))?;
            }
        }
        output.close()?;
        Ok(Code::Clean)
    }

    fn chosen<'f>(&self, file: &'f CoverageFile) -> anyhow::Result<&'f Build> {
        let wanted = self.build.as_deref().unwrap_or_default();
        let mut builds = file.builds.iter().rev();
        let chosen = builds.find(|build| build.build.starts_with(wanted));
        chosen.ok_or_else(|| match &self.build {
            Some(id) => anyhow::anyhow!(
                "{} has no build `{id}`; without `--build` the last one is shown with a list of all",
                self.file.display()
            ),
            None => anyhow::anyhow!("{} has no builds: nothing was covered", self.file.display()),
        })
    }
}

fn headline(build: &Build) -> String {
    let id: String = build.build.chars().take(ID_CHARACTERS).collect();
    let count = build.count();
    format!(
        "{} {}: {} of {} feasible interleavings covered ({} %), {} in all; {} in {}",
        printable(&build.program),
        printable(&id),
        count.covered,
        count.feasible,
        count.percent(),
        count.total,
        counted(build.schedules, "schedule"),
        counted(build.campaigns, "campaign"),
    )
}

fn text(build: &Build) -> String {
    let mut text = String::from("covered  feasible  total  line\n");
    for ((file, line), count) in build.lines() {
        let Count {
            covered,
            feasible,
            total,
        } = count;
        let place = place(file, line);
        text.push_str(&format!(
            "{covered:>7}  {feasible:>8}  {total:>5}  {place}\n"
        ));
    }
    let uncovered = build.places.iter();
    let mut uncovered = uncovered
        .filter(|place| place.reach == Reach::Feasible)
        .peekable();
    if uncovered.peek().is_some() {
        text.push_str(
            "\nfeasible and never seen, by the access that would end the interleaving:\n",
        );
    }
    for missing in uncovered {
        text.push_str(&format!(
            "  {}  {}+{:#x}\n",
            place(&missing.file, missing.line),
            printable(&missing.function),
            missing.offset
        ));
    }
    text.push_str(&format!(
        "\n{}\n{}\n",
        headline(build),
        spaces(build.spaces)
    ));
    text
}

fn place(file: &str, line: u32) -> String {
    match line {
        0 => "(no line)".to_owned(),
        _ => format!("{}:{line}", printable(file)),
    }
}

/// The sizes of the spaces of CTrigger's four criteria.
fn spaces(spaces: Spaces) -> String {
    let power =
        |thousandths: u64| format!("10^{}.{}", thousandths / 1000, thousandths % 1000 / 100);
    format!(
        "spaces of the largest run: all orders (ALL) {}, of two threads (TPAIR) {}, pairs with a remote thread (PI) {}, accesses with one before (UI) {}",
        power(spaces.all),
        power(spaces.thread_pairs),
        spaces.pairs,
        spaces.unserializable
    )
}

#[cfg(test)]
mod tests;
