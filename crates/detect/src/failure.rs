//! What counts as wrong at the end of a run.

use raddle_report::SerialOrders;
use raddle_report::serial::Effect;
use raddle_stdx::Digest;
use raddle_world::{Crash, Site};
use serde::{Deserialize, Serialize};

const SIGABRT: i32 = 6;

/// A run that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// Killed by a signal that is not an abort.
    Crash {
        signal: i32,
        /// Where and why, if an instruction of the program is the reason.
        crash: Option<Box<Crash>>,
    },
    /// An assertion, a panic or a plain abort, with the program's last words.
    Assertion { message: String },
    /// The program ended by itself, but not as it should.
    WrongExit { status: i32, expected: i32 },
    /// The program ended as it should, but what it wrote is not right.
    WrongOutput {
        /// In what way, as one line.
        reason: String,
    },
    /// No serial order of the operations gives what this run gave.
    NotSerial(Box<NotSerial>),
    /// Heap memory was used or freed wrongly.
    Heap {
        fault: HeapFault,
        /// The wrong instruction, or the return address of the wrong call.
        site: Site,
    },
    /// Contexts wait for each other, or no context can ever run again; where the waiting calls return to, sorted.
    Deadlock { calls: Vec<Site> },
    /// The run did not end although everybody got their turns; where the contexts stood, sorted.
    Hang { sites: Vec<Site> },
}

/// How a run deviates from all serial orders of its operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSerial {
    /// What deviates, without values that differ between runs: the identity of the bug.
    pub what: String,
    /// One line: what deviates and how.
    pub title: String,
    /// One sentence: why that is wrong.
    pub why: String,
    /// The table of serial orders and the differences to the nearest one.
    pub serial: SerialOrders,
}

impl NotSerial {
    /// Kebab-case name of the kind.
    pub fn kind(&self) -> &'static str {
        match self.serial.effect {
            _ if self.serial.is_latent == Some(true) => "latent-error",
            Effect::Error => "unexpected-error",
            Effect::Performance => "slow-operation",
            Effect::Crash | Effect::Deadlock | Effect::Hang | Effect::Semantic => {
                "not-linearizable"
            }
        }
    }
}

/// What was wrong about a use of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeapFault {
    UseAfterFree,
    DoubleFree,
    InvalidFree,
    Overflow,
}

impl HeapFault {
    /// Kebab-case name of the kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::UseAfterFree => "use-after-free",
            Self::DoubleFree => "double-free",
            Self::InvalidFree => "invalid-free",
            Self::Overflow => "heap-overflow",
        }
    }
}

impl Failure {
    /// Judges a wait status. `words` is what the program wrote to standard error.
    pub fn of_status(
        status: i32,
        expected: i32,
        words: &str,
        crash: Option<&Crash>,
    ) -> Option<Self> {
        let signal = status & 0x7F;
        if signal == 0 {
            let code = status >> 8 & 0xFF;
            if code == expected {
                return None;
            }
            if let Some(message) = assertion_message(words) {
                return Some(Self::Assertion { message });
            }
            return Some(Self::WrongExit {
                status: code,
                expected,
            });
        }
        if signal == SIGABRT {
            let message = assertion_message(words).or_else(|| last_words(words));
            let message = message.unwrap_or_else(|| "abort() was called".into());
            return Some(Self::Assertion { message });
        }
        Some(Self::Crash {
            signal,
            crash: crash.cloned().map(Box::new),
        })
    }

    /// Kebab-case name of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Crash { .. } => "crash",
            Self::Assertion { .. } => "assertion",
            Self::WrongExit { .. } => "wrong-exit",
            Self::WrongOutput { .. } => "wrong-output",
            Self::NotSerial(how) => how.kind(),
            Self::Heap { fault, .. } => fault.kind(),
            Self::Deadlock { .. } => "deadlock",
            Self::Hang { .. } => "hang",
        }
    }

    /// Equal for two runs that show the same bug: the place, not the values.
    pub fn fingerprint(&self) -> String {
        let mut digest = Digest::default();
        digest.bytes(self.kind().as_bytes());
        match self {
            Self::Crash { signal, crash } => {
                digest.word(u64::from(signal.cast_unsigned()));
                digest.word(crash.as_ref().map_or(0, |crash| crash.site.number()));
            }
            Self::Assertion { message } => digest.bytes(without_numbers(message).as_bytes()),
            Self::WrongExit { status, .. } => digest.word(u64::from(status.cast_unsigned())),
            Self::WrongOutput { reason } => digest.bytes(without_numbers(reason).as_bytes()),
            Self::NotSerial(how) => digest.bytes(how.what.as_bytes()),
            Self::Heap { site, .. } => digest.word(site.number()),
            Self::Deadlock { calls } => calls.iter().for_each(|call| digest.word(call.number())),
            // Where a loop is cut off is chance.
            Self::Hang { .. } => {}
        }
        format!("{:016x}", digest.value())
    }
}

