//! What the compiler driver tells the plugin: one JSON value in one environment variable.

use serde::{Deserialize, Serialize};

use crate::analysis::plan::Reach;
use crate::invariant::Invariant;

/// Name of the environment variable.
pub const VARIABLE: &str = "RADDLE_HARDEN_SETTINGS";

/// Everything that changes what the plugin does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub mode: Mode,
    /// Sites of fix mode.
    pub sites: Vec<SitePlace>,
    /// Pointers below this are invalid.
    pub pointer_bound: u64,
    /// How many callers up a failure may be re-executed; 0 turns it off.
    pub caller_levels: usize,
    pub volatile_is_io: bool,
    /// Names of functions, beside the built-in ones.
    pub assertions: Vec<String>,
    pub outputs: Vec<String>,
    /// Functions that a region may hold: they change nothing that others can see.
    pub harmless: Vec<String>,
    /// Which writes may be taken back.
    pub undo: Undo,
    pub locks: Vec<LockFunctions>,
    pub allocators: Vec<AllocFunctions>,
    /// Inferred oracles.
    pub invariants: Vec<Invariant>,
    /// JSON lines, one per site, are appended here.
    pub report: Option<String>,
    /// Debug information was asked for by us, not by the user: remove it afterwards.
    pub strip_debug: bool,
    /// The result is bitcode, and some other compiler makes code of it, without our pass over the machine code.
    pub yields_bitcode: bool,
    pub mechanism: Mechanism,
    /// How invalid pointers are noticed; by default by faults in survival mode and by comparisons in fix mode.
    pub checks: Option<Checks>,
    /// How long regions are; by default cheap in survival mode and longest in fix mode.
    pub reach: Option<Reach>,
    /// Leave sites alone whose re-execution could change nothing; off only to measure what that saves.
    pub prunes: bool,
    /// Count the passes over re-execution points.
    pub count_points: bool,
    /// Let passing checks fail now and then (run time: `RADDLE_HARDEN_INJECT`).
    pub inject: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Survival,
            sites: Vec::new(),
            pointer_bound: 10_000,
            caller_levels: 3,
            volatile_is_io: false,
            assertions: Vec::new(),
            outputs: Vec::new(),
            harmless: Vec::new(),
            undo: Undo::Proven,
            locks: Vec::new(),
            allocators: Vec::new(),
            invariants: Vec::new(),
            report: None,
            strip_debug: false,
            yields_bitcode: false,
            mechanism: Mechanism::Branch,
            checks: None,
            reach: None,
            prunes: true,
            count_points: false,
            inject: false,
        }
    }
}

impl Settings {
    /// Whether an access may be its own check. That needs a handler of SIGSEGV in the program and its calls of
    /// `sigaction` redirected, which the few sites of fix mode are not worth.
    pub fn leaves_checks_to_accesses(&self) -> bool {
        let checks = self.checks.unwrap_or(match self.mode {
            Mode::Survival => Checks::Fault,
            Mode::Fix => Checks::Compare,
        });
        checks == Checks::Fault && self.mechanism == Mechanism::Branch
    }

    /// The reach that was asked for, or that of the mode.
    pub fn reach(&self) -> Reach {
        self.reach.unwrap_or(match self.mode {
            Mode::Survival => Reach::Cheap,
            Mode::Fix => Reach::Longest,
        })
    }
}

/// Which sites are hardened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// All of them.
    Survival,
    /// Those named.
    Fix,
}

/// Which writes to memory that others may know are taken back before a re-execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// None.
    Never,
    /// Those to variables of which every access holds a lock that the region has taken.
    Proven,
    /// All ordinary ones: the user vouches that no other thread looks at them before this one releases a lock.
    Plain,
}

/// How control goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// A branch in the control-flow graph.
    Branch,
    /// The paper's setjmp and longjmp, for comparison.
    Setjmp,
}

/// How an invalid pointer is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checks {
    /// By the fault of the access, where it is sure to come at once; else by a comparison.
    Fault,
    /// Always by a comparison.
    Compare,
}

/// `file:line`, the file matched from its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SitePlace {
    pub file: String,
    pub line: u32,
}

impl SitePlace {
    /// Whether this names the given place: whole path components must agree.
    pub fn matches(&self, file: &str, line: u32) -> bool {
        let wanted = std::path::Path::new(&self.file);
        line == self.line && std::path::Path::new(file).ends_with(wanted)
    }
}

impl std::str::FromStr for SitePlace {
    type Err = SitePlaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (file, line) = text
            .rsplit_once(':')
            .ok_or_else(|| SitePlaceError(text.into()))?;
        let line = line.parse().map_err(|_error| SitePlaceError(text.into()))?;
        if file.is_empty() {
            return Err(SitePlaceError(text.into()));
        }
        Ok(Self {
            file: file.into(),
            line,
        })
    }
}

/// A site that is not `file:line`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name a site; write FILE:LINE, as in src/queue.c:120")]
pub struct SitePlaceError(String);

/// A lock of the program's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFunctions {
    /// Takes the lock as its first parameter.
    pub lock: String,
    pub unlock: String,
    /// `int timed(lock, unsigned milliseconds)`: zero when it was acquired.
    pub timed: Option<String>,
}

/// An allocator of the program's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllocFunctions {
    pub alloc: String,
    pub free: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_match_from_the_end_of_the_path() {
        let place: SitePlace = "src/a.c:12".parse().unwrap();
        assert!(place.matches("/build/src/a.c", 12));
        assert!(!place.matches("/build/src/aa.c", 12));
        assert!(!place.matches("/build/xsrc/a.c", 12));
        assert!(!place.matches("/build/src/a.c", 13));
    }

    #[test]
    fn a_bad_site_says_how_to_write_one() {
        let error = "queue.c".parse::<SitePlace>().unwrap_err().to_string();
        assert!(error.contains("FILE:LINE"), "{error}");
        assert_eq!(
            ":3".parse::<SitePlace>().unwrap_err(),
            SitePlaceError(":3".into())
        );
    }

    #[test]
    fn settings_survive_the_environment() {
        let settings = Settings {
            mode: Mode::Fix,
            ..Settings::default()
        };
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
    }
}
