//! What runs inside: the agent, and the initial file system that carries it.

mod cpio;
mod library;
mod protocol;

pub use cpio::Archive;
pub use library::{LibraryError, with_libraries};
pub use protocol::Call;

/// The agent, a static program.
pub const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));
/// The header for programs that bring their own test.
pub const HEADER: &str = include_str!("../../../annotations/include/raddle.h");

/// Where a program that brings its own test lies in the guest.
const PROGRAM: &str = "test";

/// Where modules lie that the agent loads before the boot snapshot, as `0`, `1`, ... with `0.parameters` beside.
const MODULES: &str = "modules";

/// Where a test lies for machines that give none, and beside it how often its threads make their calls.
const ALONE: &str = "alone";
const ALONE_ROUNDS: &str = "alone.rounds";

/// A module that is loaded before the boot snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootModule {
    pub content: Vec<u8>,
    pub parameters: String,
}

/// A file that the user wants in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestFile {
    /// Path in the guest, without a slash in front.
    pub path: String,
    pub mode: u32,
    pub content: Vec<u8>,
}

/// The files with which the agent runs a test on a machine that does not answer it.
pub fn alone(input: Vec<u8>, rounds: u64) -> [GuestFile; 2] {
    let file = |path: &str, content| GuestFile {
        path: path.to_owned(),
        mode: 0o644,
        content,
    };
    [
        file(ALONE, input),
        file(ALONE_ROUNDS, rounds.to_string().into_bytes()),
    ]
}

/// The initial file system: the agent as `init`, the usual folders, the user's program and files.
pub fn initramfs(program: Option<&[u8]>, files: &[GuestFile], modules: &[BootModule]) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys", "tmp", "root"] {
        archive.folder(folder, 0o755);
    }
    // The console exists before devtmpfs is mounted, so that the agent's first words can come out.
    archive.character_device("dev/console", 0o600, 5, 1);
    archive.file("init", 0o755, AGENT);
    if let Some(program) = program {
        archive.file(PROGRAM, 0o755, program);
    }
    for (number, module) in modules.iter().enumerate() {
        archive.folder(MODULES, 0o755);
        archive.file(&format!("{MODULES}/{number}"), 0o644, &module.content);
        let parameters = module.parameters.as_bytes();
        archive.file(&format!("{MODULES}/{number}.parameters"), 0o644, parameters);
    }
    for file in files {
        archive.parents(&file.path);
        archive.file(&file.path, file.mode, &file.content);
    }
    archive.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_a_static_program() {
        assert_eq!(&AGENT[..4], b"\x7FELF");
        let has_interpreter = AGENT.windows(10).any(|part| part == b"/lib64/ld-");
        assert!(!has_interpreter);
    }

    #[test]
    fn the_header_and_we_agree_on_numbers() {
        let leaf = format!(
            "#define RADDLE_LEAF {:#x}u",
            raddle_pc::cpuid::HYPERCALL_LEAF
        );
        assert!(HEADER.contains(&leaf), "{leaf}");
        for call in Call::ALL {
            let line = HEADER
                .lines()
                .find(|line| line.trim_start().starts_with(call.constant()))
                .unwrap_or_else(|| panic!("{} is not in raddle.h", call.constant()));
            let number = line.split(['=', ',']).nth(1).unwrap().trim();
            assert_eq!(number, call.number().to_string(), "{line}");
        }
    }
}
