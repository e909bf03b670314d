//! `raddle explain NAME`: what a kind of finding means, and a program that shows it.

mod examples;

use clap::Args;

use examples::Example;

use super::kind;
use crate::exit::{Code, Failure};
use crate::message;

/// Explain a kind of finding.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle explain data-race\n  raddle explain --list\n  raddle explain --example data-race > data-race.c"
)]
pub(crate) struct Explain {
    /// Name of the kind, as printed in a finding.
    name: Option<String>,
    /// List all names.
    #[arg(long)]
    list: bool,
    /// Print a small program that shows it, with the commands that find it.
    #[arg(long, requires = "name", conflicts_with = "list")]
    example: bool,
}

/// How alike two names must be, of 1, for one to be meant by the other.
const ALIKE: f64 = 0.8;

/// Every kind that can be explained, with its text. What is seen in runs and what is read in source may have one name.
fn texts() -> Vec<(String, String)> {
    let mut texts = kind::explanations(&super::explore::kinds::KINDS);
    texts.extend(kind::explanations(&super::linearize::KINDS));
    texts.extend(kind::explanations(&super::kernel::KINDS));
    texts.extend(super::scan::explanations());
    texts
}

/// All texts of a name.
fn explanation(name: &str, texts: &[(String, String)]) -> anyhow::Result<String> {
    let of_name = texts.iter().filter(|(known, _)| known == name);
    let told: Vec<&str> = of_name.map(|(_, text)| text.as_str()).collect();
    if !told.is_empty() {
        return Ok(told.join("\n\n"));
    }
    let alike = |known: &str| strsim::jaro_winkler(known, name);
    let names = texts.iter().map(|(known, _)| known.as_str());
    let nearest = names.max_by(|one, other| alike(one).total_cmp(&alike(other)));
    let meant = nearest.filter(|nearest| alike(nearest) >= ALIKE);
    let meant = meant.map_or(String::new(), |nearest| format!(", but `{nearest}`"));
    Err(anyhow::anyhow!(
        "there is no kind of finding called `{name}`{meant}; `raddle explain --list` lists them all"
    ))
}

impl Explain {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let texts = texts();
        match self.name {
            Some(name) if self.example => {
                explanation(&name, &texts)?;
                let example = Example::of(&name).ok_or_else(|| {
                    anyhow::anyhow!(
                        "there is no example of `{name}`: it takes a kernel with such a bug; `raddle explain {name}` says what it means"
                    )
                })?;
                message::result(&example.program())?;
            }
            Some(name) if !self.list => {
                let mut text = explanation(&name, &texts)?;
                if let Some(example) = Example::of(&name) {
                    text.push_str(&format!("\n\n{}", example.how_to_run()));
                }
                message::result(&(text + "\n"))?;
            }
            _ => {
                let mut names: Vec<&str> = Vec::new();
                for (name, _) in &texts {
                    if !names.contains(&name.as_str()) {
                        names.push(name);
                    }
                }
                message::result(&(names.join("\n") + "\n"))?;
            }
        }
        Ok(Code::Clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_but_those_of_kernels_has_an_example() {
        for (name, _) in texts() {
            let is_of_kernels = name.starts_with("kernel-");
            assert_eq!(Example::of(&name).is_none(), is_of_kernels, "{name}");
        }
    }

    #[test]
    fn both_meanings_of_a_name_are_told() {
        let text = explanation("use-after-free", &texts()).expect("a known kind");
        let of_source = "Found by `raddle scan`.";
        assert!(text.starts_with("use-after-free: "), "{text}");
        assert!(text.ends_with(of_source), "{text}");
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let error = |name| explanation(name, &texts()).expect_err("none").to_string();
        assert!(error("data-rase").contains("but `data-race`"));
        assert!(!error("xyzzy").contains(", but"));
    }
}
