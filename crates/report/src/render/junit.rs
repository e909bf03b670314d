//! JUnit XML, as build servers read it: each thing that was explored is a test case.

use super::terminal::{self, Style};
use super::{Case, line};

/// The whole document.
pub fn document(suite: &str, cases: &[Case]) -> String {
    let failures = cases.iter().filter(|case| !case.findings.is_empty());
    let skipped = cases.iter().filter(|case| case.skipped.is_some());
    let total: u64 = cases.iter().map(|case| case.milliseconds).sum();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let counts = (cases.len(), failures.count(), skipped.count());
    line(
        &mut out,
        format_args!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{}\">",
            escaped(suite),
            counts.0,
            counts.1,
            counts.2,
            seconds(total)
        ),
    );
    for case in cases {
        self::case(&mut out, suite, case);
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn case(out: &mut String, suite: &str, case: &Case) {
    line(
        out,
        format_args!(
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{}\">",
            escaped(suite),
            escaped(&case.name),
            seconds(case.milliseconds)
        ),
    );
    if let Some(reason) = &case.skipped {
        line(
            out,
            format_args!("      <skipped message=\"{}\"/>", escaped(reason)),
        );
    }
    for (finding, number) in case.findings.iter().zip(1..) {
        let text = terminal::finding(finding, number, case.findings.len(), Style::PLAIN);
        line(
            out,
            format_args!(
                "      <failure type=\"{}\" message=\"{}\">{}</failure>",
                escaped(&finding.kind),
                escaped(&finding.title),
                escaped(&text)
            ),
        );
    }
    line(
        out,
        format_args!("      <system-out>{}</system-out>", escaped(&case.summary)),
    );
    out.push_str("    </testcase>\n");
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// Text that is safe in attributes and elements. XML has no way to write most control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            control if control.is_control() => out.push('\u{fffd}'),
            plain => out.push(plain),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Confidence, Finding, Severity};

    #[test]
    fn cases_pass_fail_and_are_skipped() {
        let finding = Finding {
            title: "a < b & \"c\"\u{1b}".into(),
            fingerprint: "12345678".into(),
            ..Finding::new("deadlock", Severity::Error, Confidence::Confirmed)
        };
        let case = |name: &str, findings, skipped| Case {
            name: name.into(),
            milliseconds: 1_042,
            findings,
            skipped,
            summary: "explored".into(),
        };
        let text = document(
            "suite",
            &[
                case("good", vec![], None),
                case("bad", vec![finding], None),
                case("alone", vec![], Some("no threads".into())),
            ],
        );
        assert!(text.contains("tests=\"3\" failures=\"1\" skipped=\"1\" time=\"3.126\""));
        assert!(text.contains("message=\"a &lt; b &amp; &quot;c&quot;\u{fffd}\""));
        assert!(text.contains("<skipped message=\"no threads\"/>"));
        assert_eq!(text.matches("<testcase").count(), 3);
        assert_eq!(text.matches("<failure").count(), 1);
    }
}
