//! A page that draws findings: one file without anything from elsewhere, for people who have nothing but a browser.
//!
//! The page holds the findings as data, compressed, and a script of ours that draws them. Texts come from programs that
//! no one vouches for: in base64 the data has no markup, the script makes text nodes of what comes out, and the page's
//! policy runs nothing but that script, which it names by its digest.

mod packed;

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::Results;
use super::choice::choose;
use super::terminal::{self, Style};
use crate::evidence::{Edge, Step};
use crate::finding::{Confidence, Finding};
use packed::Words;

const STYLE: &str = include_str!("../../../assets/report.css");
const SCRIPT: &str = include_str!("../../../assets/report.js");
/// SHA-256 of the two, as the policy of the page names them; a test says what they must be.
const STYLE_DIGEST: &str = "G08EpGZQcDRcbsS5HwCc8xHztUI/QXGIKa7EjWivsI8=";
const SCRIPT_DIGEST: &str = "3n5cUli+DUdOdy47b10cBPITKNhG+qo4tybuK9S7IDk=";
/// Steps of a run that are in the page, the last ones.
const STEPS_MAX: usize = 100_000;

/// The whole page.
pub fn document(results: &Results) -> serde_json::Result<String> {
    let findings = results.findings();
    let mut words = Words::default();
    let page: Vec<Value> = findings
        .iter()
        .map(|finding| page_of(finding, &mut words))
        .collect();
    let data = compressed(&json!({ "findings": page, "words": words.into_json() }))?;
    let title = match findings.as_slice() {
        [one] => escaped(&one.title),
        all => format!("{} findings", all.len()),
    };
    let mut plain = String::new();
    for text in [
        terminal::findings(&findings, Style::PLAIN),
        results.closing.clone(),
    ] {
        write!(plain, "<pre>{}</pre>", escaped(&text)).expect("a string takes everything");
    }
    let suite = escaped(&results.suite);
    Ok(format!(
        "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{STYLE_DIGEST}'; script-src 'sha256-{SCRIPT_DIGEST}'; base-uri 'none'; form-action 'none'\">
<title>raddle: {title}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>raddle: {suite}</h1>
<p class=\"legend keys\">Keys: <kbd>j</kbd> <kbd>k</kbd> or arrows step, <kbd>e</kbd> unfolds all, <kbd>n</kbd> <kbd>p</kbd> go to the next or previous run.</p>
</header>
<main id=\"findings\">{plain}</main>
<footer><pre>{closing}</pre></footer>
<script type=\"application/gzip\" id=\"data\">{data}</script>
<script>{SCRIPT}</script>
</body>
</html>
",
        closing = escaped(results.closing.trim_end()),
    ))
}

/// The data of the page. The same data has the same bytes everywhere: there is no time in it.
fn compressed(data: &Value) -> serde_json::Result<String> {
    let mut packing = GzEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut packing, data)?;
    packing.flush().map_err(serde_json::Error::io)?;
    let packed = packing.finish().map_err(serde_json::Error::io)?;
    Ok(BASE64.encode(packed))
}

/// A finding with everything worded that the page shows.
fn page_of(finding: &Finding, words: &mut Words) -> Value {
    let is_static = finding.confidence < Confidence::Predicted;
    let has_order = finding.steps.iter().any(|step| step.global_step.is_some());
    let is_list = is_static || (!has_order && finding.edges.is_empty() && finding.waits.is_empty());
    let from = finding.steps.len().saturating_sub(STEPS_MAX);
    let left_out = finding.steps_dropped + u64::try_from(from).unwrap_or(u64::MAX);
    let shown = choose(finding).steps;
    let beside = finding.expected.as_ref().map(|run| {
        // The same choice as for the failing run.
        let as_finding = Finding {
            steps: run.steps.clone(),
            edges: run.edges.clone(),
            ..Finding::new("", finding.severity, finding.confidence)
        };
        let shown = choose(&as_finding).steps;
        let title = format!("What should have happened: {}", run.title);
        run_of(finding, &title, (&run.steps, &run.edges), &shown, words)
    });
    let steps = (finding.steps.as_slice(), finding.edges.as_slice());
    json!({
        "id": finding.short_id(),
        "kind": finding.kind,
        "severity": finding.severity,
        "confidence_words": terminal::confidence(finding.confidence),
        "title": finding.title,
        "why": finding.why,
        "contexts": finding.contexts,
        "stacks": finding.stacks,
        "sources": finding.sources,
        "run": run_of(finding, "What happened", steps, &shown, words),
        "beside": beside,
        "waits": finding.waits,
        "serial": finding.serial,
        "notes": terminal::notes_beside_orders(finding),
        "console": finding.console,
        "command": finding.recording.as_ref().map(|recording| &recording.command),
        "is_static": is_static,
        "is_list": is_list,
        "left_out": left_out,
    })
}

