//! Worlds of Linux programs.

use std::path::Path;

use raddle_linux::{LinuxWorld, Setup, StartError};
use raddle_world::SeededChoices;

/// A world with this program and these arguments.
#[track_caller]
pub fn world(program: &Path, arguments: &[&str], seed: u64) -> LinuxWorld {
    try_world(program, arguments, seed).expect("the program starts")
}

/// The same for a program that may be damaged.
///
/// # Errors
/// Why the world cannot begin.
pub fn try_world(program: &Path, arguments: &[&str], seed: u64) -> Result<LinuxWorld, StartError> {
    let name = program.as_os_str().as_encoded_bytes().to_vec();
    let rest = arguments.iter().map(|text| text.as_bytes().to_vec());
    LinuxWorld::new(Setup {
        program: name.clone(),
        arguments: std::iter::once(name).chain(rest).collect(),
        environment: vec![b"LC_ALL=C".to_vec()],
        directory: b"/".to_vec(),
        stdin: Vec::new(),
        mappings: Vec::new(),
        visible: None,
        elsewhere: None,
        memory_max: 1 << 30,
        processes_max: 64,
        cpus: 4,
        choices: Box::new(SeededChoices::new(seed)),
    })
}
