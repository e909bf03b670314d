//! The page of campaigns: what was found when, how much was seen, how fast, and what was not explored.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::html::{escaped, static_page};
use super::plot::{Curve, bars, curves, duration};
use crate::campaign_log::{Campaign, End, Generation, TimeSplit};
use crate::words::counted;

/// The whole page.
pub fn document(name: &str, campaigns: &[Campaign]) -> String {
    let mut body = overview(campaigns);
    for (campaign, number) in campaigns.iter().zip(1..) {
        body.push_str(&section(campaign, number));
    }
    static_page(&format!("campaigns of {name}"), &body)
}

/// One row for each campaign, if there are several.
fn overview(campaigns: &[Campaign]) -> String {
    if campaigns.len() < 2 {
        return String::new();
    }
    let mut table = String::from(
        "<table class=\"figures\"><caption>Campaigns</caption><thead><tr><th scope=\"col\">name</th><th scope=\"col\">findings</th><th scope=\"col\">schedules</th><th scope=\"col\">distinct</th><th scope=\"col\">time</th></tr></thead><tbody>",
    );
    for (campaign, number) in campaigns.iter().zip(1..) {
        let last = last(campaign);
        write!(
            table,
            "<tr><th scope=\"row\"><a href=\"#campaign{number}\">{}</a></th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&campaign.begin.name),
            kinds(campaign).values().sum::<u64>(),
            last.schedules,
            last.distinct,
            duration(milliseconds(campaign))
        )
        .expect("a string takes everything");
    }
    table + "</tbody></table>"
}

fn section(campaign: &Campaign, number: usize) -> String {
    let all = milliseconds(campaign);
    let last = last(campaign);
    let rate = u128::from(last.schedules) * 1000 / u128::from(all.max(1));
    let failures: u64 = kinds(campaign).values().sum();
    let state = if failures > 0 { "error" } else { "note" };
    let mut text = format!(
        "<section class=\"finding {state}\" id=\"campaign{number}\"><h2>{}</h2><ul class=\"badges\"><li class=\"{state}\">{}</li><li>{}</li><li>{}</li><li>{rate} schedules/s</li><li>seed {}</li></ul>",
        escaped(&campaign.begin.name),
        counted(failures, "finding"),
        counted(last.schedules, "schedule"),
        duration(all),
        campaign.begin.seed
    );
    match &campaign.end {
        Some(end) => write!(text, "<p class=\"why\">{}</p>", escaped(&end.summary)),
        None => write!(
            text,
            "<p class=\"why\">The log ends before the campaign does: it was killed, or is still under way.</p>"
        ),
    }
    .expect("a string takes everything");
    text.push_str(&found(campaign));
    text.push_str("<h3>Over time</h3><div class=\"plots\">");
    text.push_str(&plots(campaign, all));
    text.push_str("</div>");
    if let Some(end) = &campaign.end {
        text.push_str(&time_split(end.time));
        text.push_str(&not_explored(end));
    }
    text + "</section>"
}

/// Findings by kind, and each with how to have it again.
fn found(campaign: &Campaign) -> String {
    let kinds = kinds(campaign);
    if kinds.is_empty() {
        return String::from("<p>Nothing was found.</p>");
    }
    let rows: Vec<(String, u64, String)> = kinds
        .iter()
        .map(|(kind, count)| ((*kind).to_owned(), *count, count.to_string()))
        .collect();
    let mut text = bars("Findings by kind", &rows);
    text.push_str("<ul class=\"list\">");
    match &campaign.end {
        Some(end) => {
            for finding in &end.findings {
                let title = escaped(&finding.title);
                let id = escaped(&finding.id);
                write!(text, "<li>{title} <span class=\"mono\">{id}</span>")
                    .expect("a string takes everything");
                if let Some(command) = &finding.command {
                    write!(text, "<pre>{}</pre>", escaped(command))
                        .expect("a string takes everything");
                }
                text.push_str("</li>");
            }
        }
        None => {
            for failure in &campaign.failures {
                let (title, at) = (escaped(&failure.title), duration(failure.milliseconds));
                write!(text, "<li>{title} (after {at})</li>").expect("a string takes everything");
            }
        }
    }
    text + "</ul>"
}

fn plots(campaign: &Campaign, all: u64) -> String {
    let over_time = |value: fn(&Generation) -> u64| {
        let points = campaign.generations.iter();
        let points = points.map(|generation| (generation.milliseconds, value(generation)));
        points.collect::<Vec<_>>()
    };
    let curve = |name, value| Curve {
        name,
        points: over_time(value),
    };
    let mut found: Vec<(u64, u64)> = vec![(0, 0)];
    for (failure, count) in campaign.failures.iter().zip(1..) {
        found.push((failure.milliseconds, count));
    }
    found.push((all, found.last().map_or(0, |(_, count)| *count)));
    let behaviours = [
        curve("distinct schedules", |at| at.distinct),
        curve("reads-from classes", |at| at.classes),
    ];
    let points = [
        curve("communication points", |at| at.points),
        curve("interrupted at", |at| at.interrupted),
    ];
    let failures = Curve {
        name: "different failures",
        points: found,
    };
    let speed = Curve {
        name: "schedules per second, at last",
        points: speed(&campaign.generations),
    };
    [
        curves("Different failures", &[failures], all),
        curves("Distinct behaviours", &behaviours, all),
        curves("Coverage of communication points", &points, all),
        curves("Speed", &[speed], all),
    ]
    .concat()
}

