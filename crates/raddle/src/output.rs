//! Where a trace goes: a file, standard output, or standard error.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use anyhow::Context;

use crate::message;

/// What an option names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    File(PathBuf),
    /// `-`
    Stdout,
    /// An empty name: the option without a value, where it may be so.
    Stderr,
}

impl From<OsString> for Destination {
    fn from(name: OsString) -> Self {
        match name.to_str() {
            Some("-") => Self::Stdout,
            Some("") => Self::Stderr,
            _ => Self::File(name.into()),
        }
    }
}

/// Somewhere to write to, bit by bit. A reader that has seen enough (`| head`) is no error.
pub(crate) struct Output {
    to: BufWriter<Box<dyn Write>>,
    /// None for the standard streams.
    path: Option<PathBuf>,
    is_closed: bool,
}

impl Output {
    pub(crate) fn open(destination: &Destination) -> anyhow::Result<Self> {
        let (to, path): (Box<dyn Write>, _) = match destination {
            Destination::Stdout => (Box::new(std::io::stdout()), None),
            Destination::Stderr => (Box::new(std::io::stderr()), None),
            Destination::File(path) => {
                let file = File::create(path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                (Box::new(file), Some(path.clone()))
            }
        };
        Ok(Self {
            to: BufWriter::new(to),
            path,
            is_closed: false,
        })
    }

    pub(crate) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let written = self.to.write_all(text.as_bytes());
        self.check(written)
    }

    /// Writes what is left and says where it is.
    pub(crate) fn close(mut self) -> anyhow::Result<()> {
        if !self.is_closed {
            let written = self.to.flush();
            self.check(written)?;
        }
        if let Some(path) = &self.path {
            message::note(&format!("wrote {}", path.display()));
        }
        Ok(())
    }

    fn check(&mut self, written: std::io::Result<()>) -> anyhow::Result<()> {
        match written {
            Err(error) if self.path.is_none() && error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            written => written.with_context(|| match &self.path {
                Some(path) => format!("cannot write {}", path.display()),
                None => "cannot write the result".to_owned(),
            }),
        }
    }
}
