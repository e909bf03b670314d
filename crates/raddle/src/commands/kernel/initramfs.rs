//! `raddle kernel initramfs`: a test case for machines that are not raddle's.

use std::path::PathBuf;

use clap::Args;
use raddle_kernel::campaign::input;
use raddle_kernel::guest::{alone, initramfs};

use super::explore::{read_test, start_failure};
use super::guest_options::{GuestOptions, guest_files};
use crate::exit::{Code, Failure};
use crate::keep;
use crate::message;

/// Write an initial file system that runs a test case on another machine, such as QEMU.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  raddle kernel initramfs --kernel vmlinuz --rounds 1000 --output test.cpio pipe.ktest\n  qemu-system-x86_64 -kernel vmlinuz -initrd test.cpio -smp 2 -nographic -no-reboot -append \"console=ttyS0 panic=-1 oops=panic panic_on_warn=1\""
)]
pub(crate) struct Initramfs {
    /// Test case.
    #[arg(value_name = "TEST")]
    test: PathBuf,
    /// File to write.
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// How often each thread makes its calls.
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u64,
    #[command(flatten)]
    guest: GuestOptions,
}

impl Initramfs {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let (test, _) = read_test(&self.test, &self.guest)?;
        let test = input(&test, self.guest.cpus).map_err(start_failure)?;
        let mut files = guest_files(&self.guest.file_pairs()?)?;
        files.extend(alone(test, self.rounds));
        let (_, modules): (Vec<_>, Vec<_>) = self.guest.boot_modules()?.into_iter().unzip();
        keep::write(&self.output, &initramfs(None, &files, &modules))?;
        message::note(&format!(
            "wrote {}; whatever boots the kernel with it runs the test, and restarts at its end",
            self.output.display()
        ));
        Ok(Code::Clean)
    }
}
