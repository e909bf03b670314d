//! Compiling programs for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::succeed;
use crate::folders::{scratch, test_program};

/// The source of a program that fails in some interleavings.
pub const LOST: &str = include_str!("../../raddle/tests/explore/lost.c");

/// Compiles a source in C, C++, assembler, Rust or Go, by its ending. Nothing is added to the flags, which stand behind
/// the source, so that libraries may be among them.
#[track_caller]
pub fn compile(source: &Path, program: &Path, flags: &[&str]) -> PathBuf {
    succeed(&mut compiler(source, program, flags));
    program.to_path_buf()
}

fn compiler(source: &Path, program: &Path, flags: &[&str]) -> Command {
    let mut command = match source.extension().and_then(|ending| ending.to_str()) {
        Some("go") => return go(source, program, flags),
        Some("cpp" | "cc") => Command::new("g++"),
        Some("rs") => Command::new("rustc"),
        _ => Command::new("gcc"),
    };
    command.arg(source).args(flags).arg("-o").arg(program);
    command
}

/// Go's own libraries are compiled once for all tests.
fn go(source: &Path, program: &Path, flags: &[&str]) -> Command {
    let cache = scratch().join("go");
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(program).args(flags);
    command
        .arg(source)
        .env("GOCACHE", &cache)
        .env("HOME", cache);
    command.env("GO111MODULE", "off").env("CGO_ENABLED", "0");
    command
}

/// Writes a source into a folder and compiles it there; the program has the name of the file without its ending.
#[track_caller]
pub fn compile_text(folder: &Path, file: &str, text: &str, flags: &[&str]) -> PathBuf {
    let source = folder.join(file);
    std::fs::write(&source, text).expect("the source can be written");
    compile(&source, &source.with_extension(""), flags)
}

/// Compiles one of the test programs, such as `explore/lost.c`, into a folder. The source is copied there, so that
/// nothing in the program depends on where the checkout lies.
#[track_caller]
pub fn compile_test_program(folder: &Path, source: &str, flags: &[&str]) -> PathBuf {
    let source = test_program(source);
    let name = source.file_stem().expect("a source has a name");
    compile_copy(&source, &folder.join(name), flags)
}

/// Copies a source to its program's folder and compiles it there.
#[track_caller]
pub(crate) fn compile_copy(source: &Path, program: &Path, flags: &[&str]) -> PathBuf {
    let folder = program.parent().expect("a program lies in a folder");
    let name = Path::new(source.file_name().expect("a source has a name"));
    std::fs::copy(source, folder.join(name)).expect("the source can be copied");
    succeed(compiler(name, program, flags).current_dir(folder));
    program.to_path_buf()
}

/// git, under a name that means nothing.
#[track_caller]
pub fn git(folder: &Path, arguments: &[&str]) {
    succeed(
        Command::new("git")
            .current_dir(folder)
            .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
            .args(arguments),
    );
}
