//! The file that names the subjects of a campaign.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use clap::Parser;
use raddle_stdx::regular_file;
use serde::Deserialize;

use super::round::{self, Settings};
use super::state::{Cost, State, SubjectState, VERSION};
use crate::Arguments;

/// Bytes of the file at most.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Seconds of a round at most, unless the file says otherwise.
const ROUND_TIME: u64 = 60;
const ROUND_SCHEDULES: u64 = 1000;

/// What the file says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    seed: u64,
    round_schedules: Option<u64>,
    /// Seconds.
    round_time: Option<u64>,
    #[serde(default)]
    cost: Cost,
    #[serde(default, rename = "subject")]
    subjects: Vec<Subject>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    name: String,
    run: Vec<String>,
}

/// Subjects that were read, with the folder that their paths begin in.
#[derive(Debug)]
pub(super) struct Corpus {
    file: File,
    folder: PathBuf,
}

impl Corpus {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let bytes = regular_file::read(path, FILE_BYTES_MAX)
            .with_context(|| format!("cannot read the corpus {shown}"))?;
        let text = String::from_utf8(bytes)
            .with_context(|| format!("cannot use the corpus {shown}: it is not UTF-8"))?;
        let file: File = toml::from_str(&text)
            .map_err(|error| anyhow!("cannot use the corpus {shown}: {error}"))?;
        let path = std::path::absolute(path)?;
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        ensure!(
            folder.to_str().is_some(),
            "cannot use the corpus {shown}: the name of its folder is not UTF-8"
        );
        let corpus = Self { file, folder };
        let checked = corpus.check();
        checked.with_context(|| format!("cannot use the corpus {shown}"))?;
        Ok(corpus)
    }

    fn check(&self) -> anyhow::Result<()> {
        let File {
            subjects,
            round_schedules,
            round_time,
            ..
        } = &self.file;
        ensure!(
            !subjects.is_empty(),
            "it names no subject: add `[[subject]]` with `name` and `run`"
        );
        ensure!(
            *round_schedules != Some(0) && *round_time != Some(0),
            "rounds of nothing explore nothing: leave out `round-schedules` and `round-time`, or give more"
        );
        let mut names = BTreeSet::new();
        for subject in subjects {
            let name = &subject.name;
            ensure!(
                is_name(name),
                "`{name}` is no name of a subject: letters, digits, `-`, `_` and `.` make one"
            );
            ensure!(names.insert(name), "two subjects are called `{name}`");
            check_command(subject).with_context(|| format!("subject `{name}`"))?;
        }
        Ok(())
    }

    /// The campaign before its first round.
    pub(super) fn begin(self, name: &str) -> anyhow::Result<State> {
        ensure!(
            is_name(name),
            "`{name}` is no name of a campaign: letters, digits, `-`, `_` and `.` make one"
        );
        let Self { file, folder } = self;
        let subject = |subject: Subject| SubjectState {
            name: subject.name,
            folder: folder.clone(),
            command: subject.run,
            ..SubjectState::default()
        };
        Ok(State {
            version: VERSION,
            name: name.to_owned(),
            seed: file.seed,
            round_schedules: file.round_schedules.unwrap_or(ROUND_SCHEDULES),
            round_time: file.round_time.unwrap_or(ROUND_TIME),
            cost: file.cost,
            rounds: 0,
            subjects: file.subjects.into_iter().map(subject).collect(),
        })
    }
}

/// Names become names of files.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty()
        && name.len() <= 64
        && !name.starts_with(['.', '-'])
        && name.chars().all(is_plain)
}

/// Whether the words are a command that rounds can run.
fn check_command(subject: &Subject) -> anyhow::Result<()> {
    let Some((words, rest)) = round::split(&subject.run) else {
        bail!(
            "`run` begins with \"explore\", or with \"kernel\", \"explore\", and not with {:?}",
            subject.run.first().map_or("nothing", String::as_str)
        );
    };
    let own = rest.iter().take_while(|word| *word != "--");
    for word in own {
        let option = word.split('=').next().unwrap_or_default();
        ensure!(
            !round::OWN_OPTIONS.contains(&option),
            "`{option}` is the campaign's business: leave it out of `run`"
        );
    }
    let settings = Settings::example();
    let words = round::words(words, rest, &settings);
    let line = ["raddle".to_owned()].into_iter().chain(words);
    match Arguments::try_parse_from(line) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            bail!(
                "`run` is no command: {}",
                line.trim_start_matches("error: ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("corpus.toml");
        std::fs::write(&path, text).unwrap();
        format!("{:#}", Corpus::read(&path).unwrap_err())
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, words) in [
            ("", "names no subject"),
            ("rounds = 3", "unknown field `rounds`"),
            (
                "[[subject]]\nname = \"../x\"\nrun = []",
                "`../x` is no name of a subject",
            ),
            (
                "[[subject]]\nname = \"x\"\nrun = [\"scan\", \".\"]",
                "`run` begins with \"explore\"",
            ),
            (
                "[[subject]]\nname = \"x\"\nrun = [\"explore\", \"--seed=3\", \"--\", \"./x\"]",
                "`--seed` is the campaign's business",
            ),
            (
                "[[subject]]\nname = \"x\"\nrun = [\"explore\", \"--sed\", \"--\", \"./x\"]",
                "unexpected argument '--sed'",
            ),
            (
                "round-schedules = 0\n[[subject]]\nname = \"x\"\nrun = [\"explore\", \"--\", \"./x\"]",
                "rounds of nothing",
            ),
            (
                "[[subject]]\nname = \"x\"\nrun = [\"explore\", \"--\", \"./x\"]\n[[subject]]\nname = \"x\"\nrun = [\"explore\", \"--\", \"./x\"]",
                "two subjects are called `x`",
            ),
        ] {
            let told = refused(text);
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn options_of_the_program_are_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("corpus.toml");
        let text = "[[subject]]\nname = \"x\"\nrun = [\"explore\", \"--races\", \"--\", \"./x\", \"--seed=3\"]";
        std::fs::write(&path, text).unwrap();
        let state = Corpus::read(&path).unwrap().begin("nightly").unwrap();
        assert_eq!(state.subjects[0].folder, folder.path());
        assert_eq!(state.round_schedules, ROUND_SCHEDULES);
    }
}
