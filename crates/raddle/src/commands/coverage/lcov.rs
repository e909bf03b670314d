//! Coverage in the form of lcov's tracefiles (`geninfo(1)`): branches are interleavings that nothing forbids.

use crate::coverage::Build;
use raddle_campaign::Reach;

/// One record for each source file.
pub(super) fn tracefile(build: &Build) -> String {
    let mut text = String::new();
    let files: std::collections::BTreeSet<&str> = build
        .places
        .iter()
        .filter(|place| place.line > 0)
        .map(|place| place.file.as_str())
        .collect();
    for file in files {
        text.push_str(&record(build, file));
    }
    text
}

fn record(build: &Build, file: &str) -> String {
    // A line break would begin a field of another meaning.
    let mut text = format!("TN:raddle\nSF:{}\n", file.replace(['\n', '\r'], " "));
    let lines = build.lines().into_iter();
    let lines: Vec<_> = lines
        .filter(|((of, _), count)| *of == file && count.feasible > 0)
        .collect();
    let (mut found, mut hit) = (0, 0);
    for ((_, line), count) in &lines {
        let places = build.places.iter();
        let places = places.filter(|place| place.file == file && place.line == *line);
        let feasible = places.filter(|place| place.reach >= Reach::Feasible);
        for (number, place) in feasible.enumerate() {
            let taken = u64::from(place.reach == Reach::Covered);
            text.push_str(&format!("BRDA:{line},0,{number},{taken}\n"));
        }
        found += count.feasible;
        hit += count.covered;
    }
    text.push_str(&format!("BRF:{found}\nBRH:{hit}\n"));
    for ((_, line), count) in &lines {
        text.push_str(&format!("DA:{line},{}\n", count.covered));
    }
    let hit = lines.iter().filter(|(_, count)| count.covered > 0).count();
    text.push_str(&format!("LF:{}\nLH:{hit}\nend_of_record\n", lines.len()));
    text
}
