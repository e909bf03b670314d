//! A kind of finding: its name and what it means.

use raddle_report::render::sarif;

/// Name, one line, what to do.
pub(super) type Kind = (&'static str, &'static str, &'static str);

/// The kinds as rules of a SARIF document.
pub(super) fn rules(kinds: &[Kind]) -> Vec<sarif::Rule> {
    let rule = |(name, title, about): &Kind| sarif::Rule {
        name: (*name).to_owned(),
        title: (*title).to_owned(),
        about: (*about).to_owned(),
    };
    kinds.iter().map(rule).collect()
}

/// The kinds with their texts, for `raddle explain`.
pub(super) fn explanations(kinds: &[Kind]) -> Vec<(String, String)> {
    let text =
        |(name, title, about): &Kind| ((*name).to_owned(), format!("{name}: {title}\n\n{about}"));
    kinds.iter().map(text).collect()
}
