//! Reports of the kernel about itself, found in what it printed.
//!
//! Each checker of Linux has its own headline; `HEADLINES` knows them. A report goes from its headline to the line that
//! ends it, or to the next headline that does not belong to it.

use serde::{Deserialize, Serialize};

use super::splat_words::{frame_function, is_reporter, normalise, without_time};

/// Lines of one report at most.
const LINES_MAX: usize = 80;
/// Lines from the first headline of a report to its last at most: what was noticed, where, and which exception told it.
const HEAD_LINES: usize = 8;
/// Allocators check their objects: `BUG kmalloc-128 (Not tainted): Poison overwritten`.
const SLUB: &str = "BUG ";
const PANIC: &str = "Kernel panic - not syncing";

/// Which checker spoke; the graver ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SplatKind {
    Panic,
    Oops,
    Bug,
    Sanitizer,
    Lockdep,
    Warning,
    HungTask,
    Stall,
}

/// A report of the kernel about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splat {
    pub kind: SplatKind,
    /// Its first line, without time stamps, addresses and numbers of threads.
    pub title: String,
    /// Its lines without time stamps.
    pub lines: Vec<String>,
}

/// How reports begin. Earlier ones win, since an oops often begins with `BUG:`.
const HEADLINES: [(&str, SplatKind); 46] = [
    (PANIC, SplatKind::Panic),
    ("BUG: KASAN", SplatKind::Sanitizer),
    ("BUG: KCSAN", SplatKind::Sanitizer),
    ("BUG: KFENCE", SplatKind::Sanitizer),
    ("BUG: KMSAN", SplatKind::Sanitizer),
    ("UBSAN:", SplatKind::Sanitizer),
    ("CFI failure at", SplatKind::Sanitizer),
    ("slab error in ", SplatKind::Sanitizer),
    ("Slab corruption", SplatKind::Sanitizer),
    ("BUG: kernel NULL pointer dereference", SplatKind::Oops),
    ("BUG: unable to handle", SplatKind::Oops),
    ("BUG: stack guard page was hit", SplatKind::Oops),
    ("BUG: TASK stack guard page was hit", SplatKind::Oops),
    ("BUG: IRQ stack guard page was hit", SplatKind::Oops),
    ("Oops: ", SplatKind::Oops),
    ("general protection fault", SplatKind::Oops),
    ("divide error", SplatKind::Oops),
    ("invalid opcode", SplatKind::Oops),
    ("stack segment", SplatKind::Oops),
    ("PANIC: double fault", SplatKind::Oops),
    ("traps: PANIC: double fault", SplatKind::Oops),
    ("kernel tried to execute ", SplatKind::Oops),
    ("list_add corruption", SplatKind::Bug),
    ("list_del corruption", SplatKind::Bug),
    ("kernel BUG at", SplatKind::Bug),
    ("usercopy: Kernel memory ", SplatKind::Bug),
    ("detected buffer overflow in ", SplatKind::Bug),
    ("[ BUG: ", SplatKind::Lockdep),
    ("BUG: MAX_LOCK", SplatKind::Lockdep),
    ("BUG: key ", SplatKind::Lockdep),
    ("BUG: workqueue lockup", SplatKind::Stall),
    ("BUG: soft lockup", SplatKind::Stall),
    ("BUG: ", SplatKind::Bug),
    ("refcount_t: ", SplatKind::Warning),
    ("ODEBUG: ", SplatKind::Warning),
    ("DEBUG_LOCKS_WARN_ON(", SplatKind::Lockdep),
    (
        "INFO: trying to register non-static key",
        SplatKind::Lockdep,
    ),
    ("INFO: task ", SplatKind::HungTask),
    ("rcu: INFO:", SplatKind::Stall),
    ("INFO: rcu_", SplatKind::Stall),
    ("watchdog: BUG:", SplatKind::Stall),
    ("watchdog: Watchdog detected hard LOCKUP", SplatKind::Stall),
    ("watchdog: CPU", SplatKind::Stall),
    (
        "NMI watchdog: Watchdog detected hard LOCKUP",
        SplatKind::Stall,
    ),
    ("NMI watchdog: BUG:", SplatKind::Stall),
    ("WARNING: ", SplatKind::Warning),
];

/// What lockdep says behind `WARNING: `; the words before may name a kind of interrupt or a thread.
const LOCKDEP: [&str; 10] = [
    "possible ",
    "inconsistent lock state",
    "suspicious RCU usage",
    "lock order detected",
    "bad unlock balance detected",
    "bad contention detected",
    "held lock freed",
    "still has locks held",
    "lock held when returning to user space",
    "Nested lock was not taken",
];

impl SplatKind {
    /// The rule that findings are reported under.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Panic => "kernel-panic",
            Self::Oops => "kernel-oops",
            Self::Bug => "kernel-bug",
            Self::Sanitizer => "kernel-sanitizer",
            Self::Lockdep => "kernel-lockdep",
            Self::Warning => "kernel-warning",
            Self::HungTask => "kernel-hung-task",
            Self::Stall => "kernel-stall",
        }
    }

    /// The kind of report that begins with a line.
    fn of_headline(line: &str) -> Option<Self> {
        if slub_headline(line).is_some() {
            return Some(Self::Sanitizer);
        }
        let (words, kind) = HEADLINES
            .iter()
            .find(|(words, _)| line.starts_with(words))?;
        let said = &line[words.len()..];
        let is_lockdep = *kind == Self::Warning && LOCKDEP.iter().any(|words| said.contains(words));
        Some(if is_lockdep { Self::Lockdep } else { *kind })
    }
}

