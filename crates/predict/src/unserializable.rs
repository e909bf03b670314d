//! CTrigger: accesses of another context that could come between two of one context, so that no serial order gives the
//! same result.

pub use raddle_detect::interleaving::Case;
use raddle_detect::interleaving::Triple;

use crate::access::Seen;
use crate::target::{Forced, Kind, Rank, Target};

/// Two accesses of one context and one of another.
#[derive(Debug, Clone, Copy)]
pub struct Between<'a> {
    pub first: &'a Seen,
    pub remote: &'a Seen,
    pub second: &'a Seen,
}

fn case(between: Between<'_>) -> Option<Case> {
    let Between {
        first,
        remote,
        second,
    } = between;
    let bytes = first.bytes & second.bytes & remote.bytes;
    let triple = Triple {
        first_writes: first.writes,
        remote_writes: remote.writes,
        second_reads: second.reads,
        second_writes: second.writes,
    };
    (bytes != 0).then(|| Case::of(triple)).flatten()
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
    let between = Forced::until_passed(second, remote);
    let mut ways = vec![vec![between.clone()]];
    if remote.number < first.number {
        // What usually comes first is kept back until the pair has begun.
        ways.push(vec![Forced::until_passed(remote, first), between]);
    }
    Some(Target {
        kind: Kind::Unserializable(case),
        rank: if second.synchronises {
            Rank::Doubtful
        } else {
            Rank::Likely
        },
        ways,
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
