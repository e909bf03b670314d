//! What a program or kernel asked for and a world does not have.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

use crate::crash::ThreadName;

/// Something that a world does not have, with everything that a report of it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unsupported {
    /// A thread came to an instruction that the machine does not implement.
    Instruction {
        thread: ThreadName,
        pc: u64,
        /// The file that is mapped there, and the offset in it.
        place: String,
        bytes: Vec<u8>,
    },
    /// A processor came to such an instruction.
    ProcessorInstruction { pc: u64, bytes: Vec<u8> },
    /// A system call that is not served at all.
    Call(CallMade),
    /// A system call that is served, but not like this.
    UseOfCall {
        call: CallMade,
        lacking: Lacking,
        /// What the table of supported calls says about it; empty if nothing.
        note: Cow<'static, str>,
    },
    /// A system call in the way of 32-bit programs.
    Call32 { thread: u32, number: u64 },
    /// The program uses more memory than it was given.
    Memory { mebibytes: u64 },
    /// A world that lives on what another one has learned of its host was asked for more.
    Elsewhere { path: String },
}

/// A system call that a thread made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallMade {
    pub thread: ThreadName,
    pub number: u32,
    pub name: Cow<'static, str>,
    pub arguments: [u64; 6],
}

/// What a system call asked for in vain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lacking {
    /// A flag, a policy, a combination of arguments.
    Arguments(Cow<'static, str>),
    /// A timer on this execution-time clock.
    TimerOnClock(i32),
    /// One more thread or process than the limit allows.
    Contexts { live: usize, limit: usize },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instruction {
                thread,
                pc,
                place,
                bytes,
            } => write!(
                f,
                "{thread} reached an instruction that raddle does not implement at {pc:#x} ({place}): bytes {}; \
                 please report these bytes with the name of the program",
                hex(bytes)
            ),
            Self::ProcessorInstruction { pc, bytes } => {
                write!(f, "bytes {} at {pc:#x}", hex(bytes))
            }
            Self::Call(call) => write!(f, "{call}, which raddle does not support"),
            Self::UseOfCall {
                call,
                lacking,
                note,
            } => {
                write!(f, "{call}: {lacking}")?;
                if note.is_empty() {
                    return Ok(());
                }
                write!(f, " (the table of calls says: {note})")
            }
            Self::Call32 { thread, number } => write!(
                f,
                "thread {thread} made a 32-bit system call (INT 80h) with number {number}; raddle runs 64-bit \
                 programs only"
            ),
            Self::Memory { mebibytes } => write!(
                f,
                "the program uses more than the {mebibytes} MiB of memory it was given; raise the limit with \
                 --max-memory"
            ),
            Self::Elsewhere { path } => write!(
                f,
                "the program asked for {path}, which did not travel with it: only what its first run has touched did"
            ),
        }
    }
}

impl fmt::Display for CallMade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            thread,
            number,
            name,
            arguments,
        } = self;
        let arguments = arguments.map(|argument| format!("{argument:#x}"));
        let arguments = arguments.join(", ");
        write!(
            f,
            "{thread} made the system call {number} {name}({arguments})"
        )
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(what) => f.write_str(what),
            Self::TimerOnClock(clock) => {
                write!(f, "timer_create on the execution-time clock {clock}")
            }
            Self::Contexts { live, limit } => write!(
                f,
                "the program has {live} threads and processes and wants one more; the limit is {limit}, raise it \
                 with --max-processes"
            ),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallMade {
        CallMade {
            thread: ThreadName {
                number: 7,
                name: "bank".into(),
            },
            number: 425,
            name: "io_uring_setup".into(),
            arguments: [8, 0x1000, 0, 0, 0, 0],
        }
    }

    #[test]
    fn a_call_is_told_with_its_arguments_and_the_note_of_the_table() {
        let made = "thread 7 `bank` made the system call 425 io_uring_setup(0x8, 0x1000, 0x0, 0x0, 0x0, 0x0)";
        assert_eq!(
            Unsupported::Call(call()).to_string(),
            format!("{made}, which raddle does not support")
        );
        let used = |note| Unsupported::UseOfCall {
            call: call(),
            lacking: Lacking::TimerOnClock(2),
            note,
        };
        let plain = format!("{made}: timer_create on the execution-time clock 2");
        assert_eq!(used("".into()).to_string(), plain);
        let noted = format!("{plain} (the table of calls says: no rings)");
        assert_eq!(used("no rings".into()).to_string(), noted);
    }

    #[test]
    fn an_instruction_is_told_by_its_bytes() {
        let instruction = Unsupported::ProcessorInstruction {
            pc: 0x1234,
            bytes: vec![0x0F, 0xB],
        };
        assert_eq!(instruction.to_string(), "bytes 0f 0b at 0x1234");
    }
}
