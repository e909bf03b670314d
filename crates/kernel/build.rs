//! Compiles the guest agent into a static program that this crate carries as bytes.
//!
//! It is C: the guest's first process has no C library, makes raw system calls, and shares its header with
//! programs that bring their own test.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script learns its folders from the environment"
)]

use std::path::Path;
use std::process::Command;

/// Where raddle.h lies.
const HEADER: &str = "../annotations/include";

fn main() {
    println!("cargo:rerun-if-changed=agent");
    println!("cargo:rerun-if-changed={HEADER}");
    println!("cargo:rerun-if-env-changed=CC");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".to_owned());
    let status = Command::new(&compiler)
        .args([
            "-static",
            "-nostdlib",
            "-no-pie",
            "-ffreestanding",
            "-O2",
            "-g0",
        ])
        .args([
            "-fno-stack-protector",
            "-fno-asynchronous-unwind-tables",
            "-mgeneral-regs-only",
        ])
        .args(["-fcf-protection=none", "-Wall", "-Wextra", "-Werror"])
        .args(["-Wl,--build-id=none", "-Wl,-z,noexecstack"])
        .args(["-I", HEADER, "-o"])
        .arg(Path::new(&out).join("agent"))
        .arg("agent/agent.c")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{compiler} could not compile the guest agent: {status}"),
        Err(error) => panic!(
            "{compiler} cannot be run to compile the guest agent ({error}); install gcc or set CC"
        ),
    }
}
