//! Programs that cannot be explored at all, and why.

use std::io::Read;
use std::path::Path;

use anyhow::anyhow;
use raddle_explore::StartFailure;
use raddle_linux::StartError;
use raddle_stdx::regular_file;

use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;

/// A program that cannot be explored, with the exit code of its kind.
pub(in crate::commands) fn start_failure(failure: StartFailure) -> Failure {
    let code = match failure {
        StartFailure::Unsupported(_) => Code::Unsupported,
        StartFailure::EndedAlone { .. }
        | StartFailure::NotReached { .. }
        | StartFailure::NotReady { .. }
        | StartFailure::Cancelled => Code::Vacuous,
        _ => Code::Usage,
    };
    let hint = missing_interpreter(&failure);
    Failure {
        code,
        error: anyhow!("{failure}{hint}"),
    }
}

/// The same, where Ctrl-C may have been the reason.
pub(super) fn failed(failure: StartFailure, interrupt: &Interrupt) -> Failure {
    let is_interrupted = matches!(failure, StartFailure::Cancelled) && interrupt.is_requested();
    let mut failed = start_failure(failure);
    if is_interrupted {
        failed.code = Code::Interrupted;
    }
    failed
}

/// Bytes of the first line of a script at most, as Linux has it.
const SCRIPT_LINE_MAX: u64 = 256;

/// Scripts fail like missing programs when their interpreter is missing.
fn missing_interpreter(failure: &StartFailure) -> String {
    let StartFailure::Start(StartError::Program { program, .. }) = failure else {
        return String::new();
    };
    // A recording may have named it.
    let mut bytes = Vec::new();
    let first = regular_file::open(Path::new(program))
        .and_then(|file| file.take(SCRIPT_LINE_MAX).read_to_end(&mut bytes));
    if first.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let first = text.lines().next().unwrap_or_default();
    match first.strip_prefix("#!") {
        Some(rest) => {
            let interpreter = rest.split_whitespace().next().unwrap_or_default();
            format!("; it is a script, and its interpreter is `{interpreter}`")
        }
        None => String::new(),
    }
}
