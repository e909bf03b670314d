//! The recording of a failing run of a kernel: everything needed to have it again, in one small readable file.

use raddle_stdx::Digest;
use raddle_trace::recording::SERIAL_ORDERS;
use raddle_trace::{Enveloped, Limits, Schedule, SerialRules};
use serde::{Deserialize, Serialize};

use crate::campaign::Rules;

/// Raised whenever an old recording would run differently.
pub const SEMANTICS: u32 = 3;

/// The machine and what it boots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineInputs {
    /// Kernel image, as the user named it.
    pub kernel: String,
    pub kernel_digest: u64,
    pub cpus: usize,
    pub memory: u64,
    pub command_line: String,
    pub seed: u64,
    /// Digest of the initial file system: agent, program, files.
    pub initramfs_digest: u64,
    /// Program that brings its own test.
    pub program: Option<String>,
    /// Further files: guest path and host path.
    pub files: Vec<(String, String)>,
    /// Modules that are loaded before the boot snapshot, in this order.
    #[serde(default)]
    pub modules: Vec<BootModuleInput>,
}

/// A module that is loaded before the boot snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootModuleInput {
    /// Where it was found.
    pub path: String,
    pub parameters: String,
}

/// A module that the test loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleInput {
    /// As the test names it.
    pub name: String,
    /// Where it was found.
    pub path: String,
    pub digest: u64,
}

/// A recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRecording {
    pub semantics: u32,
    /// What a replay needs beside what every recording needs; see [`Enveloped::ABILITIES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// How calls were compared with those of serial orders, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<SerialRules>,
    /// What went wrong, as one line.
    pub failure: String,
    pub fingerprint: String,
    pub machine: MachineInputs,
    pub test_path: String,
    /// The test case, whole.
    pub test: Option<String>,
    pub modules: Vec<ModuleInput>,
    /// Virtual nanoseconds of the test at most.
    pub time_max: u64,
    pub rules: Rules,
    pub schedule: Schedule,
    /// Digests of the guest at the start line, of the run, and of the guest at its end.
    pub start_digest: u64,
    pub run_digest: u64,
    pub state_digest: u64,
}

impl Enveloped for KernelRecording {
    const MAGIC: &'static str = "raddle-kernel-recording";
    const EXTENSION: &'static str = "kraddle";
    const FORMAT: u32 = 4;
    const SEMANTICS: u32 = SEMANTICS;
    const ABILITIES: &'static [&'static str] = &[SERIAL_ORDERS];

    fn semantics(&self) -> u32 {
        self.semantics
    }

    fn nonsense(&self) -> Option<&'static str> {
        let limits = Limits {
            patience: self.rules.patience,
            steps: self.rules.steps,
        };
        (!limits.is_possible()).then_some("its limits let no processor run")
    }

    fn subject(&self) -> String {
        // Tests in different folders may have one name; what was run is told by what it says.
        let test = Digest::of(self.test.as_deref().unwrap_or_default().as_bytes());
        let program = self.machine.program.as_deref().unwrap_or_default();
        format!("{test:016x} {program} on {}", self.machine.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> KernelRecording {
        KernelRecording {
            semantics: SEMANTICS,
            needs: Vec::new(),
            serial: None,
            failure: "oops".into(),
            fingerprint: "ab".into(),
            machine: MachineInputs {
                kernel: "vmlinuz".into(),
                kernel_digest: 1,
                cpus: 2,
                memory: 1 << 28,
                command_line: "quiet".into(),
                seed: 0,
                initramfs_digest: 2,
                program: None,
                files: vec![],
                modules: vec![],
            },
            test_path: "a.ktest".into(),
            test: Some("thread a:\n".into()),
            modules: vec![],
            time_max: 9,
            rules: Rules {
                patience: 1,
                steps: 2,
                races: None,
                interrupts: true,
                pause_window: 3,
                loop_window: 2,
                liveness: crate::campaign::LivenessRule::Rehearsed,
            },
            schedule: Schedule::default(),
            start_digest: 3,
            run_digest: u64::MAX,
            state_digest: 5,
        }
    }

    #[test]
    fn text_and_back() {
        let text = sample().to_text();
        assert_eq!(KernelRecording::parse(&text), Ok(sample()));
    }
}
