//! What the tests of whole worlds share.

use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_linux::{LinuxWorld, Setup, StartError};
use raddle_world::SeededChoices;

/// Compiles a program with these options besides.
pub(crate) fn compile(name: &str, source: &str, options: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, target) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).unwrap();
    let status = Command::new("gcc")
        .args(["-w", "-pthread", "-o"])
        .arg(&target)
        .arg(&file)
        .args(options)
        .status()
        .expect("gcc runs");
    assert!(status.success());
    target
}

/// A world with this program and these arguments.
pub(crate) fn world(program: &Path, arguments: &[&str], seed: u64) -> LinuxWorld {
    try_world(program, arguments, seed).unwrap()
}

/// The same for a program that may be damaged.
pub(crate) fn try_world(
    program: &Path,
    arguments: &[&str],
    seed: u64,
) -> Result<LinuxWorld, StartError> {
    let name = program.to_str().unwrap().as_bytes().to_vec();
    let rest = arguments.iter().map(|text| text.as_bytes().to_vec());
    LinuxWorld::new(Setup {
        program: name.clone(),
        arguments: std::iter::once(name).chain(rest).collect(),
        environment: Vec::new(),
        directory: b"/".to_vec(),
        stdin: Vec::new(),
        mappings: Vec::new(),
        visible: None,
        memory_max: 256 << 20,
        processes_max: 40,
        cpus: 4,
        choices: Box::new(SeededChoices::new(seed)),
    })
}
