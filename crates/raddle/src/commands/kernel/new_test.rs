//! `raddle kernel new-test`: a test case to begin with.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_kernel::guest::HEADER;
use raddle_kernel::test_case::template::{TEMPLATES, template};

use crate::exit::{Code, Failure};
use crate::message;

/// Write a test case to begin with.
#[derive(Debug, Args)]
pub(crate) struct NewTest {
    /// Name of the template; `list` names them all, `raddle.h` is the header for agent programs.
    #[arg(long, value_name = "NAME", default_value = "list")]
    template: String,
    /// File to write; default: standard output.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl NewTest {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let text = match self.template.as_str() {
            "list" => TEMPLATES
                .iter()
                .map(|template| {
                    let line = template.text.lines().next().unwrap_or_default();
                    format!("{:10} {}\n", template.name, line.trim_start_matches("# "))
                })
                .collect(),
            "raddle.h" => HEADER.to_owned(),
            name => template(name)
                .ok_or_else(|| {
                    let names: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
                    anyhow!(
                        "there is no template `{name}`; choose one of {}",
                        names.join(", ")
                    )
                })?
                .text
                .to_owned(),
        };
        match &self.file {
            None => message::result(&text)?,
            Some(path) if path.exists() => {
                return Err(anyhow!("{} exists and is not overwritten", path.display()).into());
            }
            Some(path) => {
                std::fs::write(path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                message::note(&format!("wrote {}", path.display()));
            }
        }
        Ok(Code::Clean)
    }
}
