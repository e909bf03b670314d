//! What a sealed program sees of this machine: itself and what the loader needs to start it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use raddle_kernel::guest::with_libraries;
use raddle_stdx::regular_file;

/// Tells the loader where libraries are; it names no other files.
const LIBRARY_CACHE: &str = "/etc/ld.so.cache";
/// Bytes of a program at most.
const PROGRAM_BYTES_MAX: u64 = 4 << 30;
/// Interpreters of interpreters.
const DEPTH_MAX: u32 = 4;

/// The host files of a program: its own, its loader and libraries; of a script, its interpreter with the same.
pub(crate) fn visible(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = vec![PathBuf::from(LIBRARY_CACHE)];
    let mut program = program.to_path_buf();
    for _ in 0..DEPTH_MAX {
        let content = regular_file::read(&program, PROGRAM_BYTES_MAX)
            .with_context(|| format!("cannot read the program {}", program.display()))?;
        files.push(program.clone());
        let Some(interpreter) = interpreter(&content) else {
            break;
        };
        program = interpreter;
    }
    // What is no program of ours is told by the attempt to run it.
    if let Ok(needed) = with_libraries(&program) {
        files.extend(needed.into_iter().map(|(_, host)| host));
    }
    Ok(files)
}

/// The interpreter that the first line of a script names.
fn interpreter(content: &[u8]) -> Option<PathBuf> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n');
    let line = String::from_utf8_lossy(line.into_iter().next()?).into_owned();
    line.split_whitespace().next().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_comes_with_its_interpreter_and_that_ones_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#! /bin/sh -e\necho hello\n").unwrap();
        let files = visible(&script).unwrap();
        assert!(files.contains(&script), "{files:?}");
        assert!(files.contains(&PathBuf::from("/bin/sh")), "{files:?}");
        let has_library = |file: &PathBuf| file.ends_with("libc.so.6");
        assert!(files.iter().any(has_library), "{files:?}");
        visible(Path::new("/dev/zero")).unwrap_err();
    }
}
