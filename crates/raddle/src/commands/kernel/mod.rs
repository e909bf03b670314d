//! `raddle kernel`: interleavings of system calls inside an unmodified Linux kernel.

use clap::{Args, Subcommand};

use crate::exit::{Code, Failure};

mod boot;
mod bundle;
pub(super) mod explore;
mod generate;
pub(super) mod guest_options;
mod initramfs;
mod kinds;
mod modules;
mod new_test;
pub(crate) mod prepare;
mod replay;
mod summary;
mod whereabouts;

pub(super) use kinds::KINDS;
pub(super) use replay::{Inspection, Replay, explained, is_recording};

/// Explore interleavings of system calls inside an unmodified Linux kernel.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle kernel boot --kernel /boot/vmlinuz\n  raddle kernel new-test --template pipe > pipe.ktest\n  raddle kernel explore --kernel /boot/vmlinuz pipe.ktest\n  raddle kernel replay pipe-KO-1c9e.kraddle"
)]
pub(crate) struct Kernel {
    #[command(subcommand)]
    command: KernelCommand,
}

#[derive(Debug, Subcommand)]
enum KernelCommand {
    Boot(boot::Boot),
    NewTest(new_test::NewTest),
    Generate(generate::Generate),
    Explore(Box<explore::Explore>),
    Predict(Box<super::predict::KernelPredict>),
    Initramfs(initramfs::Initramfs),
    Replay(replay::Replay),
    Bundle(bundle::Bundle),
}

impl Kernel {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        match self.command {
            KernelCommand::Boot(command) => command.run(),
            KernelCommand::NewTest(command) => command.run(),
            KernelCommand::Generate(command) => command.run(),
            KernelCommand::Explore(command) => command.run(),
            KernelCommand::Predict(command) => command.run(),
            KernelCommand::Initramfs(command) => command.run(),
            KernelCommand::Replay(command) => command.run(),
            KernelCommand::Bundle(command) => command.run(),
        }
    }
}
