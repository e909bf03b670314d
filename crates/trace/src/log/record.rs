//! The form of one record.
//!
//! An access begins with its tag (how memory is used) and its shape: the size and what follows. Its page is left out
//! if it is the one at which the block saw this virtual page last.

use std::collections::BTreeMap;

use raddle_stdx::width::{low_u8, low_u16, to_u64, to_usize};
use raddle_world::{
    Access, AccessKind, ContextId, Event, EventKind, Fault, Location, LockMode, LockSource,
    LockedKind, PageKey, Section, Site, WaitKind,
};
use rustc_hash::FxHashMap;

use super::varint::{Bytes, put, put_difference};
use super::{Fact, Item, mark};
use crate::facts::LockChange;

/// Bits of an access's shape below its size.
const HAS_VALUE: u64 = 1;
const HAS_PAGE: u64 = 2;
const SHAPE_BITS: u32 = 2;

const ACCESS: u8 = 1;
const ASIDE: u8 = 5;
const FACT: u8 = 64;

const ACCESS_KINDS: [AccessKind; 4] = [
    AccessKind::Read,
    AccessKind::Write,
    AccessKind::Update,
    AccessKind::AtomicUpdate,
];
const WAIT_KINDS: [WaitKind; 4] = [
    WaitKind::Condition,
    WaitKind::Semaphore,
    WaitKind::Once,
    WaitKind::Event,
];
const LOCKED_KINDS: [LockedKind; 6] = [
    LockedKind::CompareExchange,
    LockedKind::Exchange,
    LockedKind::SetBit,
    LockedKind::ClearBits,
    LockedKind::Arithmetic,
    LockedKind::Unknown,
];
const MODES: [LockMode; 2] = [LockMode::Exclusive, LockMode::Shared];
const FAULTS: [Fault; 5] = [
    Fault::SpuriousWakeUp,
    Fault::WakeOrder,
    Fault::ShortTransfer,
    Fault::Interrupted,
    Fault::NoMemory,
];
const SOURCES: [LockSource; 2] = [LockSource::Function, LockSource::Inferred];

/// The last record of a context.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    step: u64,
    site: u64,
    addr: u64,
}

/// What the records of a block so far say of the next one. Reading and writing keep the same.
#[derive(Debug, Default)]
pub(super) struct Coder {
    last: BTreeMap<u32, Last>,
    /// The page at each virtual page.
    pages: FxHashMap<u64, PageKey>,
}

impl Coder {
    pub(super) fn event(&mut self, out: &mut Vec<u8>, event: &Event) {
        out.push(tag(&event.kind));
        self.put_begin(out, event);
        match &event.kind {
            EventKind::Access(access) | EventKind::Aside(access) => {
                self.put_access(out, event.context, access);
            }
            kind => put_fields(out, kind),
        }
    }

    fn put_begin(&mut self, out: &mut Vec<u8>, event: &Event) {
        put(out, u64::from(event.context.0));
        let last = self.last.entry(event.context.0).or_default();
        put_difference(out, last.step, event.step);
        put_difference(out, last.site, event.site.number());
        last.step = event.step;
        last.site = event.site.number();
    }

    fn put_access(&mut self, out: &mut Vec<u8>, who: ContextId, access: &Access) {
        let page = access.location.page;
        let is_known = self.pages.insert(access.addr >> 12, page) == Some(page);
        let mut shape = u64::from(access.size) << SHAPE_BITS;
        if !is_known {
            shape |= HAS_PAGE;
        }
        if access.value.is_some() {
            shape |= HAS_VALUE;
        }
        put(out, shape);
        let last = self.last.entry(who.0).or_default();
        put_difference(out, last.addr, access.addr);
        last.addr = access.addr;
        if !is_known {
            page.numbers()
                .into_iter()
                .for_each(|number| put(out, u64::from(number)));
        }
        if let Some(value) = access.value {
            put(out, value);
        }
    }

    pub(super) fn fact(&mut self, out: &mut Vec<u8>, event: &Event, fact: &Fact) {
        let (tag, words) = match fact {
            Fact::Lock(LockChange::Obtained(section)) => (0, section_words(section).to_vec()),
            Fact::Lock(LockChange::GivenUp(section)) => (1, section_words(section).to_vec()),
            Fact::Lock(LockChange::WasHeld(section)) => (2, section_words(section).to_vec()),
            Fact::Allocated {
                ordinal,
                generation,
            } => (3, vec![*ordinal, *generation]),
            Fact::Instruction { site, kind } => {
                (4, vec![site.number(), index(&LOCKED_KINDS, *kind)])
            }
        };
        out.push(FACT + tag);
        put(out, u64::from(event.context.0));
        words.iter().for_each(|word| put(out, *word));
    }

