//! Events as JSON, one object a line. Addresses are hexadecimal text, since JSON's numbers do not hold all of them.

use raddle_trace::facts::LockChange;
use raddle_trace::log::{Ending, Fact, Head, Item};
use raddle_world::{
    Access, AccessKind, ContextId, Event, EventKind, LockMode, LockSource, Mark, Section, Site,
};
use serde_json::{Map, Value, json};

use crate::event_text::{locked_kind, wait_kind};

pub(crate) fn head(head: &Head) -> String {
    line(&json!({ "head": head }))
}

pub(crate) fn ending(ending: Ending, events: u64) -> String {
    let (how, digest) = match ending {
        Ending::Whole { digest } => ("whole", Some(format!("{digest:016x}"))),
        Ending::Truncated => ("truncated", None),
        Ending::Damaged => ("damaged", None),
    };
    line(&json!({ "end": how, "events": events, "digest": digest }))
}

pub(crate) fn item(item: &Item) -> String {
    line(&match item {
        Item::Event(event) => of_event(event),
        Item::Fact { context, fact } => of_fact(*context, fact),
    })
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn of_event(event: &Event) -> Value {
    let (name, fields) = fields(&event.kind);
    let mut all = Map::new();
    all.insert("context".to_owned(), event.context.0.into());
    all.insert("step".to_owned(), event.step.into());
    put_site(&mut all, event.site);
    all.insert("event".to_owned(), name.into());
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    all.into()
}

fn put_site(all: &mut Map<String, Value>, site: Site) {
    all.insert("pc".to_owned(), hex(site.pc()));
    if site.image().number() != 0 {
        all.insert("image".to_owned(), site.image().number().into());
    }
}

fn fields(kind: &EventKind) -> (&'static str, Value) {
    match kind {
        EventKind::Access(used) => (access_name(used.how), access(used, false)),
        EventKind::Aside(used) => (access_name(used.how), access(used, true)),
        EventKind::Acquire { object, mode } => ("acquire", lock(*object, *mode)),
        EventKind::Release { object, mode } => ("release", lock(*object, *mode)),
        EventKind::WaitBegin { object, on } => (
            "wait",
            json!({ "object": hex(*object), "on": wait_kind(*on) }),
        ),
        EventKind::WaitEnd { object, on } => (
            "waited",
            json!({ "object": hex(*object), "on": wait_kind(*on) }),
        ),
        EventKind::Notify {
            object,
            on,
            everyone,
        } => (
            "notify",
            json!({ "object": hex(*object), "on": wait_kind(*on), "everyone": everyone }),
        ),
        EventKind::BarrierEnter { object } => ("barrier", json!({ "object": hex(*object) })),
        EventKind::BarrierLeave { object } => ("barrier-left", json!({ "object": hex(*object) })),
        EventKind::KnownCall => ("known-call", Value::Null),
        EventKind::Publish { object } => ("publish", json!({ "object": hex(*object) })),
        EventKind::Obtain { object } => ("obtain", json!({ "object": hex(*object) })),
        EventKind::Create { child } => ("create", json!({ "child": child.0 })),
        EventKind::Join { child } => ("join", json!({ "child": child.0 })),
        EventKind::Exit => ("exit", Value::Null),
        EventKind::Alloc { addr, size } => ("alloc", json!({ "addr": hex(*addr), "size": size })),
        EventKind::Free { addr } => ("free", json!({ "addr": hex(*addr) })),
        EventKind::Map { addr, size } => ("map", json!({ "addr": hex(*addr), "size": size })),
        EventKind::Unmap { addr, size } => ("unmap", json!({ "addr": hex(*addr), "size": size })),
        EventKind::SyscallEnter { number, arguments } => {
            let words: Vec<Value> = arguments.iter().map(|word| hex(*word)).collect();
            let call = raddle_calls::name(*number);
            ("call", json!({ "call": call, "arguments": words }))
        }
        EventKind::SyscallLeave { number, result } => (
            "done",
            json!({ "call": raddle_calls::name(*number), "result": result }),
        ),
        EventKind::SignalEnter { number } => ("signal", json!({ "number": number })),
        EventKind::SignalLeave => ("signal-return", Value::Null),
        EventKind::Mark(mark) => marked(mark),
        EventKind::Fault(fault) => ("fault", json!({ "kind": fault.name() })),
        EventKind::Output { descriptor, bytes } => (
            "output",
            json!({ "descriptor": descriptor, "text": bytes.escape_ascii().to_string() }),
        ),
    }
}

fn marked(mark: &Mark) -> (&'static str, Value) {
    match mark {
        Mark::Begin { name, is_probe } => (
            "operation-begins",
            json!({ "name": name, "is_probe": is_probe }),
        ),
        Mark::Argument(value) => ("operation-argument", value.to_string().into()),
        Mark::Result(value) => ("operation-result", value.to_string().into()),
        Mark::End => ("operation-ends", Value::Null),
    }
}

fn access_name(how: AccessKind) -> &'static str {
    match how {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Update => "update",
        AccessKind::AtomicUpdate => "atomic-update",
    }
}

fn access(access: &Access, is_aside: bool) -> Value {
    let mut fields = json!({ "addr": hex(access.addr), "size": access.size });
    if let Some(value) = access.value {
        fields["value"] = hex(value);
    }
    if is_aside {
        fields["aside"] = true.into();
    }
    fields
}

fn lock(object: u64, mode: LockMode) -> Value {
    json!({ "object": hex(object), "mode": mode_name(mode) })
}

fn mode_name(mode: LockMode) -> &'static str {
    match mode {
        LockMode::Exclusive => "exclusive",
        LockMode::Shared => "shared",
    }
}

fn of_fact(context: ContextId, fact: &Fact) -> Value {
    let (name, of) = match fact {
        Fact::Lock(LockChange::Obtained(of)) => ("section-begins", section(of)),
        Fact::Lock(LockChange::GivenUp(of)) => ("section-ends", section(of)),
        Fact::Lock(LockChange::WasHeld(of)) => ("section-was", section(of)),
        Fact::Allocated {
            ordinal,
            generation,
        } => (
            "block",
            json!({ "ordinal": ordinal, "generation": generation }),
        ),
        Fact::Instruction { site, kind } => (
            "instruction",
            json!({ "pc": hex(site.pc()), "kind": locked_kind(*kind) }),
        ),
    };
    json!({ "context": context.0, "fact": name, "of": of })
}

fn section(section: &Section) -> Value {
    json!({
        "lock": hex(section.lock),
        "mode": mode_name(section.mode),
        "inferred": section.source == LockSource::Inferred,
        "context": section.context.0,
        "serial": section.serial,
        "step": section.step,
        "pc": hex(section.site.pc()),
    })
}

fn hex(value: u64) -> Value {
    format!("{value:#x}").into()
}
