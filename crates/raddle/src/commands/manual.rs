//! `raddle completions` and `raddle man-pages`: what shells and `man` know of the command line, from its declarations.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Arguments;
use crate::exit::{Code, Failure};
use crate::message;

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle completions bash > ~/.local/share/bash-completion/completions/raddle\n  raddle completions zsh > ~/.zfunc/_raddle\n  raddle completions fish > ~/.config/fish/completions/raddle.fish"
)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "raddle", &mut text);
        message::result(&String::from_utf8_lossy(&text))?;
        Ok(Code::Clean)
    }
}

/// Write manual pages, one for each command.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  raddle man-pages ~/.local/share/man/man1")]
pub(crate) struct ManPages {
    /// The folder to write to; it is made if it is not there.
    folder: PathBuf,
}

impl ManPages {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let shown = self.folder.display();
        std::fs::create_dir_all(&self.folder).with_context(|| format!("cannot make {shown}"))?;
        clap_mangen::generate_to(Arguments::command(), &self.folder)
            .with_context(|| format!("cannot write manual pages to {shown}"))?;
        Ok(Code::Clean)
    }
}
