//! The runtime of hardened programs, as bytes: two static archives and the header of `raddle_oracle`.
//!
//! Read `rt/episode.c` first: it counts the attempts of one recovery; `rt/lock.c` finds wait-for cycles;
//! `rt/unwind.c` jumps from a failing callee back into a prepared caller; `rt/thunk.S` keeps all registers.

/// One file that a hardened build needs.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub name: &'static str,
    pub bytes: &'static [u8],
}

/// Archives, in link order.
pub const ARCHIVES: [Part; 2] = [
    Part {
        name: "libraddle_harden_calls.a",
        bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libraddle_harden_calls.a")),
    },
    Part {
        name: "libraddle_harden_core.a",
        bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libraddle_harden_core.a")),
    },
];

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
