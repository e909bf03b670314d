//! Licences, sources and bans of everything that we build with, by the policy in `deny.toml`.
//!
//! The same file serves `cargo deny`, whose installation takes longer than all other checks together; what we need of
//! it is three questions to `cargo metadata`.

use std::process::Command;

use anyhow::Context;
use serde::Deserialize;

/// The only registry.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The part of `deny.toml` that is checked.
#[derive(Debug, Deserialize)]
struct Policy {
    licenses: Licenses,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for crates of this repository.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

pub(super) fn check() -> anyhow::Result<Vec<String>> {
    let policy: Policy = toml::from_str(&std::fs::read_to_string("deny.toml")?)?;
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .context("cannot run cargo")?;
    anyhow::ensure!(
        output.status.success(),
        "`cargo metadata` failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    Ok(complaints(&metadata.packages, &policy.licenses.allow))
}

fn complaints(packages: &[Package], allowed: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in packages {
        let Package { name, version, .. } = package;
        match &package.license {
            Some(license) if is_allowed(license, allowed) => {}
            Some(license) => complaints.push(format!(
                "{name} {version}: the licence `{license}` is not in deny.toml"
            )),
            None => complaints.push(format!("{name} {version}: names no licence")),
        }
        match package.source.as_deref() {
            None => complaints.extend(wildcards(package)),
            Some(REGISTRY) => {}
            Some(source) => complaints.push(format!("{name} {version}: comes from {source}")),
        }
    }
    complaints
}

/// Our own manifests say which versions they want.
fn wildcards(package: &Package) -> impl Iterator<Item = String> {
    let any = package.dependencies.iter();
    let any = any.filter(|dependency| dependency.req == "*" && dependency.path.is_none());
    any.map(|dependency| format!("{}: takes any version of {}", package.name, dependency.name))
}

/// Whether an SPDX expression can be met by allowed licences alone. `AND` binds closer than `OR`; old manifests write
/// `/` for `OR`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Expression {
        words: &words,
        allowed,
    };
    parser.either() && parser.words.is_empty()
}

struct Expression<'a> {
    /// What is left to read.
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl Expression<'_> {
    fn either(&mut self) -> bool {
        let mut holds = self.both();
        while self.takes("OR") {
            holds |= self.both();
        }
        holds
    }

    fn both(&mut self) -> bool {
        let mut holds = self.one();
        while self.takes("AND") {
            holds &= self.one();
        }
        holds
    }

    fn one(&mut self) -> bool {
        if self.takes("(") {
            let holds = self.either();
            return self.takes(")") && holds;
        }
        let Some((name, rest)) = self.words.split_first() else {
            return false;
        };
        self.words = rest;
        let mut name = (*name).to_owned();
        if let ["WITH", exception, rest @ ..] = self.words {
            name = format!("{name} WITH {exception}");
            self.words = rest;
        }
        self.allowed.contains(&name)
    }

    fn takes(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_met_by_allowed_licences() {
        let allowed = ["MIT", "Apache-2.0", "Zlib", "X WITH y"].map(str::to_owned);
        let is_met = |expression| is_allowed(expression, &allowed);
        for expression in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/GPL-3.0",
            "(GPL-3.0 OR MIT) AND Zlib",
            "X WITH y",
            "GPL-3.0 AND Foo OR Zlib",
        ] {
            assert!(is_met(expression), "{expression}");
        }
        for expression in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR Zlib) AND GPL-3.0",
            "X",
            "MIT Zlib",
            "(MIT",
        ] {
            assert!(!is_met(expression), "{expression}");
        }
    }

    fn package(license: Option<&str>, source: Option<&str>, req: &str) -> Package {
        Package {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            dependencies: vec![Dependency {
                name: "b".to_owned(),
                req: req.to_owned(),
                path: None,
            }],
        }
    }

    #[test]
    fn strange_licences_sources_and_wildcards_are_found() {
        let told = |package| complaints(&[package], &["MIT".to_owned()]);
        assert_eq!(told(package(Some("MIT"), None, "^1")), Vec::<String>::new());
        let from = Some(REGISTRY);
        assert_eq!(told(package(Some("MIT"), from, "*")), Vec::<String>::new());
        assert_eq!(told(package(None, from, "^1")).len(), 1);
        assert_eq!(told(package(Some("Other"), from, "^1")).len(), 1);
        assert_eq!(told(package(Some("MIT"), Some("git+x"), "^1")).len(), 1);
        assert_eq!(told(package(Some("MIT"), None, "*")).len(), 1);
    }
}
