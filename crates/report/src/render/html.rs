//! A page that draws findings: one file without anything from elsewhere, for people who have nothing but a browser.
//!
//! The page holds the findings as data, and a script of ours that draws them. Texts come from programs that nobody
//! trusts: in the data no `<` is left, the script makes text nodes of them, and the page's policy runs nothing but that
//! script, which it names by its digest.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Results;
use super::choice::choose;
use super::terminal::{self, Style};
use crate::action::sentence;
use crate::evidence::{Edge, Held, Step};
use crate::finding::{Confidence, Finding};

const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
/// SHA-256 of the two, as the policy of the page names them; a test says what they must be.
const STYLE_DIGEST: &str = "VMvXyzkgHHsBVEQlEui+nYo2t3LItb90x8Fa6owNSA0=";
const SCRIPT_DIGEST: &str = "MgI+zPQQ5QKLfnQG+MM76z8Tu5ZOX+JprFByjupa2KA=";
/// Steps of a run that are in the page, the last ones.
const STEPS_MAX: usize = 5000;

/// The whole page.
pub fn document(results: &Results) -> serde_json::Result<String> {
    let findings = results.findings();
    let page: Vec<Value> = findings.iter().map(page_of).collect();
    let data = serde_json::to_string(&json!({ "findings": page }))?.replace('<', "\\u003c");
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
<h1>raddle: {suite}</h1>
<p class=\"legend keys\">Keys: <kbd>j</kbd> <kbd>k</kbd> or arrows step, <kbd>e</kbd> unfolds all, <kbd>n</kbd> <kbd>p</kbd> go to the next or previous run.</p>
<main id=\"findings\">{plain}</main>
<footer><pre>{closing}</pre></footer>
<script type=\"application/json\" id=\"data\">{data}</script>
<script>{SCRIPT}</script>
</body>
</html>
",
        closing = escaped(results.closing.trim_end()),
    ))
}

/// A finding with everything worded that the page shows.
fn page_of(finding: &Finding) -> Value {
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
        run_of(finding, &title, (&run.steps, &run.edges), &shown)
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
        "run": run_of(finding, "What happened", steps, &shown),
        "beside": beside,
        "waits": finding.waits,
        "notes": terminal::notes(finding),
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
) -> Value {
    let from = steps.len().saturating_sub(STEPS_MAX);
    let numbers = shown.iter().filter_map(|number| number.checked_sub(from));
    let edges = edges.iter().filter_map(|edge| {
        let (first, last) = (edge.from.checked_sub(from)?, edge.to.checked_sub(from)?);
        Some(json!({ "kind": edge.kind, "from": first, "to": last }))
    });
    let steps = steps[from..].iter().map(|step| step_of(finding, step));
    json!({
        "title": title,
        "steps": steps.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "shown": numbers.collect::<Vec<_>>(),
    })
}

fn step_of(finding: &Finding, step: &Step) -> Value {
    let name = |held: &Held| held.name.clone();
    let locks = step.locks.known();
    json!({
        "context": step.context,
        "text": sentence(finding, step),
        "end": !step.action.is_passing(),
        "place": step.place,
        "object": step.object,
        "address": step.address,
        "before": step.before.map(crate::evidence::Value::shown),
        "after": step.after.map(crate::evidence::Value::shown),
        "locks": locks.map(|held| held.iter().map(name).collect::<Vec<_>>()),
        "global_step": step.global_step,
        "repeats": step.repeats,
        "clock": step.clock,
        "stack": step.stack,
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
<h1>raddle: {title}</h1>
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
            assert_eq!(base64(&Sha256::digest(text.as_bytes())), named);
        }
        let text = page(samples::all());
        assert!(text.contains("default-src 'none'"));
        assert!(text.contains(&format!("<script>{SCRIPT}</script>")));
    }

    fn base64(bytes: &[u8]) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::new();
        for chunk in bytes.chunks(3) {
            let mut group = [0; 3];
            group[..chunk.len()].copy_from_slice(chunk);
            let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
            for (position, shift) in [18, 12, 6, 0].into_iter().enumerate() {
                let letter = LETTERS[(bits >> shift) as usize & 63];
                let is_there = position <= chunk.len();
                out.push(if is_there { char::from(letter) } else { '=' });
            }
        }
        out
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
        assert!(text.len() < 2 << 20);
    }
}