    /// The next record; none if the bytes are none.
    pub(super) fn item(&mut self, bytes: &mut Bytes<'_>) -> Option<Item> {
        let tag = bytes.byte()?;
        let context = ContextId(bytes.small()?);
        if tag >= FACT {
            let fact = take_fact(bytes, tag - FACT)?;
            return Some(Item::Fact { context, fact });
        }
        let last = self.last.entry(context.0).or_default();
        last.step = bytes.difference(last.step)?;
        last.site = bytes.difference(last.site)?;
        let (step, site) = (last.step, Site::from_number(last.site));
        let kind = match tag {
            ACCESS..ASIDE => EventKind::Access(self.take_access(bytes, context, tag - ACCESS)?),
            ASIDE..9 => EventKind::Aside(self.take_access(bytes, context, tag - ASIDE)?),
            _ => take_fields(bytes, tag)?,
        };
        Some(Item::Event(Event {
            context,
            step,
            site,
            kind,
        }))
    }

    fn take_access(&mut self, bytes: &mut Bytes<'_>, who: ContextId, how: u8) -> Option<Access> {
        let how = *ACCESS_KINDS.get(usize::from(how))?;
        let shape = bytes.integer()?;
        let size = u8::try_from(shape >> SHAPE_BITS).ok()?;
        let last = self.last.entry(who.0).or_default();
        let addr = bytes.difference(last.addr)?;
        last.addr = addr;
        let page = if shape & HAS_PAGE != 0 {
            let page = PageKey::from_numbers([bytes.small()?, bytes.small()?])?;
            self.pages.insert(addr >> 12, page);
            page
        } else {
            *self.pages.get(&(addr >> 12))?
        };
        let value = match shape & HAS_VALUE {
            0 => None,
            _ => Some(bytes.integer()?),
        };
        let location = Location::new(page, low_u16(addr & 0xFFF));
        Some(Access {
            how,
            size,
            location,
            addr,
            value,
        })
    }
}

fn tag(kind: &EventKind) -> u8 {
    match kind {
        EventKind::Access(access) => ACCESS + low_u8(index(&ACCESS_KINDS, access.how)),
        EventKind::Aside(access) => ASIDE + low_u8(index(&ACCESS_KINDS, access.how)),
        EventKind::Acquire { .. } => 9,
        EventKind::Release { .. } => 10,
        EventKind::WaitBegin { .. } => 11,
        EventKind::WaitEnd { .. } => 12,
        EventKind::Notify { .. } => 13,
        EventKind::BarrierEnter { .. } => 14,
        EventKind::BarrierLeave { .. } => 15,
        EventKind::Create { .. } => 16,
        EventKind::Join { .. } => 17,
        EventKind::Exit => 18,
        EventKind::Alloc { .. } => 19,
        EventKind::Free { .. } => 20,
        EventKind::Map { .. } => 21,
        EventKind::Unmap { .. } => 22,
        EventKind::SyscallEnter { .. } => 23,
        EventKind::SyscallLeave { .. } => 24,
        EventKind::SignalEnter { .. } => 25,
        EventKind::SignalLeave => 26,
        EventKind::Output { .. } => 27,
        EventKind::KnownCall => 28,
        EventKind::Publish { .. } => 29,
        EventKind::Obtain { .. } => 30,
        EventKind::Mark(_) => 31,
        EventKind::Fault(_) => 32,
    }
}

fn put_fields(out: &mut Vec<u8>, kind: &EventKind) {
    let mut all = |words: &[u64]| words.iter().for_each(|word| put(out, *word));
    match kind {
        EventKind::Access(_) | EventKind::Aside(_) => {}
        EventKind::KnownCall | EventKind::Exit | EventKind::SignalLeave => {}
        EventKind::Acquire { object, mode } | EventKind::Release { object, mode } => {
            all(&[*object, index(&MODES, *mode)]);
        }
        EventKind::WaitBegin { object, on } | EventKind::WaitEnd { object, on } => {
            all(&[*object, index(&WAIT_KINDS, *on)]);
        }
        EventKind::Notify {
            object,
            on,
            everyone,
        } => all(&[*object, index(&WAIT_KINDS, *on), u64::from(*everyone)]),
        EventKind::Publish { object }
        | EventKind::Obtain { object }
        | EventKind::BarrierEnter { object }
        | EventKind::BarrierLeave { object } => all(&[*object]),
        EventKind::Create { child } | EventKind::Join { child } => all(&[u64::from(child.0)]),
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
            all(&[u64::from(descriptor.cast_unsigned()), to_u64(bytes.len())]);
            out.extend_from_slice(bytes);
        }
        EventKind::Mark(mark) => mark::put_mark(out, mark),
        EventKind::Fault(fault) => put(out, index(&FAULTS, *fault)),
    }
}

