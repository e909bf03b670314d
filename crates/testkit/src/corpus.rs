//! The buggy programs of the corpus and their fixed twins.

use std::path::{Path, PathBuf};

use crate::compile::compile_copy;
use crate::folders::root;

/// The folder of a case, such as `mysql/query_null`.
pub fn case(name: &str) -> PathBuf {
    root().join("corpus").join(name)
}

/// What `case.toml` says.
pub fn description(case: &Path) -> toml::Table {
    let path = case.join("case.toml");
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().expect("the description is TOML")
}

/// Compiles a variant of a case into a folder; the program has the name of the variant.
#[track_caller]
pub fn build(name: &str, variant: &str, folder: &Path) -> PathBuf {
    let case = case(name);
    let description = description(&case);
    let language = description.get("language").and_then(toml::Value::as_str);
    let (standard, ending): (&[&str], &str) = match language.unwrap_or("c") {
        "c++" => (&["-O1", "-g", "-std=c++20", "-pthread"], "cpp"),
        "rust" => (&["-O", "-g"], "rs"),
        _ => (&["-O1", "-g", "-pthread"], "c"),
    };
    let own = description.get("flags").and_then(toml::Value::as_array);
    let own = own
        .into_iter()
        .flatten()
        .filter_map(|flag| flag.as_str().filter(|flag| !flag.is_empty()));
    let flags: Vec<&str> = standard.iter().copied().chain(own).collect();
    let source = case.join(format!("{variant}.{ending}"));
    compile_copy(&source, &folder.join(variant), &flags)
}
