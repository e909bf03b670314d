//! The page of a hardened program's log: what it survived, where, at what price, and how to find the bugs behind it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::html::{escaped, static_page};
use super::plot::bars;
use crate::recovery_log::{Log, Site, Survived};
use crate::words::counted;

/// The whole page.
pub fn document(name: &str, log: &Log) -> String {
    let body = [overview(name, log), sites(log), deadlocks(log), bugs(log)].concat();
    static_page(&format!("what {name} survived"), &body)
}

fn overview(name: &str, log: &Log) -> String {
    let sum = |of: fn(&Survived) -> u64| log.sites.values().map(of).sum::<u64>();
    let lost = sum(|site| site.not_recovered);
    let told: u64 = log.deadlocks.values().sum();
    let state = if lost + told > 0 { "error" } else { "note" };
    let mut text = format!(
        "<section class=\"finding {state}\"><h2>{}</h2><ul class=\"badges\"><li>{} recovered from</li><li class=\"{state}\">{lost} not</li><li>{} told</li><li>{}</li></ul>",
        escaped(name),
        counted(sum(|site| site.recovered), "failure"),
        counted(told, "deadlock"),
        counted(u64::try_from(log.sites.len()).unwrap_or(u64::MAX), "place"),
    );
    for summary in &log.summaries {
        write!(
            text,
            "<p class=\"why\">At its end: {}</p>",
            escaped(summary)
        )
        .expect("a string takes everything");
    }
    if log.others > 0 {
        let lines = counted(log.others, "line");
        write!(text, "<p>{lines} of the runtime say something else.</p>")
            .expect("a string takes everything");
    }
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for (site, survived) in &log.sites {
        *kinds.entry(&site.kind).or_default() += survived.recovered;
    }
    let rows = kinds.into_iter();
    let rows: Vec<(String, u64, String)> = rows
        .map(|(kind, count)| (kind.to_owned(), count, count.to_string()))
        .collect();
    if !rows.is_empty() {
        text.push_str(&bars("Recoveries by kind of failure", &rows));
    }
    text + "</section>"
}

/// A row for each place, those with most recoveries first.
fn sites(log: &Log) -> String {
    if log.sites.is_empty() {
        return "<p>No failure was recovered from.</p>".to_owned();
    }
    let mut text = String::from(
        "<table class=\"figures\"><caption>Where failures were noticed</caption><thead><tr><th scope=\"col\">place</th><th scope=\"col\">function</th><th scope=\"col\">kind</th><th scope=\"col\">recovered</th><th scope=\"col\">not</th><th scope=\"col\">retries at most</th><th scope=\"col\">median</th><th scope=\"col\">longest</th></tr></thead><tbody>",
    );
    for (site, survived) in by_recoveries(log) {
        let mut times = survived.microseconds.clone();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied();
        write!(
            text,
            "<tr><th scope=\"row\">{}:{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&site.file),
            site.line,
            escaped(&site.function),
            escaped(&site.kind),
            survived.recovered,
            survived.not_recovered,
            survived.most_retries,
            duration(median),
            duration(times.last().copied()),
        )
        .expect("a string takes everything");
    }
    text + "</tbody></table>"
}

fn by_recoveries(log: &Log) -> Vec<(&Site, &Survived)> {
    let mut sites: Vec<(&Site, &Survived)> = log.sites.iter().collect();
    sites.sort_by_key(|(_, survived)| std::cmp::Reverse(survived.recovered));
    sites
}

fn duration(microseconds: Option<u64>) -> String {
    match microseconds {
        None => "-".to_owned(),
        Some(few @ 0..10_000) => format!("{few} µs"),
        Some(many) => format!("{} ms", many / 1000),
    }
}

fn deadlocks(log: &Log) -> String {
    if log.deadlocks.is_empty() {
        return String::new();
    }
    let mut text = String::from("<h3>Deadlocks that were told</h3><ul class=\"list\">");
    for (said, count) in &log.deadlocks {
        let said = escaped(said);
        write!(text, "<li>{said} (seen {})</li>", counted(*count, "time"))
            .expect("a string takes everything");
    }
    text + "</ul>"
}

/// What was survived is still a bug: the command that looks for it, for each place.
fn bugs(log: &Log) -> String {
    if log.sites.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<h3>From a recovery to its bug</h3><p>What was survived is still a bug. With a build that is not hardened:</p><ul class=\"list\">",
    );
    for (site, _) in by_recoveries(log) {
        let Site {
            file,
            line,
            function,
            ..
        } = site;
        let place = format!("{file}:{line} ({function})").replace('\'', "'\\''");
        let command = format!("raddle explore --site '{place}' -- PROGRAM");
        write!(text, "<li><pre>{}</pre></li>", escaped(&command))
            .expect("a string takes everything");
    }
    text + "</ul>"
}

#[cfg(test)]
mod tests {
    use crate::recovery_log::read;

    #[test]
    fn places_stand_in_the_order_of_their_recoveries() {
        let line = |file: &str| {
            format!("raddle-harden: {file}:7 (f): assertion recovered after 2 retries, 50000 us\n")
        };
        let hostile = "raddle-harden: <b>'.c:7 (f): oracle not recovered after 9 retries; the program goes on\n";
        let text = [
            line("rare.c"),
            line("often.c"),
            line("often.c"),
            hostile.to_owned(),
        ]
        .concat();
        let page = super::document("server.log", &read(&text));
        let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}: {page}"));
        assert!(at("<th scope=\"row\">often.c:7</th>") < at("<th scope=\"row\">rare.c:7</th>"));
        assert!(
            page.contains("<li>3 failures recovered from</li>"),
            "{page}"
        );
        assert!(page.contains("<td>50 ms</td>"), "{page}");
        assert!(!page.contains("<b>"), "{page}");
        assert!(page.contains("--site 'often.c:7 (f)'"), "{page}");
    }
}