fn take_fields(bytes: &mut Bytes<'_>, tag: u8) -> Option<EventKind> {
    Some(match tag {
        9 | 10 => {
            let (object, mode) = (bytes.integer()?, one_of(&MODES, bytes)?);
            if tag == 9 {
                EventKind::Acquire { object, mode }
            } else {
                EventKind::Release { object, mode }
            }
        }
        11..=13 => {
            let (object, on) = (bytes.integer()?, one_of(&WAIT_KINDS, bytes)?);
            match tag {
                11 => EventKind::WaitBegin { object, on },
                12 => EventKind::WaitEnd { object, on },
                _ => EventKind::Notify {
                    object,
                    on,
                    everyone: bytes.integer()? != 0,
                },
            }
        }
        14 | 15 | 29 | 30 => {
            let object = bytes.integer()?;
            match tag {
                14 => EventKind::BarrierEnter { object },
                15 => EventKind::BarrierLeave { object },
                29 => EventKind::Publish { object },
                _ => EventKind::Obtain { object },
            }
        }
        16 | 17 => {
            let child = ContextId(bytes.small()?);
            if tag == 16 {
                EventKind::Create { child }
            } else {
                EventKind::Join { child }
            }
        }
        19 | 21 | 22 => {
            let (addr, size) = (bytes.integer()?, bytes.integer()?);
            match tag {
                19 => EventKind::Alloc { addr, size },
                21 => EventKind::Map { addr, size },
                _ => EventKind::Unmap { addr, size },
            }
        }
        20 => EventKind::Free {
            addr: bytes.integer()?,
        },
        18 => EventKind::Exit,
        26 => EventKind::SignalLeave,
        28 => EventKind::KnownCall,
        _ => return take_system(bytes, tag),
    })
}

/// What is between the program and the system.
fn take_system(bytes: &mut Bytes<'_>, tag: u8) -> Option<EventKind> {
    Some(match tag {
        23 => {
            let number = bytes.small()?;
            let mut arguments = Box::new([0; 6]);
            for argument in arguments.iter_mut() {
                *argument = bytes.integer()?;
            }
            EventKind::SyscallEnter { number, arguments }
        }
        24 => EventKind::SyscallLeave {
            number: bytes.small()?,
            result: bytes.integer()?.cast_signed(),
        },
        25 => EventKind::SignalEnter {
            number: bytes.small()?,
        },
        27 => {
            let descriptor = bytes.small::<u32>()?.cast_signed();
            let length = to_usize(bytes.integer()?);
            // Never more than the block has.
            let bytes = bytes.take(length)?.to_vec();
            EventKind::Output { descriptor, bytes }
        }
        31 => EventKind::Mark(Box::new(mark::take_mark(bytes)?)),
        32 => EventKind::Fault(one_of(&FAULTS, bytes)?),
        _ => return None,
    })
}

fn section_words(section: &Section) -> [u64; 6] {
    [
        section.lock,
        index(&MODES, section.mode) << 1 | index(&SOURCES, section.source),
        u64::from(section.context.0),
        section.serial,
        section.site.number(),
        section.step,
    ]
}

fn take_fact(bytes: &mut Bytes<'_>, tag: u8) -> Option<Fact> {
    Some(match tag {
        0 => Fact::Lock(LockChange::Obtained(take_section(bytes)?)),
        1 => Fact::Lock(LockChange::GivenUp(take_section(bytes)?)),
        2 => Fact::Lock(LockChange::WasHeld(take_section(bytes)?)),
        3 => Fact::Allocated {
            ordinal: bytes.integer()?,
            generation: bytes.integer()?,
        },
        4 => Fact::Instruction {
            site: Site::from_number(bytes.integer()?),
            kind: one_of(&LOCKED_KINDS, bytes)?,
        },
        _ => return None,
    })
}

fn take_section(bytes: &mut Bytes<'_>) -> Option<Section> {
    let lock = bytes.integer()?;
    let how: usize = bytes.small()?;
    Some(Section {
        lock,
        mode: *MODES.get(how >> 1)?,
        source: SOURCES[how & 1],
        context: ContextId(bytes.small()?),
        serial: bytes.integer()?,
        site: Site::from_number(bytes.integer()?),
        step: bytes.integer()?,
    })
}

/// The number of a value in the list of all.
fn index<T: Copy + PartialEq>(all: &[T], wanted: T) -> u64 {
    let found = all.iter().position(|value| *value == wanted);
    to_u64(found.expect("the list has all values"))
}

fn one_of<T: Copy>(all: &[T], bytes: &mut Bytes<'_>) -> Option<T> {
    all.get(bytes.small::<usize>()?).copied()
}
