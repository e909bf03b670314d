//! Statements of synchronisation and call sequences of a tree as JSON, for `cargo xtask bench scan tables`.
//!
//! Arguments: PATH...

use std::path::PathBuf;

use raddle_scan::{Level, MECHANISMS, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options {
        paths: std::env::args().skip(1).map(PathBuf::from).collect(),
        patterns: Vec::new(),
        only: Vec::new(),
        jobs: 2,
        level: Level::FULL,
        limit: None,
        config: raddle_config::scan::Scan::default(),
        former: Vec::new(),
    };
    let found = raddle_scan::statistics(&options, &|_, _, _| {})?;
    let statements: Vec<String> = MECHANISMS
        .iter()
        .zip(found.statements)
        .map(|(name, count)| format!("\"{name}\": {count}"))
        .collect();
    print(&format!(
        "{{\"lines\": {}, \"sequences\": {:.0}, \"longest\": {}, \"average\": {:.1}, \"statements\": {{{}}}}}",
        found.lines,
        found.sequences,
        found.longest,
        found.average,
        statements.join(", ")
    ));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result of this program")]
fn print(text: &str) {
    println!("{text}");
}
