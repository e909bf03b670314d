//! Events in a compact binary form.
//!
//! ```text
//!   file    = "RDLTRACE" version:u8 record* end
//!   record  = tag:u8 context:varint step_delta:varint pc_delta:zigzag fields
//!   end     = 0xFF digest:u64
//! ```
//! Step and program counter are differences to the last record of the same context. Integers are LEB128.

use std::collections::BTreeMap;

use raddle_world::{AccessKind, Event, EventKind, LockMode};

/// Encodes one stream of events.
#[derive(Debug, Default)]
pub(crate) struct EventWire {
    /// Step and program counter of each context's last record.
    last: BTreeMap<u32, (u64, u64)>,
}

/// Tag of the record that ends a file.
const END: u8 = 0xFF;

impl EventWire {
    /// Magic and version.
    pub(crate) const HEADER: [u8; 9] = *b"RDLTRACE\x01";

    /// The bytes of one record.
    pub(crate) fn encode(&mut self, event: &Event) -> Vec<u8> {
        let (step, pc) = self
            .last
            .insert(event.context.0, (event.step, event.pc()))
            .unwrap_or_default();
        let mut out = vec![tag(&event.kind)];
        put(&mut out, u64::from(event.context.0));
        put(&mut out, event.step.wrapping_sub(step));
        let delta = event.pc().wrapping_sub(pc).cast_signed();
        put(&mut out, ((delta << 1) ^ (delta >> 63)).cast_unsigned());
        put_fields(&mut out, &event.kind);
        out
    }

    /// The bytes of the end record.
    pub(crate) fn encode_end(&self, digest: u64) -> Vec<u8> {
        let mut out = vec![END];
        out.extend_from_slice(&digest.to_le_bytes());
        out
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = raddle_stdx::width::low_u8(value & 0x7F);
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

fn tag(kind: &EventKind) -> u8 {
    match kind {
        EventKind::Access(access) | EventKind::Aside(access) => match access.how {
            AccessKind::Read => 1,
            AccessKind::Write => 2,
            AccessKind::Update | AccessKind::AtomicUpdate => 3,
        },
        EventKind::Acquire { .. } => 4,
        EventKind::Release { .. } => 5,
        EventKind::WaitBegin { .. } => 6,
        EventKind::WaitEnd { .. } => 7,
        EventKind::Notify { .. } => 8,
        EventKind::BarrierEnter { .. } => 9,
        EventKind::BarrierLeave { .. } => 10,
        EventKind::Create { .. } => 11,
        EventKind::Join { .. } => 12,
        EventKind::Exit => 13,
        EventKind::Alloc { .. } => 14,
        EventKind::Free { .. } => 15,
        EventKind::Map { .. } => 16,
        EventKind::Unmap { .. } => 17,
        EventKind::SyscallEnter { .. } => 18,
        EventKind::SyscallLeave { .. } => 19,
        EventKind::SignalEnter { .. } => 20,
        EventKind::SignalLeave => 21,
        EventKind::Output { .. } => 22,
        EventKind::KnownCall => 23,
        EventKind::Publish { .. } => 24,
        EventKind::Obtain { .. } => 25,
    }
}

fn put_fields(out: &mut Vec<u8>, kind: &EventKind) {
    let mut all = |words: &[u64]| words.iter().for_each(|word| put(out, *word));
    match kind {
        EventKind::Access(access) | EventKind::Aside(access) => {
            all(&[
                access.addr,
                u64::from(access.size),
                u64::from(access.value.is_some()),
                access.value.unwrap_or(0),
            ]);
            if matches!(access.how, AccessKind::Update | AccessKind::AtomicUpdate) {
                all(&[u64::from(access.how.is_atomic())]);
            }
        }
        EventKind::Acquire { object, mode } | EventKind::Release { object, mode } => {
            all(&[*object, u64::from(*mode == LockMode::Shared)]);
        }
        EventKind::WaitBegin { object }
        | EventKind::WaitEnd { object }
        | EventKind::Publish { object }
        | EventKind::Obtain { object }
        | EventKind::BarrierEnter { object }
        | EventKind::BarrierLeave { object } => all(&[*object]),
        EventKind::Notify { object, everyone } => all(&[*object, u64::from(*everyone)]),
        EventKind::Create { child } | EventKind::Join { child } => all(&[u64::from(child.0)]),
        EventKind::KnownCall | EventKind::Exit | EventKind::SignalLeave => {}
        EventKind::Alloc { addr, size }
        | EventKind::Map { addr, size }
        | EventKind::Unmap { addr, size } => all(&[*addr, *size]),
        EventKind::Free { addr } => all(&[*addr]),
        EventKind::SyscallEnter { number, arguments } => {
            all(&[u64::from(*number)]);
            all(arguments.as_slice());
        }
        EventKind::SyscallLeave { number, result } => {
            all(&[u64::from(*number), result.cast_unsigned()]);
        }
        EventKind::SignalEnter { number } => all(&[u64::from(*number)]),
        EventKind::Output { descriptor, bytes } => {
            all(&[
                u64::from(descriptor.cast_unsigned()),
                raddle_stdx::width::to_u64(bytes.len()),
            ]);
            out.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_world::{ContextId, Site};

    #[test]
    fn records_are_small_and_differences_are_per_context() {
        let mut wire = EventWire::default();
        let event = |context, step| Event {
            context: ContextId(context),
            step,
            site: Site::first(0x40_1000 + step),
            kind: EventKind::Exit,
        };
        assert_eq!(wire.encode(&event(0, 1000)).len(), 1 + 1 + 2 + 4);
        assert_eq!(wire.encode(&event(0, 1001)), [13, 0, 1, 2]);
        assert_eq!(wire.encode(&event(1, 5)).len(), 1 + 1 + 1 + 4);
        assert_eq!(wire.encode_end(1), [255, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