/// The line in which a program says why it gives up: C's assert, C++'s terminate, Rust's panic, glibc's checks.
pub fn assertion_message(words: &str) -> Option<String> {
    const MARKS: &[&str] = &[
        "Assertion `",
        "Assertion failed",
        "panicked at",
        "terminate called",
        "*** ",
        "double free",
        "malloc(): ",
        "free(): ",
        "corrupted",
        "invariant",
        "FATAL",
        "fatal error",
    ];
    let lines: Vec<&str> = words.lines().collect();
    let at = lines
        .iter()
        .position(|line| MARKS.iter().any(|mark| line.contains(mark)))?;
    let mut message = lines[at].trim().to_owned();
    // Rust prints the message itself on the next line, and C++ what an exception says.
    let is_continued = |next: &str| message.contains("panicked at") || next.starts_with("what():");
    if let Some(next) = lines.get(at + 1).map(|next| next.trim())
        && is_continued(next)
    {
        message = format!("{message} {next}");
    }
    Some(message)
}

/// The last line that a program wrote before it aborted: it mostly says why.
fn last_words(words: &str) -> Option<String> {
    let mut lines = words.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).map(str::to_owned)
}

/// Thread ids and addresses differ between runs that show the same bug; `file.c:12` must stay.
fn without_numbers(message: &str) -> String {
    let mut out = String::new();
    for word in message.split_whitespace() {
        // `count=3`: the name is the same in every run.
        let (name, value) = word.rsplit_once('=').unwrap_or(("", word));
        out.push_str(name);
        let bare = value.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let has_name = bare.contains(|c: char| c.is_ascii_alphabetic());
        let is_hexadecimal = bare.chars().all(|c| c.is_ascii_hexdigit() || c == 'x');
        let is_number =
            bare.starts_with(|c: char| c.is_ascii_digit()) && (is_hexadecimal || !has_name);
        out.push_str(if is_number { "#" } else { value });
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use raddle_world::{ContextId, Doing, MemoryFault, ThreadName};

    use super::*;

    #[test]
    fn statuses_are_judged_by_kind() {
        let judge = |status, words| Failure::of_status(status, 0, words, None).map(|f| f.kind());
        assert_eq!(judge(0, ""), None);
        assert_eq!(judge(3 << 8, ""), Some("wrong-exit"));
        assert_eq!(
            judge(6, "a: a.c:3: f: Assertion `x' failed."),
            Some("assertion")
        );
        assert_eq!(judge(11, ""), Some("crash"));
        let message = |words| match Failure::of_status(6, 0, words, None) {
            Some(Failure::Assertion { message }) => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            message("start\nrange is torn: 100..10\n\n"),
            "range is torn: 100..10"
        );
        assert_eq!(message(""), "abort() was called");
        assert_eq!(
            message("terminate called after throwing an instance of 'E'\n  what():  no limit\n"),
            "terminate called after throwing an instance of 'E' what():  no limit"
        );
        assert_eq!(
            judge(101 << 8, "thread 'main' (7) panicked at a.rs:3:5:\nboom"),
            Some("assertion")
        );
        assert_eq!(
            Failure::of_status(3 << 8, 3, "", None),
            None,
            "an expected status is right"
        );
    }

    #[test]
    fn fingerprints_ignore_values_but_not_places() {
        let of = |message: &str| {
            Failure::Assertion {
                message: message.into(),
            }
            .fingerprint()
        };
        assert_eq!(
            of("thread '<unnamed>' (1003) panicked at a.rs:3:5: left: 3"),
            of("thread '<unnamed>' (1004) panicked at a.rs:3:5: left: 1")
        );
        assert_ne!(of("a.c:3: Assertion `x'"), of("a.c:4: Assertion `x'"));
        assert_eq!(of("torn: 100..10, n=3"), of("torn: 0..7, n=12"));
    }

    #[test]
    fn crashes_are_told_apart_by_their_instruction_and_not_by_what_it_wanted() {
        let crash = |pc, addr| Crash {
            context: ContextId(0),
            thread: ThreadName {
                number: 1001,
                name: "a".into(),
            },
            process: 1000,
            signal: 11,
            signal_name: "SIGSEGV".into(),
            site: Site::first(pc),
            place: "a + 0x1136".into(),
            fault: Some(MemoryFault {
                doing: Doing::Reading,
                addr,
            }),
        };
        let fingerprint = |pc, addr| {
            let failure = Failure::of_status(11, 0, "", Some(&crash(pc, addr)));
            failure.expect("a crash").fingerprint()
        };
        assert_eq!(fingerprint(0x40_1136, 0), fingerprint(0x40_1136, 8));
        assert_ne!(fingerprint(0x40_1136, 0), fingerprint(0x40_1140, 0));
    }
}
