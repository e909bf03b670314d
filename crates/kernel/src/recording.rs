//! The recording of a failing run of a kernel: everything needed to have it again, in one small readable file.

use raddle_stdx::Digest;
use raddle_trace::Schedule;
use serde::{Deserialize, Serialize};

use crate::campaign::Rules;

const MAGIC: &str = "raddle-kernel-recording";
/// Version of the file's form.
const FORMAT: u32 = 1;
/// Raised whenever an old recording would run differently.
pub const SEMANTICS: u32 = 1;

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

/// Why a file is no recording that can be replayed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RecordingError {
    #[error("it is not a kernel recording: the first line does not begin with `{MAGIC}`")]
    NotARecording,
    #[error("it has format version {found}, this raddle reads version {FORMAT}")]
    Format { found: String },
    #[error("it is damaged: the checksum is {computed:016x} and should be {stated}")]
    Damaged { stated: String, computed: u64 },
    #[error(
        "it was made by a raddle whose machine runs differently (semantics {found}, this one has {SEMANTICS}); explore again"
    )]
    Semantics { found: u32 },
    #[error("its content is malformed: {0}")]
    Content(String),
}

impl KernelRecording {
    /// The file's text.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let body = serde_json::to_string_pretty(self)? + "\n";
        Ok(format!(
            "{MAGIC} {FORMAT} {:016x}\n{body}",
            digest(body.as_bytes())
        ))
    }

    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let (head, body) = text.split_once('\n').ok_or(RecordingError::NotARecording)?;
        let mut words = head.split(' ');
        if words.next() != Some(MAGIC) {
            return Err(RecordingError::NotARecording);
        }
        let format = words.next().unwrap_or_default();
        if format != FORMAT.to_string() {
            return Err(RecordingError::Format {
                found: format.to_owned(),
            });
        }
        let stated = words.next().unwrap_or_default();
        let computed = digest(body.as_bytes());
        if stated != format!("{computed:016x}") {
            return Err(RecordingError::Damaged {
                stated: stated.to_owned(),
                computed,
            });
        }
        let recording: Self = serde_json::from_str(body)
            .map_err(|error| RecordingError::Content(error.to_string()))?;
        if recording.semantics != SEMANTICS {
            return Err(RecordingError::Semantics {
                found: recording.semantics,
            });
        }
        Ok(recording)
    }
}

/// Digest of a file's content.
pub fn digest(bytes: &[u8]) -> u64 {
    let mut digest = Digest::default();
    digest.bytes(bytes);
    digest.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> KernelRecording {
        KernelRecording {
            semantics: SEMANTICS,
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
                modules: Vec::new(),
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
            },
            schedule: Schedule::default(),
            start_digest: 3,
            run_digest: u64::MAX,
            state_digest: 5,
        }
    }

    #[test]
    fn text_and_back() {
        let text = sample().to_text().unwrap();
        assert_eq!(KernelRecording::parse(&text), Ok(sample()));
    }

    #[test]
    fn damage_and_foreign_files_are_told_apart() {
        let text = sample().to_text().unwrap();
        let damaged = text.replace("\"cpus\": 2", "\"cpus\": 3");
        assert!(matches!(
            KernelRecording::parse(&damaged),
            Err(RecordingError::Damaged { .. })
        ));
        assert_eq!(
            KernelRecording::parse("raddle-recording 1 0\n{}"),
            Err(RecordingError::NotARecording)
        );
    }
}
