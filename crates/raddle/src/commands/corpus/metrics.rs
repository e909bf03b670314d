//! Figures of a campaign for a collector of metrics, in the text form of OpenMetrics 1.0.

use super::place::Place;
use super::state::{State, SubjectState};
use crate::keep;

/// Rewrites the file that a collector may read at any time.
pub(super) fn write(place: &Place, state: &State) -> anyhow::Result<()> {
    keep::write(&place.folder().join("metrics.txt"), text(state).as_bytes())
}

type Figure = fn(&SubjectState) -> u64;

/// Name, kind, what it says, and its value for a subject. Counters never fall.
const FIGURES: [(&str, &str, &str, Figure); 9] = [
    ("rounds", "counter", "Rounds that are over.", |s| s.rounds),
    ("schedules", "counter", "Schedules of these rounds.", |s| {
        s.schedules
    }),
    (
        "schedules_failing",
        "counter",
        "Schedules that failed.",
        |s| s.failing,
    ),
    (
        "instructions",
        "counter",
        "Instructions of all schedules.",
        |s| s.steps,
    ),
    (
        "cpu_milliseconds",
        "counter",
        "Time of processors that rounds took.",
        |s| s.cpu_milliseconds,
    ),
    ("classes", "counter", "Different reads-from classes.", |s| {
        s.classes
    }),
    ("points", "gauge", "Communication points.", |s| s.points),
    (
        "findings",
        "gauge",
        "Different findings, known ones included.",
        |s| u64::try_from(s.findings.len()).unwrap_or(u64::MAX),
    ),
    (
        "trouble",
        "gauge",
        "1 if the subject cannot be explored.",
        |s| u64::from(s.trouble.is_some()),
    ),
];

pub(super) fn text(state: &State) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in FIGURES {
        let name = format!("raddle_campaign_{name}");
        text.push_str(&format!("# TYPE {name} {kind}\n# HELP {name} {help}\n"));
        let sample = if kind == "counter" { "_total" } else { "" };
        for subject in &state.subjects {
            // Names of campaigns and subjects have no character that would have to be escaped.
            text.push_str(&format!(
                "{name}{sample}{{campaign=\"{}\",subject=\"{}\"}} {}\n",
                state.name,
                subject.name,
                value(subject)
            ));
        }
    }
    text.push_str("# EOF\n");
    text
}

#[cfg(test)]
mod tests {
    use super::super::state::{Cost, VERSION};
    use super::*;

    #[test]
    fn every_figure_has_its_type_and_the_text_its_end() {
        let subject = |name: &str, classes| SubjectState {
            name: name.into(),
            classes,
            ..SubjectState::default()
        };
        let state = State {
            version: VERSION,
            name: "nightly".into(),
            seed: 0,
            round_schedules: 1,
            round_time: 1,
            cost: Cost::Time,
            rounds: 0,
            subjects: vec![subject("a", 3), subject("b", 4)],
        };
        let text = text(&state);
        assert!(
            text.contains("# TYPE raddle_campaign_classes counter\n"),
            "{text}"
        );
        assert!(
            text.contains("raddle_campaign_classes_total{campaign=\"nightly\",subject=\"b\"} 4\n"),
            "{text}"
        );
        assert!(text.contains("raddle_campaign_points{campaign"), "{text}");
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        assert_eq!(text.lines().count(), FIGURES.len() * 4 + 1);
    }
}
