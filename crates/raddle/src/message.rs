//! Messages to the user: always on stderr, always with our name in front; results go to stdout.

use std::io::Write;

use raddle_report::words::printable;

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
pub(crate) fn error(error: &anyhow::Error) {
    line(&format!("raddle: {error:#}"));
}

/// Prints something worth knowing that is not an error.
pub(crate) fn note(text: &str) {
    line(&format!("raddle: {text}"));
}

/// Prints a line of a trace, without our name: it is data.
pub(crate) fn trace(text: &str) {
    line(text);
}

/// Tells of a failure when it is first seen, and with which command it can be had again: whatever comes later, it is
/// not lost.
pub(crate) fn found(title: &str, replay: Result<&String, &anyhow::Error>) {
    note(&match replay {
        Ok(command) => format!("{title}; kept as it was found: {command}"),
        Err(error) => format!("{title}; its recording cannot be written: {error:#}"),
    });
}

/// Prints a warning.
pub(crate) fn warning(text: &str) {
    line(&format!("raddle: warning: {text}"));
}

/// What is said may quote a guest or a file of another user: nothing in it reaches the terminal as a command. If the
/// reader of stderr is gone, the work goes on.
fn line(text: &str) {
    drop(writeln!(std::io::stderr(), "{}", printable(text)));
}
