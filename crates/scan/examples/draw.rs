//! A random draw of findings to judge by reading, for `judged.toml`.
//!
//! Arguments: SEED COUNT [--all] PATH...; without `--all` only what is shown by default takes part.

use std::path::PathBuf;

use raddle_scan::{Level, Options};
use raddle_stdx::{Prng, width};

/// As the command line limits each pattern.
const LIMIT: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(seed), Some(count)) = (arguments.next(), arguments.next()) else {
        return Err("usage: draw SEED COUNT [--all] PATH...".into());
    };
    let mut paths: Vec<String> = arguments.collect();
    let is_limited = paths.first().is_none_or(|first| first != "--all");
    paths.retain(|path| path != "--all");
    let options = Options {
        paths: paths.into_iter().map(PathBuf::from).collect(),
        patterns: raddle_scan::shipped_files(),
        only: Vec::new(),
        jobs: 2,
        level: Level::FULL,
        limit: is_limited.then_some(LIMIT),
        config: raddle_config::scan::Scan::default(),
        former: Vec::new(),
    };
    let mut findings = raddle_scan::scan(&options, &|_, _, _| {})?.findings;
    print(&format!("{} findings, seed {seed}", findings.len()));
    let mut random = Prng::new(seed.parse()?);
    for number in 0..count.parse::<usize>()?.min(findings.len()) {
        let chosen = random.below(width::to_u64(findings.len()));
        let finding = findings.swap_remove(usize::try_from(chosen)?);
        print(&format!(
            "{} {} {:?}: {}",
            number + 1,
            finding.kind,
            finding.severity,
            finding.title
        ));
        for step in &finding.steps {
            let place = &step.place;
            let held = step.locks.known().unwrap_or_default().iter();
            let held: Vec<&str> = held.map(|held| held.name.as_str()).collect();
            print(&format!(
                "    {}:{} {} {} [{}]",
                place.file,
                place.line,
                place.function,
                raddle_report::action::phrase(step),
                held.join(", ")
            ));
        }
        for note in &finding.notes {
            print(&format!("    {note}"));
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result of this program")]
fn print(text: &str) {
    println!("{text}");
}
