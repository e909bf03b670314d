//! What a crate's manifest names must be used, and why an exception is none.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context;

/// Dependencies that no source file names, each with its reason.
const UNNAMED: &[(&str, &str, &str)] = &[(
    "raddle",
    "raddle-harden-plugin",
    "named so that the plugin is built before the tests that load it run",
)];

/// The dependencies that a manifest names.
pub(super) struct Manifest {
    sections: Vec<(&'static str, Vec<String>)>,
}

impl Manifest {
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("Cargo.toml");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let table: toml::Table = text.parse()?;
        let names = |section: &str| {
            let section = table.get(section).and_then(toml::Value::as_table);
            section.map_or_else(Vec::new, |section| section.keys().cloned().collect())
        };
        let sections = ["dependencies", "dev-dependencies", "build-dependencies"];
        Ok(Self {
            sections: sections.map(|name| (name, names(name))).into(),
        })
    }

    /// The crates of ours that it depends on, without `raddle-`.
    pub(super) fn ours(&self) -> BTreeSet<String> {
        let [(_, names), ..] = self.sections.as_slice() else {
            return BTreeSet::new();
        };
        let short = names.iter().filter_map(|name| name.strip_prefix("raddle-"));
        short.map(str::to_owned).collect()
    }

    /// Dependencies that no source names.
    fn unused(&self, sources: &[String]) -> Vec<String> {
        let names = self.sections.iter().flat_map(|(_, names)| names);
        let is_used = |name: &&String| {
            let word = name.replace('-', "_");
            sources.iter().any(|source| has_word(source, &word))
        };
        names.filter(|name| !is_used(name)).cloned().collect()
    }
}

/// Whether a text has a word, and not as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Complaints about all manifests; `files` are those of the repository.
pub(super) fn check(files: &[String]) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    let manifests = files
        .iter()
        .filter_map(|path| path.strip_suffix("/Cargo.toml"));
    for folder in manifests.filter(|folder| !folder.contains("test_data")) {
        let manifest = Manifest::read(Path::new(folder))?;
        let sources: Vec<String> = files
            .iter()
            .filter(|path| path.starts_with(&format!("{folder}/")) && path.ends_with(".rs"))
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect();
        let name = folder.rsplit('/').next().unwrap_or(folder);
        for unused in manifest.unused(&sources) {
            let is_excused = |(of, what, _): &(&str, &str, &str)| *of == name && *what == unused;
            if !UNNAMED.iter().any(is_excused) {
                complaints.push(format!("{folder}: names `{unused}` and does not use it"));
            }
        }
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_that_no_source_names_is_found() {
        let manifest = Manifest::parse(
            "[dependencies]\nraddle-mem = { path = \"\" }\nserde = \"1\"\n[dev-dependencies]\ntempfile = \"3\"\n",
        )
        .unwrap();
        let sources = ["use raddle_mem::Frames; struct my_serde;".to_owned()];
        assert_eq!(manifest.unused(&sources), ["serde", "tempfile"]);
        assert_eq!(manifest.ours(), BTreeSet::from(["mem".to_owned()]));
    }
}
