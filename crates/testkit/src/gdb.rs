//! A recorded run under gdb.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{raddle_in, run};

/// Serves a recording, connects gdb to it, and gives what gdb printed for these commands. `replay` are the words
/// before and after `--gdb 0`; gdb gets `options` before it connects.
pub fn debug(
    folder: &Path,
    replay: (&[&str], &[&str]),
    options: &[&str],
    commands: &[&str],
) -> String {
    let mut server = raddle_in(folder, replay.0)
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
    let (_, told) = run(&mut gdb).told();
    server.wait().expect("raddle ends when gdb leaves");
    told
}
