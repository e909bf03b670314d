//! A whole run: read, parse, analyse, match, rank.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use raddle_config::scan::Scan as Config;
use raddle_report::Finding;
use raddle_stdx::regular_file;
use serde::Serialize;

use crate::analyse::program::{Program, Source};
use crate::front::unit::Unit;
use crate::front::words::Words;
use crate::idioms::Table;
use crate::matcher::{Engine, Level};
use crate::pdl::ast::{Arg, Callee, Condition, Pattern, Stmt, StmtKind};
use crate::pdl::error::PatternError;
use crate::results;
use crate::walk::Walk;

/// What to scan, and how.
#[derive(Debug, Clone)]
pub struct Options {
    pub paths: Vec<PathBuf>,
    /// Name and text of each pattern file.
    pub patterns: Vec<(String, String)>,
    /// Only these patterns, if any are named.
    pub only: Vec<String>,
    /// Threads for reading and parsing; the result does not depend on it.
    pub jobs: usize,
    pub level: Level,
    /// Findings shown per pattern; the rest is counted.
    pub limit: Option<usize>,
    pub config: Config,
    /// Texts to read instead of what is in these files: the tree as it was before a change.
    pub former: Vec<FormerText>,
}

/// What a file held before a change; nothing if there was no such file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerText {
    /// As the scanner shows it.
    pub file: String,
    pub text: Vec<u8>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Parse,
    Analyse,
    Match,
}

/// Told about progress: phase, done, total.
pub type Progress<'p> = &'p (dyn Fn(Phase, usize, usize) + Sync);

/// Findings and what they rest on.
#[derive(Debug, Clone)]
pub struct Report {
    pub findings: Vec<Finding>,
    pub summary: Summary,
}

/// What was looked at, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub files: u64,
    pub context_files: u64,
    pub bytes: u64,
    pub lines: u64,
    pub functions: u64,
    /// Functions of which statements were skipped.
    pub functions_damaged: u64,
    /// Bodies that could not be read at all.
    pub functions_lost: u64,
    /// The same by file and name.
    pub lost: Vec<String>,
    /// Functions with more paths than are followed.
    pub functions_cut: u64,
    pub patterns: Vec<PatternCount>,
    pub suppressed: u64,
    /// Found, but below the limits; `--all` shows them.
    pub hidden: u64,
    /// Functions entered by the lock analysis, and entries saved by its cache.
    pub lock_visits: u64,
    pub lock_cache_hits: u64,
    /// Files that could not be read or are no C.
    pub notes: Vec<String>,
}

/// Instances of one pattern, before limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatternCount {
    pub name: String,
    pub instances: u64,
}

/// Why a scan could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error("{0}")]
    Pattern(#[from] PatternError),
    #[error(
        "pattern `{pattern}` uses the class `@{class}`, which no idiom table defines; known: {known}"
    )]
    UnknownClass {
        pattern: String,
        class: String,
        known: String,
    },
    #[error("there is no pattern called `{name}`; `raddle scan --list-patterns` lists them")]
    UnknownPattern { name: String },
    #[error("no C source was found in {paths}; name a file or a folder with .c or .h files")]
    NothingToScan { paths: String },
    #[error("{file} has no function called `{function}` among what was scanned")]
    UnknownFunction { file: String, function: String },
    #[error("more than 128 classes of names are in use; remove some from [scan.idioms.classes]")]
    TooManyClasses,
}

/// Scans.
pub fn scan(options: &Options, progress: Progress<'_>) -> Result<Report, ScanError> {
    with_engine(options, progress, |engine, patterns, mut summary| {
        let mut found = Vec::new();
        for (number, pattern) in patterns.iter().enumerate() {
            progress(Phase::Match, number, patterns.len());
            if !results::is_asked_for(pattern, options) {
                continue;
            }
            let instances = engine.find(pattern);
            found.push((pattern, instances));
        }
        progress(Phase::Match, patterns.len(), patterns.len());
        let findings = results::findings(engine, &found, options, &mut summary);
        Report { findings, summary }
    })
}

/// For each pattern, how far it came in each function of this name, line by line.
pub fn why(
    options: &Options,
    file: &str,
    function: &str,
    progress: Progress<'_>,
) -> Result<Vec<String>, ScanError> {
    let lines = with_engine(options, progress, |engine, patterns, _| {
        crate::why::lines(engine, patterns, file, function)
    })?;
    if lines.is_empty() {
        return Err(ScanError::UnknownFunction {
            file: file.to_owned(),
            function: function.to_owned(),
        });
    }
    Ok(lines)
}

/// How the tree synchronises and how deep it calls.
pub fn statistics(
    options: &Options,
    progress: Progress<'_>,
) -> Result<crate::statistics::Statistics, ScanError> {
    with_engine(options, progress, |engine, _, summary| {
        let mut found = crate::statistics::statistics(engine);
        found.lines = summary.lines;
        found
    })
}

