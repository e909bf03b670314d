//! Coverage in its three forms.

use super::*;
use crate::coverage::Place;

fn build() -> Build {
    let place = |line, offset, reach| Place {
        file: "a<b>.c".to_owned(),
        line,
        function: "f".to_owned(),
        offset,
        reach,
    };
    Build {
        build: "0123456789abcdef".to_owned(),
        program: "program".to_owned(),
        campaigns: 1,
        schedules: 100,
        spaces: Spaces {
            all: 4540,
            thread_pairs: 2322,
            pairs: 12,
            unserializable: 6,
        },
        places: vec![
            place(7, 0, Reach::Covered),
            place(7, 4, Reach::Feasible),
            place(9, 8, Reach::Potential),
        ],
    }
}

#[test]
fn lines_are_counted_and_what_is_missing_is_named() {
    let text = text(&build());
    assert!(
        text.contains("      1         2      2  a<b>.c:7\n"),
        "{text}"
    );
    assert!(
        text.contains("      0         0      1  a<b>.c:9\n"),
        "{text}"
    );
    assert!(text.contains("  a<b>.c:7  f+0x4\n"), "{text}");
    assert!(
        text.contains(
            "program 0123456789ab: 1 of 2 feasible interleavings covered (50 %), 3 in all"
        ),
        "{text}"
    );
    assert!(
        text.contains("(ALL) 10^4.5, of two threads (TPAIR) 10^2.3"),
        "{text}"
    );
}

#[test]
fn tracefiles_have_a_branch_for_each_feasible_interleaving() {
    let text = lcov::tracefile(&build());
    assert_eq!(
        text,
        "TN:raddle\nSF:a<b>.c\nBRDA:7,0,0,1\nBRDA:7,0,1,0\nBRF:2\nBRH:1\nDA:7,1\nLF:1\nLH:1\nend_of_record\n"
    );
}

#[test]
fn names_are_text_in_the_page() {
    let page = html::page(&build());
    assert!(page.contains("<h2>a&lt;b&gt;.c</h2>"), "{page}");
    assert!(
        page.contains("<tr class=\"some\"><td class=\"n\">7</td>"),
        "{page}"
    );
}
