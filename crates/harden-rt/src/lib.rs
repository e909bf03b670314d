//! The runtime of hardened programs, as bytes: a static archive and the header of `raddle_oracle`.
//!
//! Read `rt/episode.c` first: it counts the attempts of one recovery; `rt/lock.c` waits for locks and
//! `rt/cycle.c` finds wait-for cycles; `rt/log.c` undoes what was done since a point;
//! `rt/unwind.c` jumps from a failing callee back into a prepared caller; `rt/fault.c` turns faults into failed checks; `rt/thunk.S` keeps all registers.

/// One file that a hardened build needs.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub name: &'static str,
    pub bytes: &'static [u8],
}

/// The runtime.
pub const ARCHIVES: [Part; 1] = [Part {
    name: "libraddle_harden_rt.a",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libraddle_harden_rt.a")),
}];

/// The header with which a program states an oracle.
pub const HEADER: Part = Part {
    name: "raddle_oracle.h",
    bytes: include_bytes!("../rt/raddle_oracle.h"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_archives() {
        for part in ARCHIVES {
            assert!(part.bytes.starts_with(b"!<arch>\n"), "{}", part.name);
        }
    }
}
