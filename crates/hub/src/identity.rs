//! Who may work for whom: results are equal bit for bit only between equal builds.

use std::fmt;
use std::path::Path;

use raddle_stdx::{Digest, regular_file};
use raddle_trace::{Enveloped, Recording};
use serde::{Deserialize, Serialize};

/// Version of what the messages of this crate mean.
pub const PROTOCOL: u32 = 1;

/// Bytes of a program of ours at most.
const PROGRAM_BYTES_MAX: u64 = 4 << 30;

/// A build of raddle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub protocol: u32,
    /// Of the program, as its package has it.
    pub version: String,
    /// Of what a step, a stop and the default order mean.
    pub semantics: u32,
    /// Digest of the program file: two builds of one version may choose other schedules.
    pub build: u64,
}

impl Identity {
    /// That of the program in this file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_program(file: &Path, version: &str) -> std::io::Result<Self> {
        Ok(Self {
            protocol: PROTOCOL,
            version: version.to_owned(),
            semantics: <Recording as Enveloped>::SEMANTICS,
            build: Digest::of(&regular_file::read(file, PROGRAM_BYTES_MAX)?),
        })
    }

    /// A word for subjects of the hub: jobs are queued for one build, and no other one ever sees them.
    pub fn token(&self) -> String {
        let mut digest = Digest::default();
        digest.word(u64::from(self.protocol));
        digest.bytes(self.version.as_bytes());
        digest.word(u64::from(self.semantics));
        digest.word(self.build);
        format!("{:016x}", digest.value())
    }

    /// Why one cannot work for the other; none if it can.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let parts = [
            (self.protocol != other.protocol, "protocol of the hub"),
            (self.version != other.version, "version"),
            (self.semantics != other.semantics, "semantics of the engine"),
            (self.build != other.build, "build"),
        ];
        let (_, what) = parts.into_iter().find(|(differs, _)| *differs)?;
        Some(format!("another {what}: {other} instead of {self}"))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            protocol,
            version,
            semantics,
            build,
        } = self;
        write!(
            f,
            "raddle {version} (build {build:016x}, semantics {semantics}, protocol {protocol})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_is_refused_with_the_reason() {
        let one = Identity {
            protocol: 1,
            version: "0.1.0".into(),
            semantics: 4,
            build: 7,
        };
        assert_eq!(one.difference(&one), None);
        let other = Identity {
            semantics: 5,
            ..one.clone()
        };
        assert_eq!(
            one.difference(&other).unwrap(),
            "another semantics of the engine: raddle 0.1.0 (build 0000000000000007, semantics 5, protocol 1) instead of raddle 0.1.0 (build 0000000000000007, semantics 4, protocol 1)"
        );
        assert_ne!(one.token(), other.token());
    }
}