fn run_of(
    finding: &Finding,
    title: &str,
    (steps, edges): (&[Step], &[Edge]),
    shown: &[usize],
    words: &mut Words,
) -> Value {
    let from = steps.len().saturating_sub(STEPS_MAX);
    let numbers = shown.iter().filter_map(|number| number.checked_sub(from));
    json!({
        "title": title,
        "steps": packed::columns(finding, &steps[from..], words),
        "edges": packed::edges(edges, from),
        "shown": numbers.collect::<Vec<_>>(),
    })
}

/// A page of ours without a script: what is in it is already drawn.
pub(super) fn static_page(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{STYLE_DIGEST}'; base-uri 'none'; form-action 'none'\">
<title>raddle: {title}</title>
<style>{STYLE}</style>
</head>
<body>
<header><h1>raddle: {title}</h1></header>
<main>{body}</main>
</body>
</html>
"
    )
}

pub(super) fn escaped(text: &str) -> String {
    let text = crate::words::printable(text);
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::render::{Case, project::Project};
    use crate::samples;

    fn page(findings: Vec<Finding>) -> String {
        let case = Case {
            name: "all".into(),
            milliseconds: 1,
            findings,
            skipped: None,
            summary: "explored".into(),
        };
        document(&Results {
            suite: "<b>bank</b>".into(),
            cases: vec![case],
            rules: Vec::new(),
            counts: Value::Null,
            closing: "the <end>\n".into(),
            version: "0.1.0".into(),
            project: Project::new("/project", "/project"),
        })
        .unwrap()
    }

    /// The policy lets nothing run but what it names.
    #[test]
    fn the_policy_names_the_style_and_the_script() {
        for (text, named) in [(STYLE, STYLE_DIGEST), (SCRIPT, SCRIPT_DIGEST)] {
            assert_eq!(BASE64.encode(Sha256::digest(text.as_bytes())), named);
        }
        let text = page(samples::all());
        assert!(text.contains("default-src 'none'"));
        assert!(text.contains(&format!("<script>{SCRIPT}</script>")));
    }

    #[test]
    fn markup_in_names_and_outputs_stays_text() {
        const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--";
        let mut finding = samples::lost_update();
        finding.title = HOSTILE.into();
        finding.console = HOSTILE.into();
        finding.contexts[0].label = HOSTILE.into();
        finding.steps[0].object = Some(HOSTILE.into());
        let text = page(vec![finding]);
        assert!(!text.contains("<img"), "{text}");
        assert!(!text.contains("<!--"), "{text}");
        assert_eq!(text.matches("</script>").count(), 2);
        assert!(text.contains("&lt;b&gt;bank"));
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        let text = page(samples::all());
        for outside in ["src=", "href=\"http", "@import", "url(http"] {
            assert!(!text.contains(outside), "{outside}");
        }
    }

    /// What the browser unpacks.
    fn data(page: &str) -> Value {
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let (packed, _) = rest.split_once('<').unwrap();
        let packed = BASE64.decode(packed).unwrap();
        serde_json::from_reader(flate2::read::GzDecoder::new(packed.as_slice())).unwrap()
    }

    #[test]
    fn orders_and_differences_are_tables_and_no_notes() {
        let mut finding = samples::lost_update();
        finding.serial = Some(samples::serial());
        let data = data(&page(vec![finding]));
        let shown = &data["findings"][0];
        assert_eq!(shown["serial"]["orders"][0]["order"], "A B");
        assert_eq!(shown["serial"]["differences"][0]["seen"], "2");
        let notes = shown["notes"].to_string();
        assert!(!notes.contains("serial order"), "{notes}");
    }

    /// A run of a hundred thousand steps whose values, addresses and instructions all differ.
    #[test]
    fn a_hundred_thousand_steps_are_a_page_below_two_megabytes() {
        let mut finding = samples::lost_update();
        let (mut random, mut global) = (1_u64, 0);
        let steps = finding.steps.clone();
        finding.steps = (0..STEPS_MAX)
            .map(|number| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                global += 1 + (random >> 60);
                let mut step = steps[number % 5].clone();
                step.global_step = Some(global);
                let value = (random >> 32) % 1000;
                step.after = Some(crate::evidence::Value {
                    bits: crate::place::Word(value),
                    size: 4,
                });
                step.address = Some(crate::place::Word(0x5555_5555_0000 + value * 8));
                step
            })
            .collect();
        crate::order::set_clocks(&mut finding);
        finding.expected = None;
        let text = page(vec![finding]);
        assert!(text.len() < 2_000_000, "{}", text.len());
        assert_eq!(
            data(&text)["findings"][0]["run"]["steps"]["count"],
            STEPS_MAX
        );
    }
}
