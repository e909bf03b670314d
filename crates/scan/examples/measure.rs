//! One measured scan, for `cargo xtask bench scan`: prints counts, processor time and peak memory as JSON.
//!
//! Arguments: LEVEL (single, subs, locks, full, uncached), PATTERN or `all`, PATH...

use std::path::PathBuf;

use raddle_scan::{Level, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(level), Some(pattern)) = (arguments.next(), arguments.next()) else {
        return Err("usage: measure LEVEL PATTERN PATH...".into());
    };
    let options = Options {
        paths: arguments.map(PathBuf::from).collect(),
        patterns: raddle_scan::shipped_files(),
        only: if pattern == "all" {
            Vec::new()
        } else {
            vec![pattern]
        },
        jobs: 1,
        level: named(&level)?,
        limit: None,
        config: raddle_config::scan::Scan::default(),
        former: Vec::new(),
    };
    let report = raddle_scan::scan(&options, &|_, _, _| {})?;
    let summary = &report.summary;
    let counts: Vec<String> = summary
        .patterns
        .iter()
        .map(|pattern| format!("\"{}\": {}", pattern.name, pattern.instances))
        .collect();
    print(&format!(
        "{{\"reports\": {}, \"cpu_ms\": {}, \"peak_kib\": {}, \"files\": {}, \"lines\": {}, \"functions\": {}, \"damaged\": {}, \"lost\": {}, \"visits\": {}, \"hits\": {}, \"patterns\": {{{}}}}}",
        report.findings.len(),
        cpu_milliseconds()?,
        peak_kib()?,
        summary.files,
        summary.lines,
        summary.functions,
        summary.functions_damaged,
        summary.functions_lost,
        summary.lock_visits,
        summary.lock_cache_hits,
        counts.join(", ")
    ));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result of this program")]
fn print(text: &str) {
    println!("{text}");
}

fn named(level: &str) -> Result<Level, String> {
    let all_but = |all_subs, locks, alias, cache| Level {
        all_subs,
        locks,
        alias,
        cache,
    };
    Ok(match level {
        "single" => all_but(false, false, false, true),
        "subs" => all_but(true, false, false, true),
        "locks" => all_but(true, true, false, true),
        "full" => Level::FULL,
        "uncached" => all_but(true, true, true, false),
        other => return Err(format!("`{other}` is no level")),
    })
}

/// User and system time of this process; the kernel counts in hundredths of a second.
fn cpu_milliseconds() -> Result<u64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after = stat.rsplit(')').next().unwrap_or("");
    let mut fields = after.split_whitespace().skip(11);
    let mut next = || -> Result<u64, Box<dyn std::error::Error>> {
        Ok(fields.next().ok_or("short stat")?.parse()?)
    };
    Ok((next()? + next()?) * 10)
}

fn peak_kib() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
