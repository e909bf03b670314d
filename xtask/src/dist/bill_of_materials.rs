//! What is built into the programs, in CycloneDX's form: every package that `raddle` needs at run time, from the same
//! lock file as the build.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::json;

use super::{TARGET, output};
use crate::shell;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `build` and `dev` are not part of the program; a part of it has no word here.
    kind: Option<String>,
}

pub(super) fn write(to: &Path, version: &str) -> anyhow::Result<()> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", TARGET])
        .current_dir(shell::root());
    let metadata: Metadata = serde_json::from_slice(&output(&mut cargo)?)
        .context("cannot read what `cargo metadata` printed")?;
    let document = document(&metadata, version)?;
    fs::write(to, serde_json::to_string_pretty(&document)? + "\n")?;
    Ok(())
}

fn document(metadata: &Metadata, version: &str) -> anyhow::Result<serde_json::Value> {
    let root = metadata
        .packages
        .iter()
        .find(|package| package.name == "raddle")
        .context("the workspace has no package raddle")?;
    let needed = needed(&root.id, &metadata.resolve);
    let mut parts: Vec<&Package> = metadata
        .packages
        .iter()
        .filter(|package| package.id != root.id && needed.contains(package.id.as_str()))
        .collect();
    parts.sort_by_key(|part| (&part.name, &part.version));
    let components: Vec<serde_json::Value> = parts.into_iter().map(component).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "raddle", "version": version } },
        "components": components,
    }))
}

/// All packages that are reached from `root` without build scripts, macros of tests and the like.
fn needed<'a>(root: &'a str, resolve: &'a Resolve) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<&str, &Node> = resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut reached = BTreeSet::from([root]);
    let mut left = vec![root];
    while let Some(id) = left.pop() {
        let dependencies = nodes.get(id).map_or(&[][..], |node| &node.deps);
        for dependency in dependencies {
            let is_part = dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
            if is_part && reached.insert(&dependency.pkg) {
                left.push(&dependency.pkg);
            }
        }
    }
    reached
}

fn component(package: &Package) -> serde_json::Value {
    let mut value = json!({
        "type": "library",
        "name": package.name,
        "version": package.version,
    });
    if let Some(license) = &package.license {
        // Cargo's older form of "or" is none of SPDX's.
        let expression = license.replace('/', " OR ");
        value["licenses"] = json!([{ "expression": expression }]);
    }
    if package.source.is_some() {
        value["purl"] = json!(format!("pkg:cargo/{}@{}", package.name, package.version));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_is_listed() {
        let metadata: Metadata = serde_json::from_value(json!({
            "packages": [
                { "id": "r", "name": "raddle", "version": "1.0.0", "license": null, "source": null },
                { "id": "a", "name": "a", "version": "2.0.0", "license": "MIT/Apache-2.0", "source": "registry" },
                { "id": "b", "name": "b", "version": "3.0.0", "license": "MIT", "source": "registry" },
                { "id": "c", "name": "c", "version": "4.0.0", "license": "MIT", "source": "registry" },
            ],
            "resolve": { "nodes": [
                { "id": "r", "deps": [
                    { "pkg": "a", "dep_kinds": [{ "kind": null }, { "kind": "dev" }] },
                    { "pkg": "b", "dep_kinds": [{ "kind": "build" }] },
                ] },
                { "id": "a", "deps": [] },
                { "id": "b", "deps": [{ "pkg": "c", "dep_kinds": [{ "kind": null }] }] },
                { "id": "c", "deps": [] },
            ] },
        }))
        .unwrap();
        let document = document(&metadata, "1.0.0").unwrap();
        let components = document["components"].as_array().unwrap();
        assert_eq!(components.len(), 1);
        assert_eq!(components[0]["purl"], "pkg:cargo/a@2.0.0");
        assert_eq!(
            components[0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
    }
}
