//! Messages to the user: always on stderr, always with our name in front; results go to stdout.

use std::io::Write;

/// Prints a result on stdout. A reader that has seen enough (`| head`) is no error.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("cannot write the result"))
        }
        _ => Ok(()),
    }
}

/// Prints an error and its causes as one paragraph.
#[expect(
    clippy::print_stderr,
    reason = "this module is where messages are printed"
)]
pub(crate) fn error(error: &anyhow::Error) {
    eprintln!("raddle: {error:#}");
}

/// Prints something worth knowing that is not an error.
#[expect(
    clippy::print_stderr,
    reason = "this module is where messages are printed"
)]
pub(crate) fn note(text: &str) {
    eprintln!("raddle: {text}");
}

/// Prints a line of a trace, without our name: it is data.
#[expect(
    clippy::print_stderr,
    reason = "this module is where messages are printed"
)]
pub(crate) fn trace(line: &str) {
    eprintln!("{line}");
}

/// Prints a warning.
#[expect(
    clippy::print_stderr,
    reason = "this module is where messages are printed"
)]
pub(crate) fn warning(text: &str) {
    eprintln!("raddle: warning: {text}");
}
