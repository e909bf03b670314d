//! A thread that died of what its own instruction did.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::context::ContextId;
use crate::site::Site;

/// A thread as a user knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadName {
    /// The number that the program itself sees.
    pub number: u32,
    pub name: String,
}

impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} `{}`", self.number, self.name)
    }
}

/// Where and why a thread died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    pub context: ContextId,
    pub thread: ThreadName,
    /// Number of its process.
    pub process: u32,
    pub signal: u32,
    /// `SIGSEGV` and the like.
    pub signal_name: String,
    /// The instruction at which it died.
    pub site: Site,
    /// The file that is mapped there, and the offset in it.
    pub place: String,
    /// What the instruction wanted of memory, if that is why it died.
    pub fault: Option<MemoryFault>,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            thread,
            process,
            signal_name,
            site,
            place,
            ..
        } = self;
        write!(
            f,
            "{thread} of process {process}: {signal_name} at pc {:#x} ({place})",
            site.pc()
        )?;
        match &self.fault {
            Some(fault) => write!(f, ", {fault}"),
            None => Ok(()),
        }
    }
}

/// An access that memory did not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFault {
    pub doing: Doing,
    pub addr: u64,
}

/// What an instruction does with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Doing {
    Reading,
    Writing,
    Executing,
}

impl fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.doing {
            Doing::Reading => "reading",
            Doing::Writing => "writing",
            Doing::Executing => "executing",
        };
        write!(f, "{doing} {:#x}", self.addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_told_in_one_line() {
        let mut crash = Crash {
            context: ContextId(1),
            thread: ThreadName {
                number: 7,
                name: "bank".into(),
            },
            process: 6,
            signal: 11,
            signal_name: "SIGSEGV".into(),
            site: Site::first(0x40_1136),
            place: "bank + 0x1136".into(),
            fault: None,
        };
        let alone = "thread 7 `bank` of process 6: SIGSEGV at pc 0x401136 (bank + 0x1136)";
        assert_eq!(crash.to_string(), alone);
        crash.fault = Some(MemoryFault {
            doing: Doing::Writing,
            addr: 8,
        });
        assert_eq!(crash.to_string(), format!("{alone}, writing 0x8"));
    }
}
