//! Findings that a project does not want to see: `[[suppress]]` for what runs show, `[[scan.suppress]]` for sources.

use serde::Deserialize;

use raddle_stdx::glob_matches;

/// Leaves findings out; all given parts must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Suppression {
    /// Kind of finding.
    pub kind: Option<String>,
    /// Fingerprint, or the beginning of one.
    pub fingerprint: Option<String>,
    /// File, with `*` for any characters.
    pub file: Option<String>,
    /// Function of any step.
    pub function: Option<String>,
    /// Shared object.
    pub object: Option<String>,
    /// Why; shown with what was left out.
    pub reason: String,
}

/// What of a finding decides whether it is left out.
#[derive(Debug, Clone, Copy)]
pub struct Traits<'a> {
    pub kind: &'a str,
    pub fingerprint: &'a str,
    /// Files and functions of its steps.
    pub places: &'a [(&'a str, &'a str)],
    pub objects: &'a [String],
}

impl Suppression {
    /// Whether a finding is meant.
    pub fn fits(&self, finding: Traits<'_>) -> bool {
        let fits = |wanted: &Option<String>, test: &dyn Fn(&str) -> bool| {
            wanted.as_ref().is_none_or(|wanted| test(wanted))
        };
        fits(&self.kind, &|kind| kind == finding.kind)
            && fits(&self.fingerprint, &|start| {
                finding.fingerprint.starts_with(start)
            })
            && fits(&self.file, &|glob| {
                let mut files = finding.places.iter();
                files.any(|(file, _)| glob_matches(glob.as_bytes(), file.as_bytes()))
            })
            && fits(&self.function, &|name| {
                let mut functions = finding.places.iter();
                functions.any(|(_, function)| *function == name)
            })
            && fits(&self.object, &|name| {
                finding.objects.iter().any(|object| object == name)
            })
    }

    /// Whether it says at all what it leaves out.
    pub fn says_what(&self) -> bool {
        self.kind.is_some()
            || self.fingerprint.is_some()
            || self.file.is_some()
            || self.function.is_some()
            || self.object.is_some()
    }
}

impl std::fmt::Display for Suppression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("kind", &self.kind),
            ("fingerprint", &self.fingerprint),
            ("file", &self.file),
            ("function", &self.function),
            ("object", &self.object),
        ];
        let given = parts
            .iter()
            .filter_map(|(name, value)| Some(format!("{name} = \"{}\"", value.as_ref()?)));
        f.write_str(&given.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_given_parts_must_fit() {
        let places = [("src/queue.c", "push"), ("src/queue.c", "pop")];
        let objects = ["head".to_owned()];
        let finding = Traits {
            kind: "data-race",
            fingerprint: "1c9e77",
            places: &places,
            objects: &objects,
        };
        let rule = Suppression {
            kind: Some("data-race".into()),
            file: Some("src/*.c".into()),
            reason: "counters".into(),
            ..Suppression::default()
        };
        assert!(rule.fits(finding));
        let other = Suppression {
            function: Some("peek".into()),
            ..rule.clone()
        };
        assert!(!other.fits(finding));
        assert_eq!(rule.to_string(), "kind = \"data-race\", file = \"src/*.c\"");
        assert!(rule.says_what() && !Suppression::default().says_what());
    }
}
