//! How results are told: one group of options for every command that finds something.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use raddle_report::render::project::Project;
use raddle_report::render::terminal::Style;
use raddle_report::render::{Format, Results};

use crate::{keep, message};

/// In which form results are printed, and which files are written besides.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct ReportOptions {
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["sarif", "concise"])]
    json: bool,
    /// Print SARIF 2.1.0.
    #[arg(long, conflicts_with = "concise")]
    sarif: bool,
    /// Print one line per finding.
    #[arg(long)]
    concise: bool,
    /// Write JUnit XML to a file, too.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the results to a file, too, in one of these forms: text, concise, json, sarif, junit, html, github
    /// (annotations of its Actions; `-` prints them), markdown (issue trackers), mail (mailing lists); may be repeated.
    #[arg(long, value_name = "FORM=FILE", value_parser = form_and_file)]
    report: Vec<(Format, PathBuf)>,
}

fn form_and_file(text: &str) -> Result<(Format, PathBuf), String> {
    let names = || Format::ALL.map(|(name, _)| name).join(", ");
    let (name, file) = text
        .split_once('=')
        .filter(|(_, file)| !file.is_empty())
        .ok_or_else(|| format!("write FORM=FILE, where FORM is one of {}", names()))?;
    Ok((form(name)?, file.into()))
}

impl ReportOptions {
    /// The form in which results are printed.
    pub(crate) fn format(&self) -> Format {
        match self {
            Self { json: true, .. } => Format::Json,
            Self { sarif: true, .. } => Format::Sarif,
            Self { concise: true, .. } => Format::Concise,
            _ => Format::Text,
        }
    }

    /// Whether people read what is printed: it may then come bit by bit.
    pub(crate) fn is_for_people(&self) -> bool {
        matches!(self.format(), Format::Text | Format::Concise)
    }

    /// Prints the results and writes the files.
    pub(crate) fn tell(&self, results: &Results, style: Style) -> anyhow::Result<()> {
        message::result(&self.format().render(results, style)?)?;
        self.write_files(results)
    }

    /// Writes the files only.
    pub(crate) fn write_files(&self, results: &Results) -> anyhow::Result<()> {
        let junit = self.junit.iter().map(|path| (Format::Junit, path));
        let others = self.report.iter().map(|(format, path)| (*format, path));
        for (format, path) in junit.chain(others) {
            write(path, &format.render(results, Style::PLAIN)?)?;
        }
        Ok(())
    }
}

/// Writes a text to a file, or prints it where `-` stands for one.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        return message::result(text);
    }
    keep::write(path, text.as_bytes())
}

/// The form of this name.
pub(crate) fn form(name: &str) -> Result<Format, String> {
    let known = Format::ALL.into_iter().find(|(known, _)| *known == name);
    let names = || Format::ALL.map(|(name, _)| name).join(", ");
    let (_, format) = known.ok_or_else(|| format!("`{name}` is not one of {}", names()))?;
    Ok(format)
}

/// How findings look on this terminal, or with so many columns elsewhere.
pub(crate) fn style(columns: usize) -> Style {
    let out = std::io::stdout();
    Style {
        colour: out.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        width: terminal_size::terminal_size_of(out)
            .map_or(columns, |(width, _)| usize::from(width.0).clamp(40, 160)),
    }
}

/// The folder of the project, to which other machines take paths as relative: the nearest one above that has a
/// `raddle.toml` or a repository, or else where the user stands.
pub(crate) fn project() -> anyhow::Result<Project> {
    let folder = std::env::current_dir().context("the working folder cannot be found")?;
    let marks = |folder: &&Path| {
        let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
        has(crate::project::FILE_NAME) || has(".git")
    };
    let root = folder.ancestors().find(marks).unwrap_or(&folder);
    Ok(Project::new(
        root.display().to_string(),
        folder.display().to_string(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_named_with_a_file() {
        assert_eq!(
            form_and_file("junit=out.xml"),
            Ok((Format::Junit, "out.xml".into()))
        );
        for wrong in ["junit", "junit=", "pdf=a.pdf"] {
            let error = form_and_file(wrong).unwrap_err();
            assert!(error.contains("sarif"), "{error}");
        }
    }
}
