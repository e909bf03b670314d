//! Test cases to begin with.

/// A template: name, what it is about, text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(Template {
            name: $name,
            text: include_str!(concat!("../../templates/", $name, ".ktest")),
        }),*]
    };
}

/// All templates, sorted by name.
pub const TEMPLATES: &[Template] = templates![
    "epoll", "fs", "futex", "inotify", "module", "pipe", "procfs", "sem", "signal", "socket",
    "timer", "tmpfs",
];

/// The template with this name.
pub fn template(name: &str) -> Option<Template> {
    TEMPLATES
        .iter()
        .find(|template| template.name == name)
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_case::TestCase;

    #[test]
    fn every_template_is_a_test_case() {
        assert!(TEMPLATES.is_sorted_by_key(|template| template.name));
        for template in TEMPLATES {
            let parsed = TestCase::parse(template.name, template.text, &mut |_| Ok(vec![0; 64]));
            let case = parsed.unwrap_or_else(|error| panic!("{error}"));
            assert!(case.threads.len() >= 2, "{}", template.name);
            assert!(!case.description().is_empty(), "{}", template.name);
        }
    }
}
