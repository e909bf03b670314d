//! The Debug Adapter Protocol, which VS Code, Neovim, Zed and others speak: a recorded run in an editor, forwards and
//! backwards.
//!
//! ```text
//!   editor: initialize ─▶ launch {recording} ─▶ setBreakpoints.. ─▶ configurationDone ─▶ continue, stepBack, ..
//! ```
//!
//! The conversation has two parts: [`greet`] answers until the editor says what to debug; the caller opens it, and
//! [`serve`] does the rest, or [`refuse`] says why not. A recording cannot be changed: what would change it is refused.
//!
//! Reading order: `wire` (messages), [`greet`], `session` (requests), `variables` (what references stand for).

mod breakpoints;
mod session;
mod variables;
mod wire;

use std::io::{self, BufRead, Write};

use raddle_sched::travel::Rerun;
use serde_json::{Value, json};

use crate::debugger::Debugger;
use session::Session;
use wire::Request;
pub use wire::Wire;

/// What the editor wants to debug.
#[derive(Debug)]
pub struct Launch {
    request: Request,
    /// The recording; none if the editor does not name one.
    pub recording: Option<String>,
    /// Whether to begin at the end of the run, where it fails, instead of at its beginning.
    pub at_end: bool,
}

/// What an editor may ask for.
fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsDataBreakpoints": true,
        "supportsEvaluateForHovers": true,
        "supportsStepBack": true,
        "supportsSteppingGranularity": true,
        "supportsDelayedStackTraceLoading": true,
    })
}

/// Answers until the editor says what to debug; none if it leaves before.
///
/// # Errors
/// If the connection breaks, or something else than the protocol is spoken.
pub fn greet<I: BufRead, O: Write>(wire: &mut Wire<I, O>) -> io::Result<Option<Launch>> {
    while let Some(request) = wire.receive()? {
        match request.command.as_str() {
            "initialize" => wire.answer(&request, capabilities())?,
            "launch" | "attach" => {
                let arguments = &request.arguments;
                let recording = arguments["recording"].as_str();
                let recording = recording.or(arguments["program"].as_str());
                return Ok(Some(Launch {
                    recording: recording.map(str::to_owned),
                    at_end: arguments["start"] == "end",
                    request,
                }));
            }
            "disconnect" | "terminate" => {
                wire.answer(&request, Value::Null)?;
                return Ok(None);
            }
            _ => wire.refuse(&request, "nothing is being debugged yet")?,
        }
    }
    Ok(None)
}

/// Tells the editor that it cannot be debugged.
///
/// # Errors
/// If the connection breaks.
pub fn refuse<I: BufRead, O: Write>(
    wire: &mut Wire<I, O>,
    launch: &Launch,
    why: &str,
) -> io::Result<()> {
    wire.refuse(&launch.request, why)?;
    wire.event("terminated", json!({}))
}

/// Serves a run until the editor leaves.
///
/// # Errors
/// If the connection breaks, or something else than the protocol is spoken.
pub fn serve<R: Rerun, I: BufRead, O: Write>(
    wire: &mut Wire<I, O>,
    launch: &Launch,
    debugger: Debugger<R>,
) -> io::Result<()> {
    let mut session = Session::new(debugger, launch.at_end);
    wire.answer(&launch.request, Value::Null)?;
    wire.event("initialized", json!({}))?;
    while let Some(request) = wire.receive()? {
        let is_last = matches!(request.command.as_str(), "disconnect" | "terminate");
        session.serve(wire, &request)?;
        if is_last {
            break;
        }
    }
    Ok(())
}
