//! Files of interleaving coverage: what `--coverage FILE` adds to and `raddle coverage` shows.
//!
//! JSON with one entry for each build of a program, the one that was tested last at the end. An interleaving is named by
//! build-id, function and offset, so that runs of one build add up, whatever tests made them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use raddle_campaign::{CodeName, NamedCoverage, Reach, Spaces};
use raddle_stdx::regular_file;
use serde::{Deserialize, Serialize};

use crate::keep;

const VERSION: u32 = 1;
/// Bytes of a file that is read.
const BYTES_MAX: u64 = 256 << 20;

/// All that was covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CoverageFile {
    version: u32,
    pub(crate) builds: Vec<Build>,
}

/// What was covered of one build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Build {
    pub(crate) build: String,
    /// The program whose test came last.
    pub(crate) program: String,
    /// Campaigns that were added, and their schedules.
    pub(crate) campaigns: u64,
    pub(crate) schedules: u64,
    /// Of the largest run.
    pub(crate) spaces: Spaces,
    pub(crate) places: Vec<Place>,
}

/// One interleaving, named by the instruction that ends it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    /// Empty where it is not known.
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) function: String,
    pub(crate) offset: u64,
    pub(crate) reach: Reach,
}

/// How many interleavings there are, how many of them nothing forbids, and how many happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count {
    pub(crate) covered: u64,
    pub(crate) feasible: u64,
    pub(crate) total: u64,
}

impl Count {
    pub(crate) fn add(&mut self, reach: Reach) {
        self.total += 1;
        self.feasible += u64::from(reach >= Reach::Feasible);
        self.covered += u64::from(reach == Reach::Covered);
    }

    /// Of those that nothing forbids, in whole per cent; all of none is all.
    pub(crate) fn percent(self) -> u64 {
        (self.covered * 100)
            .checked_div(self.feasible)
            .unwrap_or(100)
    }
}

impl Build {
    pub(crate) fn count(&self) -> Count {
        let mut count = Count::default();
        self.places.iter().for_each(|place| count.add(place.reach));
        count
    }

    /// The counts of each line, by file and line.
    pub(crate) fn lines(&self) -> BTreeMap<(&str, u32), Count> {
        let mut lines: BTreeMap<(&str, u32), Count> = BTreeMap::new();
        for place in &self.places {
            let line = lines.entry((&place.file, place.line)).or_default();
            line.add(place.reach);
        }
        lines
    }

    fn add(&mut self, name: CodeName, reach: Reach) {
        let mut places = self.places.iter_mut();
        let known =
            places.find(|place| (&place.function, place.offset) == (&name.function, name.offset));
        match known {
            Some(known) => known.reach = known.reach.max(reach),
            None => self.places.push(Place {
                file: name.file,
                line: name.line,
                function: name.function,
                offset: name.offset,
                reach,
            }),
        }
    }
}

impl CoverageFile {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = || format!("cannot read the coverage in {}", path.display());
        let bytes = regular_file::read(path, BYTES_MAX).with_context(name)?;
        let file: Self = serde_json::from_slice(&bytes).with_context(|| {
            format!("{} is no file of coverage: `--coverage FILE` of explore, predict and cargo raddle test writes one", path.display())
        })?;
        if file.version != VERSION {
            bail!(
                "{} has version {} of the format, this raddle knows {VERSION}: begin a new file",
                path.display(),
                file.version
            );
        }
        Ok(file)
    }

    fn read_or_new(path: &Path) -> anyhow::Result<Self> {
        match path.try_exists() {
            Ok(false) => Ok(Self {
                version: VERSION,
                builds: Vec::new(),
            }),
            _ => Self::read(path),
        }
    }

    fn absorb(&mut self, program: &str, schedules: u64, coverage: NamedCoverage) {
        let mut by_build: BTreeMap<String, Vec<(CodeName, Reach)>> = BTreeMap::new();
        for (name, reach) in coverage.places {
            let places = by_build.entry(name.build.clone()).or_default();
            places.push((name, reach));
        }
        for (id, places) in by_build {
            let known = self.builds.iter().position(|build| build.build == id);
            let mut build = known.map_or_else(
                || Build {
                    build: id,
                    program: String::new(),
                    campaigns: 0,
                    schedules: 0,
                    spaces: Spaces::default(),
                    places: Vec::new(),
                },
                |at| self.builds.remove(at),
            );
            program.clone_into(&mut build.program);
            build.campaigns += 1;
            build.schedules += schedules;
            build.spaces = build.spaces.max(coverage.spaces);
            for (name, reach) in places {
                build.add(name, reach);
            }
            build.places.sort();
            self.builds.push(build);
        }
    }
}

/// Tries a file before hours are spent on what should go there.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    CoverageFile::read_or_new(path).map(drop)
}

/// Adds what a campaign has covered.
pub(crate) fn add(
    path: &Path,
    program: &str,
    schedules: u64,
    coverage: NamedCoverage,
) -> anyhow::Result<()> {
    let mut file = CoverageFile::read_or_new(path)?;
    file.absorb(program, schedules, coverage);
    let mut text = serde_json::to_string_pretty(&file)?;
    text.push('\n');
    keep::write(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(build: &str, reaches: &[(u64, Reach)]) -> NamedCoverage {
        let name = |offset| CodeName {
            build: build.to_owned(),
            function: "f".to_owned(),
            offset,
            file: "a.c".to_owned(),
            line: 7,
        };
        NamedCoverage {
            places: reaches
                .iter()
                .map(|(at, reach)| (name(*at), *reach))
                .collect(),
            spaces: Spaces::default(),
        }
    }

    #[test]
    fn runs_of_a_build_add_up_and_builds_stay_apart() {
        let mut file = CoverageFile {
            version: VERSION,
            builds: Vec::new(),
        };
        file.absorb(
            "p",
            10,
            coverage("one", &[(0, Reach::Feasible), (4, Reach::Covered)]),
        );
        file.absorb("p", 20, coverage("two", &[(0, Reach::Potential)]));
        file.absorb(
            "q",
            30,
            coverage("one", &[(0, Reach::Covered), (8, Reach::Potential)]),
        );
        let ids: Vec<&str> = file.builds.iter().map(|b| b.build.as_str()).collect();
        assert_eq!(
            ids,
            ["two", "one"],
            "the last one that was tested comes last"
        );
        let one = &file.builds[1];
        assert_eq!(
            (one.campaigns, one.schedules, one.program.as_str()),
            (2, 40, "q")
        );
        let count = Count {
            covered: 2,
            feasible: 2,
            total: 3,
        };
        assert_eq!(one.count(), count);
        assert_eq!(one.lines().get(&("a.c", 7)), Some(&count));
        assert_eq!(
            (count.percent(), file.builds[0].count().percent()),
            (100, 100)
        );
    }
}
