//! `raddle explain NAME`: what a kind of finding means.

use clap::Args;

use super::kind;
use crate::exit::{Code, Failure};
use crate::message;

/// Explain a kind of finding.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  raddle explain data-race\n  raddle explain --list")]
pub(crate) struct Explain {
    /// Name of the kind, as printed in a finding.
    name: Option<String>,
    /// List all names.
    #[arg(long)]
    list: bool,
}

/// Every kind that can be explained, with its text.
fn texts() -> Vec<(String, String)> {
    let mut texts = super::scan::explanations();
    texts.extend(kind::explanations(&super::explore::kinds::KINDS));
    texts.extend(kind::explanations(&super::linearize::KINDS));
    texts.extend(kind::explanations(&super::kernel::KINDS));
    texts
}

impl Explain {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let texts = texts();
        match self.name {
            Some(name) if !self.list => {
                let Some((_, text)) = texts.iter().find(|(known, _)| *known == name) else {
                    return Err(anyhow::anyhow!("there is no kind of finding called `{name}`; `raddle explain --list` lists them all").into());
                };
                message::result(&format!("{text}\n"))?;
            }
            _ => {
                let names: String = texts.iter().map(|(name, _)| format!("{name}\n")).collect();
                message::result(&names)?;
            }
        }
        Ok(Code::Clean)
    }
}
