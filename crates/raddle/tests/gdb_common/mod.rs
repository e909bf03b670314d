//! A recorded run under gdb.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Serves a recording, connects gdb to it, and gives what gdb printed for these commands. `replay` are the words
/// before and after `--gdb 0`; gdb gets `options` before it connects.
pub(crate) fn debug(
    folder: &Path,
    replay: (&[&str], &[&str]),
    options: &[&str],
    commands: &[&str],
) -> String {
    let mut server = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .current_dir(folder)
        .args(replay.0)
        .args(["--gdb", "0"])
        .args(replay.1)
        .stderr(Stdio::piped())
        .spawn()
        .expect("raddle starts");
    let errors = server.stderr.take().expect("it is piped");
    let mut told = BufReader::new(errors).lines();
    let port = told.find_map(|line| {
        let line = line.expect("text");
        let (_, rest) = line.split_once("target remote :")?;
        rest.split('\'').next().map(str::to_owned)
    });
    let port = port.expect("an invitation with a port");
    let mut gdb = Command::new("gdb");
    gdb.current_dir(folder)
        .args(["-batch", "-nx", "-ex", "set pagination off"])
        .args(options)
        .args(["-ex", &format!("target remote :{port}")]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    let output = gdb.output().expect("gdb is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    server.wait().expect("raddle ends when gdb leaves");
    text + &told
}
