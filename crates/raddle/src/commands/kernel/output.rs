//! Where a trace goes: a file, or standard output.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::message;

/// Somewhere to write to, bit by bit. A reader that has seen enough (`| head`) is no error.
pub(super) struct Output {
    to: BufWriter<Box<dyn Write>>,
    /// None for standard output.
    path: Option<PathBuf>,
    is_closed: bool,
}

impl Output {
    /// `-` is standard output.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let (to, path): (Box<dyn Write>, _) = if path == Path::new("-") {
            (Box::new(std::io::stdout()), None)
        } else {
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            (Box::new(file), Some(path.to_path_buf()))
        };
        Ok(Self {
            to: BufWriter::new(to),
            path,
            is_closed: false,
        })
    }

    pub(super) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let written = self.to.write_all(text.as_bytes());
        self.check(written)
    }

    /// Writes what is left and says where it is.
    pub(super) fn close(mut self) -> anyhow::Result<()> {
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
