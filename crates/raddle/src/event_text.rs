//! Events as one readable line each.

use raddle_explore::TraceLine;
use raddle_trace::facts::LockChange;
use raddle_trace::log::Fact;
use raddle_world::{
    Access, AccessKind, Event, EventKind, LockMode, LockSource, LockedKind, Mark, Section, WaitKind,
};

/// One line without its end; the columns are context, its step, program counter, what happened.
pub(crate) fn line(event: &Event) -> String {
    format!(
        "{:>4} {:>12} {:#014x} {}",
        event.context.0,
        event.step,
        event.pc(),
        describe(&event.kind)
    )
}

/// A line of a traced replay: who, where, what.
pub(crate) fn traced(line: &TraceLine<'_>) -> String {
    format!(
        "{:<18} {:>9}  {:<34} {}",
        line.context,
        line.event.step,
        line.place,
        describe(&line.event.kind)
    )
}

fn describe(kind: &EventKind) -> String {
    match kind {
        EventKind::SyscallEnter { number, arguments } => {
            let arguments: Vec<String> =
                arguments.iter().map(|word| format!("{word:#x}")).collect();
            format!(
                "call {}({})",
                raddle_calls::name(*number),
                arguments.join(", ")
            )
        }
        EventKind::SyscallLeave { number, result } => {
            if (-4095..0).contains(result) {
                format!("done {} = {result}", raddle_calls::name(*number))
            } else {
                format!("done {} = {result:#x}", raddle_calls::name(*number))
            }
        }
        EventKind::Output { descriptor, bytes } => {
            format!("output {descriptor} \"{}\"", bytes.escape_ascii())
        }
        EventKind::Create { child } => format!("create {}", child.0),
        EventKind::Join { child } => format!("join {}", child.0),
        EventKind::Publish { object } => format!("publish {object:#x}"),
        EventKind::Obtain { object } => format!("obtain {object:#x}"),
        EventKind::KnownCall => "known function".into(),
        EventKind::Exit => "exit".into(),
        EventKind::Map { addr, size } => format!("map {addr:#x} {size:#x}"),
        EventKind::Unmap { addr, size } => format!("unmap {addr:#x} {size:#x}"),
        EventKind::SignalEnter { number } => format!("signal {number}"),
        EventKind::SignalLeave => "signal return".into(),
        EventKind::Mark(mark) => describe_mark(mark),
        EventKind::Fault(fault) => format!("fault {}", fault.name()),
        EventKind::Access(access) | EventKind::Aside(access) => describe_access(access),
        EventKind::Acquire { object, mode } => {
            format!("acquire {object:#x}{}", describe_mode(*mode))
        }
        EventKind::Release { object, mode } => {
            format!("release {object:#x}{}", describe_mode(*mode))
        }
        EventKind::WaitBegin { object, on } => format!("wait {object:#x} {}", wait_kind(*on)),
        EventKind::WaitEnd { object, on } => format!("waited {object:#x} {}", wait_kind(*on)),
        EventKind::Notify {
            object,
            on,
            everyone,
        } => {
            let whom = if *everyone { " all" } else { "" };
            format!("notify {object:#x} {}{whom}", wait_kind(*on))
        }
        EventKind::BarrierEnter { object } => format!("barrier {object:#x}"),
        EventKind::BarrierLeave { object } => format!("barrier left {object:#x}"),
        EventKind::Alloc { addr, size } => format!("alloc {addr:#x} {size}"),
        EventKind::Free { addr } => format!("free {addr:#x}"),
    }
}

fn describe_mark(mark: &Mark) -> String {
    match mark {
        Mark::Begin { name, is_probe } => {
            let what = if *is_probe { "probe" } else { "operation" };
            format!("{what} {} begins", name.escape_debug())
        }
        Mark::Argument(value) => format!("argument {value}"),
        Mark::Result(value) => format!("result {value}"),
        Mark::End => "operation ends".into(),
    }
}

fn describe_access(access: &Access) -> String {
    let verb = match access.how {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Update => "update",
        AccessKind::AtomicUpdate => "atomic update",
    };
    let value = access
        .value
        .map_or_else(String::new, |value| format!(" = {value:#x}"));
    format!("{verb} {:#x} {}{value}", access.addr, access.size)
}

/// What a fact says, for a line below that of its event.
pub(crate) fn fact(fact: &Fact) -> String {
    match fact {
        Fact::Lock(LockChange::Obtained(section)) => format!("section begins: {}", of(section)),
        Fact::Lock(LockChange::GivenUp(section)) => format!("section ends: {}", of(section)),
        Fact::Lock(LockChange::WasHeld(section)) => format!("section was: {}", of(section)),
        Fact::Allocated {
            ordinal,
            generation,
        } => format!("block: number {ordinal} of its site, {generation} of the run"),
        Fact::Instruction { site, kind } => {
            format!("instruction {:#x}: {}", site.pc(), locked_kind(*kind))
        }
    }
}

/// `lock 0x4040, number 3 of context 1, inferred, since step 17 at 0x401136`.
fn of(section: &Section) -> String {
    let source = match section.source {
        LockSource::Function => "",
        LockSource::Inferred => ", inferred",
    };
    format!(
        "lock {:#x}{}, number {} of context {}{source}, since step {} at {:#x}",
        section.lock,
        describe_mode(section.mode),
        section.serial,
        section.context.0,
        section.step,
        section.site.pc()
    )
}

pub(crate) fn wait_kind(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Condition => "condition",
        WaitKind::Semaphore => "semaphore",
        WaitKind::Once => "once",
        WaitKind::Event => "event",
    }
}

pub(crate) fn locked_kind(kind: LockedKind) -> &'static str {
    match kind {
        LockedKind::CompareExchange => "compare-exchange",
        LockedKind::Exchange => "exchange",
        LockedKind::SetBit => "set-bit",
        LockedKind::ClearBits => "clear-bits",
        LockedKind::Arithmetic => "arithmetic",
        LockedKind::Unknown => "unknown",
    }
}

fn describe_mode(mode: LockMode) -> &'static str {
    match mode {
        LockMode::Exclusive => "",
        LockMode::Shared => " shared",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_world::{ContextId, Site};

    #[test]
    fn results_are_errors_or_values() {
        let line = |result| {
            super::line(&Event {
                context: ContextId(2),
                step: 77,
                site: Site::first(0x40_1000),
                kind: EventKind::SyscallLeave { number: 0, result },
            })
        };
        assert_eq!(line(-9), "   2           77 0x000000401000 done read = -9");
        assert_eq!(
            line(16),
            "   2           77 0x000000401000 done read = 0x10"
        );
    }
}
