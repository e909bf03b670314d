//! The recording of a run: everything needed to have it again, in one small file.

use raddle_config::hooks::Hook;
use raddle_protocol::Scripts;
use serde::{Deserialize, Serialize};

use crate::envelope::Enveloped;
use crate::landmark::Landmark;
use crate::schedule::Schedule;
use crate::serial_rules::SerialRules;

/// Version of what a step, a stop and the default order mean. Raised whenever an old recording would run
/// differently.
pub const SEMANTICS: u32 = 4;

/// What a recording needs whose operations are compared with serial orders.
pub const SERIAL_ORDERS: &str = "serial-orders";

/// What a recording needs whose program is spoken to by scripted clients.
pub const CLIENTS: &str = "clients";

/// What a recording needs in whose run contexts meet faults.
pub const FAULTS: &str = "faults";

/// What a recording needs that is of an ordinary run, or begins in one: the plain order of contexts.
pub const ORDINARY_RUNS: &str = "ordinary-runs";

/// Where an ordinary run begins, as `snapshot_at` names it.
pub const PROGRAM_START: &str = "step:0";

/// What the program was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    pub program: String,
    pub arguments: Vec<String>,
    pub environment: Vec<String>,
    pub directory: String,
    pub stdin: Vec<u8>,
    pub mappings: Vec<Mapping>,
    /// In a sealed world, the host files and directories that the guest can see besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible: Option<Vec<String>>,
    pub memory_max: u64,
    pub processes_max: usize,
    pub cpus: u32,
    /// Seed of every choice that is not about scheduling.
    pub seed: u64,
    /// Functions of the project that mean synchronisation or allocation, beside the ones known to all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// What clients say to the program, if it is a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Scripts>,
    /// What came from outside while an ordinary run went on.
    #[serde(default, skip_serializing_if = "Outside::is_nothing")]
    pub outside: Outside,
}

/// What came from outside while an ordinary run went on. With the inputs, all that it depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outside {
    /// The outputs of the program that were closed, in their order.
    pub closed: Vec<ClosedOutput>,
    /// The turn after which the run was ended, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
}

/// No process outside read this output (1 or 2) any more after this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedOutput {
    pub turn: u64,
    pub descriptor: i32,
}

impl Outside {
    /// Whether nothing came.
    pub fn is_nothing(&self) -> bool {
        self.closed.is_empty() && self.ended.is_none()
    }
}

impl Inputs {
    /// Why no program can be given this, if none can: it may come from a stranger.
    pub fn nonsense(&self) -> Option<&'static str> {
        let checks = [
            (
                (1..=64).contains(&self.cpus),
                "it has no processors or more than 64",
            ),
            (self.processes_max > 0, "it has no room for a process"),
            (self.memory_max >= MEMORY_MIN, "it has no memory"),
            (
                self.scripts.as_ref().is_none_or(|all| all.port > 0),
                "its clients have no port to speak to",
            ),
        ];
        checks
            .into_iter()
            .find_map(|(is_right, what)| (!is_right).then_some(what))
    }
}

/// A host path that the guest sees elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    pub host: String,
    pub guest: String,
}

/// Limits that are part of the meaning of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Steps of a context in a row before the default order goes on to the next.
    pub patience: u64,
    /// Steps of all contexts after which the run counts as hanging.
    pub steps: u64,
}

impl Limits {
    /// Whether a run can make steps, and its counts stay within what they are counted with.
    pub fn is_possible(self) -> bool {
        let counts = 1..=u64::MAX / 2;
        counts.contains(&self.patience) && counts.contains(&self.steps)
    }
}

/// Bytes of memory without which no program starts.
const MEMORY_MIN: u64 = 1 << 20;

/// What ends a run at the moment it goes wrong; part of the meaning of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Wrong frees and accesses to freed memory.
    pub heap: bool,
    /// Accesses just behind a block of the heap.
    pub red_zones: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            heap: true,
            red_zones: false,
        }
    }
}

/// What counts as right besides not crashing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Expected {
    /// Exit status.
    pub exit: i32,
    /// Exactly this standard output, if given.
    pub output: Option<String>,
    /// A command that reads the standard output and ends with 0 if it is right, if given.
    pub oracle: Option<String>,
    /// What some serial order of the operations gives, compared so, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<SerialRules>,
}

/// A host file that a run has read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFile {
    pub path: String,
    pub size: u64,
    pub digest: u64,
}

/// How an ordinary run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordinary {
    pub ending: Ending,
    /// Steps of all contexts.
    pub steps: u64,
    /// Digest of what the program wrote to standard output and standard error.
    pub output_digest: u64,
}