/// The cache and the complaint of `BUG kmalloc-128 (Not tainted): Poison overwritten`.
fn slub_headline(line: &str) -> Option<(&str, &str)> {
    let (cache, rest) = line.strip_prefix(SLUB)?.split_once(" (")?;
    let (taint, complaint) = rest.split_once("): ")?;
    let is_taint = taint.starts_with("Tainted: ") || taint == "Not tainted";
    (is_taint && !cache.contains(": ")).then_some((cache, complaint))
}

/// The reports in a text, in order.
pub(super) fn splats(text: &str) -> Vec<Splat> {
    let mut found: Vec<Splat> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let line = without_time(line);
        match (SplatKind::of_headline(line), found.last_mut()) {
            (Some(kind), Some(last)) if last.goes_on_with(kind, line, open) => last.push(line),
            (Some(kind), _) => {
                found.push(Splat::begin(kind, line));
                open = true;
            }
            (None, Some(last)) if open => last.push(line),
            (None, _) => {}
        }
        if line.contains("---[ end ") || line.starts_with("FIX ") {
            open = false;
        }
    }
    found
}

impl Splat {
    fn begin(kind: SplatKind, line: &str) -> Self {
        let title = match slub_headline(line) {
            // Which other modules are loaded does not name a bug.
            Some((cache, complaint)) => normalise(&format!("{SLUB}{cache}: {complaint}")),
            None => normalise(line),
        };
        Self {
            kind,
            title,
            lines: vec![line.to_owned()],
        }
    }

    fn push(&mut self, line: &str) {
        if self.lines.len() < LINES_MAX {
            self.lines.push(line.to_owned());
        }
    }

    /// Whether a headline belongs to this report, which is the last one.
    fn goes_on_with(&self, kind: SplatKind, line: &str, is_open: bool) -> bool {
        if kind == SplatKind::Panic {
            // A panic that follows from a report belongs to it; a warning kills no thread unless that is asked for.
            return self.kind != SplatKind::Warning || line.contains("panic_on_warn");
        }
        let has_trace = || self.lines.iter().any(|line| line.contains("Call Trace:"));
        is_open && self.lines.len() < HEAD_LINES && !has_trace()
    }

    /// The function that the report is about: of the line `RIP: 0010:function+0x12/0x34`, or else the first one of its
    /// stack that does not only report.
    pub fn function(&self) -> Option<&str> {
        self.faulting_function().or_else(|| {
            let lines = self.lines.iter().map(String::as_str);
            first_frame(lines.skip_while(|line| !line.contains("Call Trace:")))
        })
    }

    /// The function of the line `RIP: 0010:function+0x12/0x34`.
    pub fn faulting_function(&self) -> Option<&str> {
        let line = self.lines.iter().find_map(|line| {
            line.split_once("RIP: ")
                .and_then(|(_, rest)| rest.split_once(':'))
        })?;
        line.1
            .split(['+', ' '])
            .next()
            .filter(|name| !name.is_empty() && !name.starts_with("0x"))
    }

    /// The block of memory that a checker of the allocator speaks of: its cache, and who allocated and freed it.
    pub fn object(&self) -> Option<String> {
        let cache = self.cache()?;
        let mut text = format!("an object of {cache}");
        for (word, did) in [("Allocated", "allocated"), ("Freed", "freed")] {
            if let Some(function) = self.done_in(word) {
                text.push_str(&format!(", {did} in {function}"));
            }
        }
        Some(text)
    }

    fn cache(&self) -> Option<&str> {
        if let Some((cache, _)) = slub_headline(&self.lines[0]) {
            return Some(cache);
        }
        self.lines.iter().find_map(|line| {
            let kasan = line.split_once("belongs to the cache ");
            if let Some((_, rest)) = kasan {
                return rest.split(' ').next();
            }
            let (_, rest) = line.split_once(" SLUB object '")?;
            rest.split('\'').next()
        })
    }

    /// Where an object was allocated or freed: `Allocated in f+0x1/0x2 age=..` (SLUB), or the stack behind
    /// `Allocated by task 7:` (KASAN, KFENCE).
    fn done_in(&self, word: &str) -> Option<&str> {
        let at = |line: &String| {
            let rest = line.trim_start().to_ascii_lowercase();
            rest.starts_with(&format!("{} ", word.to_ascii_lowercase()))
        };
        let begin = self.lines.iter().position(at)?;
        let own = self.lines[begin].trim_start();
        let named = own.get(word.len()..)?.trim_start().strip_prefix("in ");
        let named = named.and_then(frame_function);
        if let Some(function) = named.filter(|name| !is_reporter(name)) {
            return Some(function);
        }
        let behind = self.lines[begin + 1..].iter().map(String::as_str);
        first_frame(behind.take_while(|line| frame_function(line.trim_start()).is_some())).or(named)
    }
}

/// The first function of a stack that does not only report or allocate.
fn first_frame<'a>(lines: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut functions = lines.filter_map(|line| frame_function(line.trim_start()));
    functions.find(|name| !is_reporter(name))
}

#[cfg(test)]
mod tests;
