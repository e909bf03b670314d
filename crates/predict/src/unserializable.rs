//! CTrigger: accesses of another context that could come between two of one context, so that no serial order gives the
//! same result.

use crate::access::Seen;
use crate::target::{Forced, Kind, Rank, Target};

/// Two accesses of one context and one of another.
#[derive(Debug, Clone, Copy)]
pub struct Between<'a> {
    pub first: &'a Seen,
    pub remote: &'a Seen,
    pub second: &'a Seen,
}

/// The cases in which no serial order gives the same result (Lu, Tucek, Qin, Zhou: AVIO, ASPLOS 2006).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    /// Two reads give different values.
    ReadWriteRead,
    /// What was written is not read.
    WriteWriteRead,
    /// Something half done is seen.
    WriteReadWrite,
    /// A write is based on what is no longer so.
    ReadWriteWrite,
}

impl Case {
    /// In the letters of the papers.
    pub fn letters(self) -> &'static str {
        match self {
            Self::ReadWriteRead => "R-W-R",
            Self::WriteWriteRead => "W-W-R",
            Self::WriteReadWrite => "W-R-W",
            Self::ReadWriteWrite => "R-W-W",
        }
    }
}

fn case(between: Between<'_>) -> Option<Case> {
    let Between {
        first,
        remote,
        second,
    } = between;
    let bytes = first.bytes & second.bytes & remote.bytes;
    if bytes == 0 {
        return None;
    }
    if remote.writes {
        // An instruction that reads and writes is judged by what it does first at its end of the pair.
        match (first.writes, second.reads) {
            (true, true) => Some(Case::WriteWriteRead),
            (false, true) => Some(Case::ReadWriteRead),
            (false, false) => Some(Case::ReadWriteWrite),
            (true, false) => None,
        }
    } else {
        (first.writes && second.writes).then_some(Case::WriteReadWrite)
    }
}

/// What would force it, if it is unserializable and no critical section forbids it.
pub fn target(between: Between<'_>) -> Option<Target> {
    let case = case(between)?;
    let Between {
        first,
        remote,
        second,
    } = between;
    if first.is_excluded_with(second, remote) {
        return None;
    }
    Some(Target {
        kind: Kind::Unserializable(case),
        rank: if second.synchronises {
            Rank::Doubtful
        } else {
            Rank::Likely
        },
        forced: vec![Forced {
            held: second.context,
            path: Vec::new(),
            at: second.hold_before(&remote.held),
            until: remote.spot,
        }],
        sites: vec![
            (first.spot.site, "first"),
            (remote.spot.site, "between"),
            (second.spot.site, "second"),
        ],
        gap: second.step.saturating_sub(first.step),
        distance: remote.number.abs_diff(second.number),
        gives: None,
    })
}
