//! Exit codes, the same for every command.

use std::process::ExitCode;

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Nothing found.
    Clean,
    /// There are findings.
    Findings,
    /// Bad usage or environment.
    Usage,
    /// Something we do not support, named in the message.
    Unsupported,
    /// Nothing was interleaved: the run proves nothing.
    Vacuous,
    /// Ended by Ctrl-C without findings; what was found before it is reported all the same.
    Interrupted,
    /// A status passed through from a program that raddle ran.
    Guest(u8),
}

impl Code {
    /// The status of the process.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Usage => 2,
            Self::Unsupported => 3,
            Self::Vacuous => 4,
            Self::Interrupted => crate::interrupt::STATUS,
            Self::Guest(status) => status,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.number())
    }
}

/// An error together with the exit code of its kind.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) error: anyhow::Error,
}

/// A plain error is the user's or the environment's.
impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            code: Code::Usage,
            error: error.into(),
        }
    }
}