/// How an ordinary run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The first process ended with this wait status.
    Exited(i32),
    /// No context could ever run again.
    Deadlock,
    /// It came to something that raddle does not support.
    Unsupported,
    /// It made as many steps as it was allowed.
    OutOfSteps,
    /// It was ended from outside.
    Interrupted,
}

/// The state of a run after some of its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Steps of all contexts since the snapshot.
    pub steps: u64,
    pub run_digest: u64,
    pub state_digest: u64,
}

/// A recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    pub semantics: u32,
    /// What a replay needs beside what every recording needs; see [`Enveloped::ABILITIES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Where the schedule begins, as the user named it.
    pub snapshot_at: String,
    pub inputs: Inputs,
    pub limits: Limits,
    pub checks: Checks,
    /// What counts as right.
    pub expected: Expected,
    /// Digest of the run up to the snapshot: another value means another program, library or input file.
    pub snapshot_digest: u64,
    /// The program, its libraries and whatever else it has read.
    pub files: Vec<HostFile>,
    /// States on the way, to find out where a replay goes another way.
    pub checkpoints: Vec<Checkpoint>,
    /// Digest of the whole run.
    pub run_digest: u64,
    /// Digest of registers and memory at the end.
    pub state_digest: u64,
    /// What happened, as one line.
    pub failure: String,
    /// Switches away from a context that could have gone on.
    pub preemptions: u64,
    /// Identity of the failure.
    pub fingerprint: String,
    /// The kind of failure, such as `deadlock`.
    #[serde(default)]
    pub kind: String,
    pub schedule: Schedule,
    /// Where the deviations happened, in their order, for a program that has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub landmarks: Vec<Landmark>,
    /// How it went, if it is an ordinary run: the order of its contexts follows from the seed, and not from the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinary: Option<Ordinary>,
}

impl Enveloped for Recording {
    const MAGIC: &'static str = "raddle-recording";
    const EXTENSION: &'static str = "raddle";
    const FORMAT: u32 = 3;
    const SEMANTICS: u32 = SEMANTICS;
    const ABILITIES: &'static [&'static str] = &[SERIAL_ORDERS, CLIENTS, FAULTS, ORDINARY_RUNS];

    fn semantics(&self) -> u32 {
        self.semantics
    }

    fn nonsense(&self) -> Option<&'static str> {
        if !self.limits.is_possible() {
            return Some("its limits let nobody run");
        }
        if self.ordinary.is_some() && self.snapshot_at != PROGRAM_START {
            return Some("it is of an ordinary run that does not begin where its program begins");
        }
        self.inputs.nonsense()
    }

    fn subject(&self) -> String {
        let Inputs {
            program,
            arguments,
            directory,
            ..
        } = &self.inputs;
        format!("{program} in {directory}: {}", arguments.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Deviation, Phase, Position, Turn};

    fn sample() -> Recording {
        Recording {
            semantics: SEMANTICS,
            needs: Vec::new(),
            snapshot_at: "first-thread".into(),
            inputs: Inputs {
                program: "./bank".into(),
                arguments: vec!["./bank".into()],
                environment: vec![],
                directory: "/tmp".into(),
                stdin: vec![1, 255],
                mappings: vec![],
                visible: None,
                memory_max: 1 << 30,
                processes_max: 8,
                cpus: 4,
                seed: 7,
                hooks: Vec::new(),
                scripts: None,
                outside: Outside::default(),
            },
            limits: Limits {
                patience: 1000,
                steps: 1_000_000,
            },
            checks: Checks::default(),
            expected: Expected::default(),
            snapshot_digest: 1,
            files: vec![HostFile {
                path: "/bin/bank".into(),
                size: 3,
                digest: 5,
            }],
            checkpoints: vec![Checkpoint {
                steps: 4,
                run_digest: 5,
                state_digest: 6,
            }],
            run_digest: 2,
            state_digest: 3,
            failure: "assertion failed".into(),
            preemptions: 1,
            fingerprint: "abcd".into(),
            kind: "assertion".into(),
            landmarks: vec![Landmark::default()],
            ordinary: None,
            schedule: Schedule {
                deviations: vec![Deviation {
                    context: vec![0],
                    at: Position {
                        steps: 9,
                        phase: Phase::Plain,
                    },
                    turn: Turn::Context(vec![0, 1]),
                }],
            },
        }
    }

    #[test]
    fn text_and_back() {
        assert_eq!(Recording::parse(&sample().to_text()), Ok(sample()));
    }
}
