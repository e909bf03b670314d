//! Runs that end: crashes, assertions, wrong results.

use raddle_campaign::follow;
use raddle_detect::{Failure, assertion_message};
use raddle_linux::Act;
use raddle_report::serial::Effect;
use raddle_report::{Action, Finding, SerialOrders, Step};
use raddle_trace::Limits;
use raddle_world::ContextId;

use super::{held, quote};
use crate::judge::Rules;
use crate::names::label;
use crate::schedule_run::Run;
use crate::session::Session;
use crate::stack::{self, Line, frames, own};
use crate::steps::number;

/// What can be said of a failure without running it again.
pub(super) fn title(failure: &Failure) -> String {
    match failure {
        Failure::Assertion { message } if assertion_message(message).is_none() => {
            format!("the program gives up: {message}")
        }
        Failure::Assertion { message } => format!("assertion failed: {message}"),
        Failure::WrongExit { status, expected } => {
            format!("exit status {status} instead of {expected}")
        }
        Failure::WrongOutput { reason } => format!("wrong output: {reason}"),
        Failure::NotSerial(how) => how.title.clone(),
        other => other.kind().replace('-', " "),
    }
}

/// What a program printed last, which may say why it ends as it does.
fn last_words(console: &str) -> Option<String> {
    let mut lines = console.lines().rev().map(str::trim);
    let last = lines.find(|line| !line.is_empty())?;
    Some(format!("the last thing it printed: {last}"))
}

/// What is known of a run whose results were to be compared, but which did not come so far.
pub(super) fn broken_off(session: &Session, failure: &Failure) -> SerialOrders {
    let effect = match failure {
        Failure::Deadlock { .. } => Effect::Deadlock,
        Failure::Hang { .. } => Effect::Hang,
        Failure::Crash { .. }
        | Failure::Assertion { .. }
        | Failure::WrongExit { .. }
        | Failure::WrongOutput { .. }
        | Failure::NotSerial(_)
        | Failure::Heap { .. } => Effect::Crash,
    };
    // The clients of a server are through when its state is asked for; where a harness stands only its author knows.
    let is_latent = session.world.act().map(|act| act == Act::Probes);
    SerialOrders::broken_off(effect, is_latent)
}

/// A run that ended: the stack at its last instruction, or of the context that complained first.
pub(super) fn describe_end(
    session: &mut Session,
    failure: &Failure,
    complaint: Option<(ContextId, Vec<Line>)>,
    (outcome, rules): (&Run, &Rules),
    finding: &mut Finding,
) {
    let limits = Limits {
        steps: outcome.drive.steps,
        ..rules.limits
    };
    let last_moment = Rules { limits, ..*rules };
    let stopped = follow(session, &outcome.drive.schedule, &last_moment);
    let last = stopped.drive.last.0;
    // A panic in one thread often ends the program in another, much later.
    let (who, lines) = match complaint {
        Some(complaint) if matches!(failure, Failure::Assertion { .. }) => complaint,
        _ => (last, stack::stack(&mut session.world, last)),
    };
    let own = own(&lines);
    let place = own.map_or_else(String::new, |line| format!(" at {}", line.place.describe()));
    let thread = label(&session.world, who);
    let action = match failure {
        Failure::Crash { signal, crash } => {
            let fault = crash.as_ref().and_then(|crash| crash.fault);
            let signal = raddle_linux::describe_status(*signal);
            let signal = signal.trim_start_matches("killed by ");
            finding.title = format!("crash: {signal}{place}");
            finding.why = match fault {
                None => format!("{thread} was killed by {signal} in this order"),
                Some(fault) => {
                    format!("{thread} was killed by {signal} while {fault}, in this order")
                }
            };
            Action::Crash
        }
        Failure::Assertion { .. } => {
            finding.title = title(failure);
            finding.why = match own {
                Some(_) => format!("in this order {thread} gives up{place}"),
                None => "in this order the program gives up".into(),
            };
            Action::GiveUp
        }
        Failure::WrongExit { status, expected } => {
            finding.title = title(failure);
            finding.why = format!(
                "in this order the program ends with status {status}; without interruptions it ends with {expected}"
            );
            finding.notes.extend(last_words(&finding.console));
            Action::EndProgram
        }
        Failure::WrongOutput { .. } => {
            finding.title = title(failure);
            finding.why = "in this order the program writes something else than it should".into();
            Action::EndProgram
        }
        Failure::NotSerial(how) => {
            finding.title = title(failure);
            finding.why.clone_from(&how.why);
            finding.serial = Some(how.serial.clone());
            return;
        }
        Failure::Heap { .. } | Failure::Deadlock { .. } | Failure::Hang { .. } => return,
    };
    if let Some(line) = own {
        let place = line.place.clone();
        quote(finding, &place);
        let step = Step {
            stack: finding.stack(frames(&lines)),
            locks: held(&mut session.world, who),
            ..Step::new(number(who), action, place)
        };
        finding.steps.push(step);
    }
}
