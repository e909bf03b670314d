//! The judged sample: how many findings of a pattern are true.
//!
//! The sample is data (`judged.toml`). It decides how many findings of a pattern are shown by default, and
//! which patterns may report errors.

use raddle_report::Severity;
use serde::Deserialize;

const JUDGED: &str = include_str!("../judged.toml");

/// Judgements from which a share is computed at all.
const SAMPLE_MIN: u32 = 5;
/// Judgements after which a pattern of which none was true is not shown.
const NONE_TRUE_MIN: u32 = 3;
/// The share of true findings in percent from which a pattern reports errors.
const ERROR_PERCENT: u32 = 80;

#[derive(Debug, Deserialize)]
struct Sample {
    finding: Vec<Judged>,
}

/// One finding that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// File and line of the first step.
    pub place: String,
    pub pattern: String,
    pub verdict: Verdict,
    pub why: String,
    /// It is not reported any more, mostly because the cause of a false one was removed, and does not count.
    #[serde(default)]
    pub gone: bool,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The described interleaving can happen and has a wrong effect.
    True,
    /// It can happen, but is harmless or meant so.
    Benign,
    /// It cannot happen.
    False,
}

/// The sample.
pub fn judged() -> Vec<Judged> {
    let sample: Sample = toml::from_str(JUDGED).expect("the shipped sample is tested");
    sample.finding
}

/// What the sample says about one pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Share {
    all: u32,
    of_true: u32,
    /// The pattern is the user's own: only the user judges it.
    is_own: bool,
}

impl Share {
    pub(crate) fn new(sample: &[Judged], pattern: &str, is_own: bool) -> Self {
        let mut share = Self {
            is_own,
            ..Self::default()
        };
        let counts = |judged: &&Judged| judged.pattern == pattern && !judged.gone;
        for judged in sample.iter().filter(counts) {
            share.all += 1;
            share.of_true += u32::from(judged.verdict == Verdict::True);
        }
        share
    }

    /// The share of true findings in percent, if enough were judged.
    pub(crate) fn percent(self) -> Option<u32> {
        (self.all >= SAMPLE_MIN).then(|| self.of_true * 100 / self.all)
    }

    /// How many of `limit` findings are shown without being asked for: none of a pattern that is mostly wrong,
    /// or that only takes note of something and was not judged.
    pub(crate) fn limit(self, limit: usize, wanted: Severity) -> usize {
        match self.percent() {
            _ if self.is_own => limit,
            Some(80..) => limit,
            Some(50..) => limit / 2,
            None if wanted == Severity::Note => 0,
            None if self.all >= NONE_TRUE_MIN && self.of_true == 0 => 0,
            None => limit / 4,
            Some(_) => 0,
        }
    }

    /// An error is what is nearly always true.
    pub(crate) fn severity(self, wanted: Severity) -> Severity {
        match self.percent() {
            _ if self.is_own => wanted,
            Some(percent) if percent >= ERROR_PERCENT => wanted,
            _ if wanted == Severity::Error => Severity::Warning,
            _ => wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_speaks_of_shipped_patterns() {
        let patterns = crate::list_patterns(&crate::shipped_files()).unwrap();
        for judged in judged() {
            let name = &judged.pattern;
            assert!(
                patterns.iter().any(|pattern| pattern.name == *name),
                "{name}"
            );
            assert!(judged.why.len() > 10, "{} has no reason", judged.place);
        }
    }

    #[test]
    fn nothing_is_shown_of_what_is_seldom_true() {
        let judged = |verdict| Judged {
            place: "a.c:1".to_owned(),
            pattern: "p".to_owned(),
            verdict,
            why: String::new(),
            gone: false,
        };
        let mut sample = vec![judged(Verdict::False); 4];
        assert_eq!(Share::new(&sample, "p", false).percent(), None);
        let never = Share::new(&sample, "p", false);
        assert_eq!(never.limit(160, Severity::Warning), 0);
        let begun = Share::new(&sample[..2], "p", false);
        assert_eq!(begun.limit(160, Severity::Warning), 40);
        sample.push(judged(Verdict::True));
        let share = Share::new(&sample, "p", false);
        assert_eq!(share.percent(), Some(20));
        assert_eq!(share.limit(160, Severity::Error), 0);
        assert_eq!(share.severity(Severity::Error), Severity::Warning);
        let sure = Share::new(&vec![judged(Verdict::True); 5], "p", false);
        assert_eq!(sure.limit(160, Severity::Error), 160);
        let unknown = Share::new(&[], "p", false);
        assert_eq!(unknown.limit(160, Severity::Warning), 40);
        assert_eq!(unknown.limit(160, Severity::Note), 0);
        assert_eq!(sure.severity(Severity::Error), Severity::Error);
    }
}
