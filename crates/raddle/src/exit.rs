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

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(match code {
            Code::Clean => 0,
            Code::Findings => 1,
            Code::Usage => 2,
            Code::Unsupported => 3,
            Code::Vacuous => 4,
            Code::Interrupted => crate::interrupt::STATUS,
            Code::Guest(status) => status,
        })
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