/// Reads and analyses everything, then does the work.
fn with_engine<T>(
    options: &Options,
    progress: Progress<'_>,
    work: impl FnOnce(&Engine<'_>, &[Pattern], Summary) -> T,
) -> Result<T, ScanError> {
    let table = Table::new(&options.config.idioms).map_err(|_| ScanError::TooManyClasses)?;
    let patterns = load_patterns(options, &table)?;
    let walk = Walk::new(&options.paths, &options.config.exclude);
    if !walk.sources.iter().any(|source| source.wanted) && walk.notes.is_empty() {
        let paths: Vec<String> = options
            .paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(ScanError::NothingToScan {
            paths: paths.join(", "),
        });
    }
    let mut summary = Summary {
        notes: walk.notes,
        ..Summary::default()
    };
    let (sources, units) = parse_all(walk.sources, &table, options, progress, &mut summary.notes);
    count(&sources, &units, &mut summary);
    progress(Phase::Analyse, 0, 1);
    let program = Program::link(&table, sources, units);
    let engine = Engine::new(&program, options.level);
    summary.lock_visits = engine.contexts.visits;
    summary.lock_cache_hits = engine.contexts.hits;
    summary.functions_cut = raddle_stdx::width::to_u64(engine.flows.cut.len());
    Ok(work(&engine, &patterns, summary))
}

/// Reads all pattern files of `options` and checks the names in them.
fn load_patterns(options: &Options, table: &Table) -> Result<Vec<Pattern>, ScanError> {
    let mut patterns = Vec::new();
    for (file, text) in &options.patterns {
        patterns.extend(crate::pdl::parse(file, text)?);
    }
    for name in &options.only {
        if !patterns.iter().any(|pattern| pattern.name == *name) {
            return Err(ScanError::UnknownPattern { name: name.clone() });
        }
    }
    if !options.only.is_empty() {
        patterns.retain(|pattern| options.only.contains(&pattern.name));
    }
    for pattern in &patterns {
        for class in classes_of(pattern) {
            if table.class(&class).is_none() {
                return Err(ScanError::UnknownClass {
                    pattern: pattern.name.clone(),
                    class,
                    known: table.class_names().collect::<Vec<_>>().join(", "),
                });
            }
        }
    }
    Ok(patterns)
}

fn classes_of(pattern: &Pattern) -> Vec<String> {
    fn in_stmts(stmts: &[Stmt], out: &mut Vec<String>) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Call {
                    callee: Callee::Class(class),
                    ..
                } => out.push(class.clone()),
                StmtKind::If { then, other, .. } => {
                    in_stmts(then, out);
                    in_stmts(other.as_deref().unwrap_or(&[]), out);
                }
                StmtKind::Loop { body, .. } | StmtKind::Exclude(body) => in_stmts(body, out),
                _ => {}
            }
        }
    }
    fn in_condition(condition: &Condition, out: &mut Vec<String>) {
        match condition {
            Condition::Not(inner) => in_condition(inner, out),
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|part| in_condition(part, out));
            }
            Condition::Test(test) => out.extend(test.args.iter().filter_map(|arg| match arg {
                Arg::Class(class) => Some(class.clone()),
                _ => None,
            })),
        }
    }
    let mut out = Vec::new();
    for sub in &pattern.subs {
        for fun in &sub.functions {
            in_stmts(&fun.body, &mut out);
        }
    }
    for condition in &pattern.conditions {
        in_condition(condition, &mut out);
    }
    out
}

/// What became of one file.
enum Outcome {
    Parsed(Box<Unit>),
    Skipped(String),
}

/// Parses in parallel; the order of results is the order of sources.
fn parse_all(
    sources: Vec<Source>,
    table: &Table,
    options: &Options,
    progress: Progress<'_>,
    notes: &mut Vec<String>,
) -> (Vec<Source>, Vec<Unit>) {
    let words = table.words();
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::with_capacity(sources.len()));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                let mut own = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(source) = sources.get(number) else {
                        break;
                    };
                    let former = options
                        .former
                        .iter()
                        .find(|former| former.file == source.shown);
                    let text = match former {
                        Some(former) => Ok(former.text.clone()),
                        None => regular_file::read(&source.path, FILE_BYTES_MAX),
                    };
                    own.push((number, parse_one(text, table, &words)));
                    if number.is_multiple_of(64) {
                        progress(Phase::Parse, number, sources.len());
                    }
                }
                let mut results = results
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                results.extend(own);
            });
        }
    });
    progress(Phase::Parse, sources.len(), sources.len());
    let mut results = results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    let mut kept = Vec::new();
    let mut units = Vec::new();
    for ((_, outcome), source) in results.into_iter().zip(sources) {
        match outcome {
            Outcome::Parsed(unit) => {
                units.push(*unit);
                kept.push(source);
            }
            Outcome::Skipped(note) => notes.push(format!("{}: {note}", source.shown)),
        }
    }
    (kept, units)
}

/// Larger files are data, not programs.
const FILE_BYTES_MAX: u64 = 64 << 20;

fn parse_one(text: std::io::Result<Vec<u8>>, table: &Table, words: &Words) -> Outcome {
    let text = match text {
        Ok(text) => text,
        Err(error) => return Outcome::Skipped(error.to_string()),
    };
    let head = &text[..text.len().min(4096)];
    if head.contains(&0) {
        return Outcome::Skipped("binary data, not C source".to_owned());
    }
    Outcome::Parsed(Box::new(Unit::parse(&text, table, words)))
}

fn count(sources: &[Source], units: &[Unit], summary: &mut Summary) {
    for (source, unit) in sources.iter().zip(units) {
        if !source.wanted {
            summary.context_files += 1;
            continue;
        }
        summary.files += 1;
        summary.bytes += unit.stats.bytes;
        summary.lines += unit.stats.lines;
        summary.functions += unit.stats.functions;
        summary.functions_damaged += unit.stats.damaged;
        summary.functions_lost += unit.stats.lost;
        for name in &unit.declared.functions_lost {
            let name = unit.spellings().nth(crate::front::lex::at(name.0));
            let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
            summary.lost.push(format!("{}: {name}", source.shown));
        }
    }
}
