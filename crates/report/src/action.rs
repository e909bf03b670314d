//! What a step does, as data; and as words, which need the finding around it.

use serde::{Deserialize, Serialize};

use crate::evidence::Step;
use crate::finding::Finding;
use crate::words::{counted, without_generics};

/// What a context does in a step. The step's object, address and values say to what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "snake_case"
)]
pub enum Action {
    /// Reads memory.
    Read {
        /// A function of a library does so on its behalf, for more bytes than the first access.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_call: bool,
    },
    /// Writes memory.
    Write {
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_call: bool,
    },
    /// Reads and writes memory in several steps as seen by others.
    Update,
    /// Reads and writes memory so that nobody can come between.
    AtomicUpdate,
    /// Obtains a lock.
    Lock,
    /// Gives up a lock.
    Unlock,
    /// Begins to wait for a condition, semaphore or event.
    WaitBegin,
    /// Goes on after waiting.
    WaitEnd,
    /// Signals a condition, semaphore or event.
    Notify {
        /// Everybody who waits is woken, not only one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        everyone: bool,
    },
    /// Arrives at a barrier.
    Barrier,
    /// Hands bytes to somebody else through a pipe or socket.
    Send {
        /// The system call.
        call: String,
        /// Bytes, or the error as a negative number.
        result: i64,
    },
    /// Takes bytes from a pipe or socket.
    Receive { call: String, result: i64 },
    /// The system does something to it that it may do and seldom does.
    Fault { what: String },
    /// Is interrupted by a signal and enters the program's handler of it.
    Handle { signal: String },
    /// Frees a heap block.
    Free,
    /// Dies of its own instruction.
    Crash,
    /// Says that something is wrong: a failed assertion, a panic, an abort.
    GiveUp,
    /// Ends the program.
    EndProgram,
    /// Uses heap memory after it was freed.
    UseAfterFree {
        writes: bool,
        /// Bytes from the start of the block.
        offset: u64,
    },
    /// Uses memory behind the end of a heap block.
    Overflow {
        writes: bool,
        /// Bytes from the start of the block.
        offset: u64,
    },
    /// Frees a heap block again.
    FreeAgain,
    /// Frees what is no heap block.
    FreeOther,
    /// Cannot go on.
    Blocked { on: Want },
    /// Runs and does not come to an end.
    RunOn,
    /// A processor takes an interrupt.
    Interrupt {
        vector: u8,
        /// The system call of the test that it is in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// A processor is stopped by the scheduler.
    Stop {
        /// The system call of the test that it is in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// It is in user space, between two calls.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_user: bool,
    },
    /// A processor has nothing to do.
    Sleep {
        /// The system call of the test that its thread waits in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// Source: tests a condition.
    Test,
    /// Source: loops, on the object if there is one.
    Loop,
    /// Source: calls the object.
    Call,
    /// Source: returns, with the object if there is one.
    Return,
    /// Source: leaves a loop.
    Break,
    /// Source: jumps.
    Jump,
    /// Source: evaluates the object.
    Evaluate,
}

/// What somebody who cannot go on waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Want {
    /// A lock.
    Lock,
    /// To be signalled or woken.
    Signal,
    /// The end of a thread.
    End,
    /// Input or output.
    Io,
    /// A child process.
    Child,
    /// A signal of the system.
    SystemSignal,
    /// The passing of time.
    Time,
    /// Something else.
    Other,
}

impl Action {
    /// Whether it can be left out where there are too many steps to show: how a run ends never can.
    pub fn is_passing(&self) -> bool {
        !matches!(
            self,
            Self::Crash
                | Self::GiveUp
                | Self::EndProgram
                | Self::UseAfterFree { .. }
                | Self::Overflow { .. }
                | Self::FreeAgain
                | Self::FreeOther
                | Self::Blocked { .. }
                | Self::RunOn
        )
    }
}

/// What a step does, as a sentence without subject: `reads balance = 100`.
pub fn sentence(finding: &Finding, step: &Step) -> String {
    if let Action::Blocked { on: Want::End } = step.action {
        let mut waits = finding.waits.iter();
        let wait = waits.find(|wait| wait.context == step.context);
        if let Some(of) = wait.and_then(|wait| wait.holder) {
            return format!("waits for the end of {}", finding.label(of));
        }
    }
    phrase(step)
}

/// The same for a step that belongs to no finding yet.
pub fn phrase(step: &Step) -> String {
    let object = thing(step);
    match &step.action {
        Action::Read { in_call: true } => format!("reads {object}..{}", by_library(step)),
        Action::Write { in_call: true } => format!("writes {object}..{}", by_library(step)),
        Action::Read { .. } => {
            let value = valued(step.before.or(step.after));
            format!("reads {object}{value}{}", via(step))
        }
        Action::Write { .. } => format!("writes {object}{}{}", valued(step.after), via(step)),
        Action::Update => format!("updates {object}{}{}", changed(step), via(step)),
        Action::AtomicUpdate => {
            format!("atomically updates {object}{}{}", changed(step), via(step))
        }
        Action::Lock => format!("locks {object}"),
        Action::Unlock => format!("unlocks {object}"),
        Action::WaitBegin => format!("begins to wait for {object}"),
        Action::WaitEnd => format!("has waited for {object}"),
        Action::Notify { everyone: true } => format!("wakes all who wait for {object}"),
        Action::Notify { .. } => format!("signals {object}"),
        Action::Barrier => format!("arrives at barrier {object}"),
        Action::Send { call, result } => {
            format!("{} {object} (`{call}`)", moved("sends", "to", *result))
        }
        Action::Receive { call, result: 0 } => format!("finds the end of {object} (`{call}`)"),
        Action::Receive { call, result } => {
            format!("{} {object} (`{call}`)", moved("receives", "from", *result))
        }
        Action::Fault { what } => what.clone(),
        Action::Handle { signal } => format!("is interrupted by {signal}"),
        Action::Free => format!("frees {object}"),
        Action::Crash => "crashes".into(),
        Action::GiveUp => "gives up".into(),
        Action::EndProgram => "ends the program".into(),
        Action::UseAfterFree { writes, offset } => {
            format!("{} freed memory{}", verb(*writes), inside(*offset))
        }
        Action::Overflow { writes, offset } => {
            let verb = verb(*writes);
            format!("{verb} behind the end of a block{}", inside(*offset))
        }
        Action::FreeAgain => "frees the block again".into(),
        Action::FreeOther => "frees what is no block".into(),
        Action::Blocked { on } => blocked(step, *on),
        Action::RunOn => "runs on and on".into(),
        Action::Interrupt { vector, call } => {
            format!("takes interrupt {vector:#x}{}", in_call(call.as_ref()))
        }
        Action::Stop { in_user: true, .. } => "stops between two calls".into(),
        Action::Stop { call, .. } => format!("stops{}", in_call(call.as_ref())),
        Action::Sleep { call } => format!("sleeps{}", in_call(call.as_ref())),
        Action::Test => format!("tests {object}"),
        Action::Loop if step.object.is_none() => "loops".into(),
        Action::Loop => format!("loops on {object}"),
        Action::Call => format!("calls {object}"),
        Action::Return if step.object.is_none() => "returns".into(),
        Action::Return => format!("returns {object}"),
        Action::Break => "breaks out of the loop".into(),
        Action::Jump => "jumps out".into(),
        Action::Evaluate => object,
    }
}

/// The name of a step's object, and where it is if no value says more.
fn thing(step: &Step) -> String {
    let bytes = step.size.map(|size| counted(size.into(), "byte"));
    let has_value = step.before.is_some() || step.after.is_some();
    match (&step.object, bytes, step.address) {
        (Some(name), Some(bytes), Some(address)) if !has_value => {
            format!("{bytes} of {name} at {:#x}", address.0)
        }
        (Some(name), ..) => name.clone(),
        (None, bytes, address) => {
            let bytes = bytes.unwrap_or_else(|| "memory".into());
            address.map_or_else(
                || bytes.clone(),
                |address| format!("{bytes} at {:#x}", address.0),
            )
        }
    }
}

/// The library function that does it, where it is more than the name of what the line itself does.
fn via(step: &Step) -> String {
    let function = step.via.as_deref().map(last_parts);
    function.map_or_else(String::new, |function| format!(" in `{function}`"))
}

/// `sends 3 bytes to`, `sends nothing (error 11) to`.
fn moved(verb: &str, direction: &str, result: i64) -> String {
    match u64::try_from(result) {
        Ok(bytes) => format!("{verb} {} {direction}", counted(bytes, "byte")),
        Err(_) => format!(
            "{verb} nothing (error {}) {direction}",
            result.unsigned_abs()
        ),
    }
}

fn by_library(step: &Step) -> String {
    match via(step) {
        unknown if unknown.is_empty() => " (library call)".into(),
        known => known,
    }
}

/// `Sender::send` of `std::sync::mpsc::Sender<i32>::send`: type and function, as a caller writes them.
fn last_parts(function: &str) -> String {
    let short = without_generics(function);
    let parts: Vec<&str> = short.split("::").filter(|part| !part.is_empty()).collect();
    parts[parts.len().saturating_sub(2)..].join("::")
}

fn verb(writes: bool) -> &'static str {
    if writes { "writes" } else { "reads" }
}

fn valued(value: Option<crate::evidence::Value>) -> String {
    value.map_or_else(String::new, |value| format!(" = {}", value.shown()))
}

fn changed(step: &Step) -> String {
    step.before.map_or_else(String::new, |value| {
        format!(", which was {}", value.shown())
    })
}

fn inside(offset: u64) -> String {
    match offset {
        0 => String::new(),
        _ => format!(", {} from the start of the block", counted(offset, "byte")),
    }
}

fn in_call(call: Option<&String>) -> String {
    call.map_or_else(String::new, |call| format!(" in `{call}`"))
}

fn blocked(step: &Step, on: Want) -> String {
    let object = || thing(step);
    match on {
        Want::Lock => format!("waits for {}", object()),
        Want::Signal => format!("waits to be woken on {}", object()),
        Want::End => "waits for a thread to end".into(),
        Want::Io => "waits for input or output".into(),
        Want::Child => "waits for a child process".into(),
        Want::SystemSignal => "waits for a signal of the system".into(),
        Want::Time => "sleeps".into(),
        Want::Other => "waits".into(),
    }
}
