//! Coverage as a page: one file without scripts and without anything from elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use crate::coverage::{Build, Count};
use raddle_report::words::printable;
use raddle_stdx::regular_file;

/// Bytes of a source file that is shown.
const SOURCE_BYTES_MAX: u64 = 16 << 20;

const STYLE: &str = "body{font:14px sans-serif;margin:2em}table{border-collapse:collapse;font:13px monospace}\
td{padding:0 .7em;white-space:pre}td.n{text-align:right;color:#555}tr.all{background:#d8f0d8}\
tr.some{background:#fff3c4}tr.none{background:#f8d6d6}";

/// The whole page.
pub(super) fn page(build: &Build) -> String {
    let mut files: BTreeMap<&str, BTreeMap<u32, Count>> = BTreeMap::new();
    for ((file, line), count) in build.lines() {
        files.entry(file).or_default().insert(line, count);
    }
    let tables: String = files
        .iter()
        .map(|(file, lines)| table(file, lines))
        .collect();
    let count = build.count();
    format!(
        "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">
<title>raddle: interleaving coverage of {program}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Interleaving coverage of {program}</h1>
<p>{} of {} feasible interleavings covered ({} %), {} in all; build {}, {} schedules.</p>
{tables}</body>
</html>
",
        count.covered,
        count.feasible,
        count.percent(),
        count.total,
        escaped(&build.build),
        build.schedules,
        program = escaped(&build.program),
    )
}

/// The lines of a file, with their text if it can be read.
fn table(file: &str, lines: &BTreeMap<u32, Count>) -> String {
    let source = regular_file::read(Path::new(file), SOURCE_BYTES_MAX).unwrap_or_default();
    let source = String::from_utf8_lossy(&source);
    let texts: Vec<&str> = source.lines().collect();
    let name = if file.is_empty() { "(no line)" } else { file };
    let mut html = format!(
        "<h2>{}</h2>\n<table>\n<tr><td>line</td><td>covered</td><td>feasible</td><td>all</td><td></td></tr>\n",
        escaped(name)
    );
    let last = lines.keys().max().copied().unwrap_or_default();
    let whole = 1..=u32::try_from(texts.len()).unwrap_or(u32::MAX).max(last);
    let shown = whole.filter(|line| !texts.is_empty() || lines.contains_key(line));
    for line in shown {
        let text = usize::try_from(line).ok().and_then(|at| texts.get(at - 1));
        html.push_str(&row(line, lines.get(&line), text.unwrap_or(&"")));
    }
    html.push_str("</table>\n");
    html
}

fn row(line: u32, count: Option<&Count>, text: &str) -> String {
    let text = escaped(text);
    let Some(count) = count else {
        return format!(
            "<tr><td class=\"n\">{line}</td><td></td><td></td><td></td><td>{text}</td></tr>\n"
        );
    };
    let class = match (count.covered, count.feasible) {
        (_, 0) => "",
        (covered, feasible) if covered == feasible => "all",
        (0, _) => "none",
        _ => "some",
    };
    format!(
        "<tr class=\"{class}\"><td class=\"n\">{line}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{text}</td></tr>\n",
        count.covered, count.feasible, count.total
    )
}

fn escaped(text: &str) -> String {
    let text = printable(text);
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
