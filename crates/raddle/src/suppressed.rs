//! Findings of runs that the project's `raddle.toml` leaves out.

use anyhow::bail;
use raddle_campaign::Report;
use raddle_config::suppress::{Suppression, Traits};
use raddle_report::Finding;

/// The rules of a project, and how often each was used.
#[derive(Debug, Default)]
pub(crate) struct Suppressions {
    rules: Vec<(Suppression, u64)>,
}

impl Suppressions {
    /// # Errors
    /// If a rule gives no reason, or would leave out everything.
    pub(crate) fn new(rules: Vec<Suppression>) -> anyhow::Result<Self> {
        for rule in &rules {
            if rule.reason.trim().is_empty() {
                bail!(
                    "a `[[suppress]]` of raddle.toml ({rule}) gives no reason: add `reason = \"...\"`"
                );
            }
            if !rule.says_what() {
                bail!(
                    "a `[[suppress]]` of raddle.toml (reason: {}) would leave out every finding: give a kind, fingerprint, file, function or object",
                    rule.reason
                );
            }
        }
        Ok(Self {
            rules: rules.into_iter().map(|rule| (rule, 0)).collect(),
        })
    }

    /// Takes findings that are not wanted out of a report; gives their fingerprints.
    pub(crate) fn apply<R, T>(&mut self, report: &mut Report<R, T>) -> Vec<String> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let mut gone = Vec::new();
        report
            .findings
            .retain(|found| !self.leaves_out(&found.finding, &mut gone));
        report
            .races
            .retain(|race| !self.leaves_out(&race.finding, &mut gone));
        gone
    }

    fn leaves_out(&mut self, finding: &Finding, gone: &mut Vec<String>) -> bool {
        let places: Vec<(&str, &str)> = finding
            .steps
            .iter()
            .map(|step| (step.place.file.as_str(), step.place.function.as_str()))
            .collect();
        let traits = Traits {
            kind: &finding.kind,
            fingerprint: &finding.fingerprint,
            places: &places,
            objects: &finding.objects,
        };
        let rule = self.rules.iter_mut().find(|(rule, _)| rule.fits(traits));
        match rule {
            Some((_, uses)) => {
                *uses += 1;
                gone.push(finding.fingerprint.clone());
                true
            }
            None => false,
        }
    }

    /// What was left out and why, and which rules left out nothing: lines for the end of the report.
    pub(crate) fn account(&self) -> Vec<String> {
        let line = |(rule, uses): &(Suppression, u64)| match uses {
            0 => format!(
                "unused suppression in raddle.toml: {rule} ({})",
                rule.reason
            ),
            1 => format!("1 finding suppressed by {rule} ({})", rule.reason),
            more => format!("{more} findings suppressed by {rule} ({})", rule.reason),
        };
        self.rules.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_need_a_reason_and_a_target() {
        let rule = |kind: Option<&str>, reason: &str| Suppression {
            kind: kind.map(str::to_owned),
            reason: reason.into(),
            ..Suppression::default()
        };
        Suppressions::new(vec![rule(Some("hang"), "known")]).unwrap();
        Suppressions::new(vec![rule(Some("hang"), " ")]).unwrap_err();
        Suppressions::new(vec![rule(None, "known")]).unwrap_err();
    }

    #[test]
    fn unused_rules_are_told() {
        let rule = Suppression {
            kind: Some("hang".into()),
            reason: "known".into(),
            ..Suppression::default()
        };
        let rules = Suppressions::new(vec![rule]).unwrap();
        assert_eq!(
            rules.account(),
            ["unused suppression in raddle.toml: kind = \"hang\" (known)"]
        );
    }
}