/// Schedules per second between one line and the next; what took less than a hundredth of the time is joined, since
/// short spans have no speed worth a look.
fn speed(generations: &[Generation]) -> Vec<(u64, u64)> {
    let all = generations.last().map_or(0, |last| last.milliseconds);
    let least = (all / 100).max(1);
    let mut before = Generation::default();
    let mut points = Vec::new();
    for now in generations {
        let span = now.milliseconds.saturating_sub(before.milliseconds);
        if span < least {
            continue;
        }
        let count = now.schedules.saturating_sub(before.schedules);
        let rate = count.saturating_mul(1000) / span;
        if points.is_empty() {
            points.push((before.milliseconds, rate));
        }
        points.push((now.milliseconds, rate));
        before = *now;
    }
    points
}

fn time_split(time: TimeSplit) -> String {
    let TimeSplit {
        restore,
        run,
        detect,
        plan,
    } = time;
    let all = restore + run + detect + plan;
    if all == 0 {
        return String::new();
    }
    let parts = [
        ("restoring the snapshot", restore),
        ("running", run),
        ("detectors", detect),
        ("planning", plan),
    ];
    let row = |(name, part): (&str, u64)| {
        let percent = part * 100 / all;
        (
            name.to_owned(),
            part,
            format!("{percent} % ({})", duration(part)),
        )
    };
    let rows: Vec<(String, u64, String)> = parts.into_iter().map(row).collect();
    bars("Where the time went, of all workers together", &rows)
}

fn not_explored(end: &End) -> String {
    let mut text = String::from("<h3>What was not explored</h3>");
    if end.not_explored.is_empty() {
        return text + "<p>Nothing is known that was left out.</p>";
    }
    text.push_str("<ul class=\"list\">");
    for what in &end.not_explored {
        write!(text, "<li>{}</li>", escaped(what)).expect("a string takes everything");
    }
    text + "</ul>"
}

/// How many findings of each kind there are; failures as they were seen if the campaign has no end.
fn kinds(campaign: &Campaign) -> BTreeMap<&str, u64> {
    let mut kinds = BTreeMap::new();
    let explained = campaign.end.iter().flat_map(|end| &end.findings);
    let seen = campaign.failures.iter().filter(|_| campaign.end.is_none());
    let explained = explained.map(|finding| finding.kind.as_str());
    for kind in explained.chain(seen.map(|failure| failure.kind.as_str())) {
        *kinds.entry(kind).or_insert(0) += 1;
    }
    kinds
}

fn last(campaign: &Campaign) -> Generation {
    let last = campaign.generations.last().copied().unwrap_or_default();
    campaign.end.as_ref().map_or(last, |end| end.last)
}

fn milliseconds(campaign: &Campaign) -> u64 {
    let last = campaign.generations.last();
    let last = last.map_or(0, |generation| generation.milliseconds);
    campaign.end.as_ref().map_or(last, |end| end.milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign_log::{Begin, Failure, FindingLine, VERSION};

    fn campaign(generations: u64, end: Option<End>) -> Campaign {
        Campaign {
            begin: Begin {
                version: VERSION,
                name: "<img src=x>".into(),
                seed: 7,
            },
            generations: (1..=generations)
                .map(|number| Generation {
                    milliseconds: number * 20,
                    schedules: number * 64,
                    distinct: number * 40,
                    classes: number,
                    points: 30,
                    interrupted: number.min(25),
                    failures: 1,
                })
                .collect(),
            failures: vec![Failure {
                milliseconds: 30,
                kind: "assertion".into(),
                title: "assertion failed: <b>".into(),
            }],
            end,
        }
    }

    fn end() -> End {
        End {
            milliseconds: 2500,
            findings: vec![FindingLine {
                id: "A-1c9e".into(),
                kind: "assertion".into(),
                title: "assertion failed".into(),
                command: Some("raddle replay a.raddle".into()),
            }],
            time: TimeSplit {
                restore: 10,
                run: 70,
                detect: 15,
                plan: 5,
            },
            not_explored: vec!["not every single delay was tried".into()],
            summary: "explored 6400 schedules".into(),
            ..End::default()
        }
    }

    #[test]
    fn a_campaign_is_drawn_with_what_was_not_explored() {
        let page = document("log", &[campaign(100, Some(end()))]);
        for part in [
            "Findings by kind",
            "raddle replay a.raddle",
            "aria-label=\"Distinct behaviours: distinct schedules 4000, reads-from classes 100\"",
            "schedules per second, at last 3200",
            "70 % (70 ms)",
            "<li>not every single delay was tried</li>",
            "<li>seed 7</li>",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        assert!(!page.contains("<img"), "names are no markup");
        assert!(!page.contains("<script"), "nothing runs");
    }

    #[test]
    fn a_campaign_that_was_killed_shows_what_it_saw() {
        let page = document("log", &[campaign(3, None), campaign(0, Some(end()))]);
        for part in [
            "The log ends before the campaign does",
            "assertion failed: &lt;b&gt; (after 30 ms)",
            "<a href=\"#campaign2\">",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
    }

    /// A million schedules in generations of 64.
    #[test]
    fn the_page_of_a_long_campaign_is_small() {
        let page = document("log", &[campaign(1_000_000 / 64, Some(end()))]);
        assert!(page.len() < 100_000, "{} bytes", page.len());
    }
}
