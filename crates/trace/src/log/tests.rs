//! Logs are read as they were written; damage is told and never followed.

use raddle_stdx::Prng;
use raddle_stdx::width::{low_u8, to_u64, to_usize};
use raddle_world::{
    Access, AccessKind, ContextId, EventKind, Location, LockMode, Mark, PageKey, Value, WaitKind,
};

use super::*;
use crate::facts::Facts;
use crate::observer::Observer as _;

fn head() -> Head {
    Head {
        writer: "raddle test".to_owned(),
        subject: vec!["./bank".to_owned(), "--fast".to_owned()],
        seed: 7,
        observation: Observation::Values,
        images: vec![Image {
            path: "/bin/bank".to_owned(),
            build_id: Some("c0ffee".to_owned()),
        }],
    }
}

/// Events of all kinds.
fn kinds() -> Vec<EventKind> {
    let (object, mode, child) = (0x6010, LockMode::Shared, ContextId(1));
    let (addr, size) = (0x6000, 64);
    let access = |how, value| Access {
        how,
        size: 4,
        location: Location::new(PageKey::private(3, 9), 0x010),
        addr: 0x6010,
        value,
    };
    let on = WaitKind::Semaphore;
    vec![
        EventKind::Create { child },
        EventKind::Alloc { addr, size },
        EventKind::Access(access(AccessKind::Read, Some(u64::MAX))),
        EventKind::Access(access(AccessKind::Write, None)),
        EventKind::Aside(access(AccessKind::Update, Some(0))),
        EventKind::Access(access(AccessKind::AtomicUpdate, Some(0))),
        EventKind::Access(access(AccessKind::Write, Some(0))),
        EventKind::Acquire { object, mode },
        EventKind::Release { object, mode },
        EventKind::WaitBegin { object, on },
        EventKind::WaitEnd { object, on },
        EventKind::Notify {
            object,
            on: WaitKind::Condition,
            everyone: true,
        },
        EventKind::BarrierEnter { object },
        EventKind::BarrierLeave { object },
        EventKind::KnownCall,
        EventKind::Fault(raddle_world::Fault::WakeOrder),
        EventKind::Publish { object },
        EventKind::Obtain { object },
        EventKind::Map { addr, size },
        EventKind::Unmap { addr, size },
        EventKind::SyscallEnter {
            number: 1,
            arguments: Box::new([1, 2, 3, u64::MAX, 5, 6]),
        },
        EventKind::SyscallLeave {
            number: 1,
            result: -9,
        },
        EventKind::SignalEnter { number: 11 },
        EventKind::SignalLeave,
        EventKind::Output {
            descriptor: -1,
            bytes: b"hello\n".to_vec(),
        },
        EventKind::Mark(Box::new(Mark::Begin {
            name: "get".into(),
            is_probe: true,
        })),
        EventKind::Mark(Box::new(Mark::Argument(Value::Number(-7)))),
        EventKind::Mark(Box::new(Mark::Result(Value::Error(b"no".to_vec())))),
        EventKind::Mark(Box::new(Mark::End)),
        EventKind::Free { addr },
        EventKind::Join { child },
        EventKind::Exit,
    ]
}

fn events(rounds: u64) -> Vec<Event> {
    let mut prng = Prng::new(3);
    let mut events = Vec::new();
    for _ in 0..rounds {
        for kind in kinds() {
            events.push(Event {
                context: ContextId(u32::from(low_u8(prng.below(3)))),
                step: prng.below(1 << 40),
                site: Site::first(0xFFFF_FFFF_8100_0000 + prng.below(1 << 20)),
                kind,
            });
        }
    }
    events
}

fn written(events: &[Event]) -> Vec<u8> {
    let mut facts = Facts::default();
    let mut writer = LogWriter::new(Vec::new(), &head()).unwrap();
    for event in events {
        facts.event_with(event, &mut |_| LockedKind::Exchange);
        writer.event(event, &facts);
    }
    writer.finish(0xD16E57).unwrap()
}

/// The items, and how the log ends.
fn read(bytes: &[u8]) -> Result<(Vec<Item>, Ending), LogError> {
    let mut reader = LogReader::new(bytes)?;
    let mut items = Vec::new();
    while let Some(item) = reader.item()? {
        items.push(item);
    }
    Ok((items, reader.ending().unwrap()))
}

fn only_events(items: &[Item]) -> Vec<Event> {
    let events = items.iter().filter_map(|item| match item {
        Item::Event(event) => Some(event.clone()),
        Item::Fact { .. } => None,
    });
    events.collect()
}

#[test]
fn events_of_all_kinds_come_back_with_their_facts() {
    let events = events(1);
    let bytes = written(&events);
    let reader = LogReader::new(&bytes[..]).unwrap();
    assert_eq!(reader.head(), &head());
    let (items, ending) = read(&bytes).unwrap();
    assert_eq!(ending, Ending::Whole { digest: 0xD16E57 });
    assert_eq!(only_events(&items), events);
    let facts: Vec<Fact> = items
        .iter()
        .filter_map(|item| match item {
            Item::Fact { fact, .. } => Some(*fact),
            Item::Event(_) => None,
        })
        .collect();
    let allocated = Fact::Allocated {
        ordinal: 1,
        generation: 1,
    };
    assert!(facts.contains(&allocated));
    let locks = facts.iter().filter(|fact| matches!(fact, Fact::Lock(_)));
    assert!(locks.count() >= 1, "{facts:?}");
    let is_instruction = |fact: &&Fact| matches!(fact, Fact::Instruction { .. });
    assert_eq!(facts.iter().filter(is_instruction).count(), 1);
}

#[test]
fn long_logs_are_many_blocks_and_small() {
    let events = events(4000);
    let bytes = written(&events);
    let (items, ending) = read(&bytes).unwrap();
    assert!(matches!(ending, Ending::Whole { .. }));
    assert!(only_events(&items) == events);
    let each = bytes.len() / events.len();
    assert!(each < 16, "{each} bytes for an event with random steps");
}

#[test]
fn large_output_becomes_several_events() {
    let event = Event {
        context: ContextId(0),
        step: 1,
        site: Site::first(2),
        kind: EventKind::Output {
            descriptor: 1,
            bytes: vec![7; 3 << 20],
        },
    };
    let (items, _) = read(&written(&[event])).unwrap();
    let lengths = only_events(&items)
        .into_iter()
        .map(|event| match event.kind {
            EventKind::Output { bytes, .. } => bytes.len(),
            other => panic!("{other:?}"),
        });
    assert_eq!(lengths.sum::<usize>(), 3 << 20);
}

#[test]
fn a_log_that_was_cut_off_is_read_up_to_its_last_whole_block() {
    let events = events(4000);
    let bytes = written(&events);
    let (whole, _) = read(&bytes).unwrap();
    let mut lengths = Vec::new();
    for part in [1, 2, 3] {
        let (items, ending) = read(&bytes[..bytes.len() * part / 4]).unwrap();
        assert_eq!(ending, Ending::Truncated);
        assert!(items == whole[..items.len()]);
        lengths.push(items.len());
    }
    assert!(lengths[0] > 0 && lengths[0] < lengths[2], "{lengths:?}");
    // The digest at the end is missing.
    let (items, ending) = read(&bytes[..bytes.len() - 25]).unwrap();
    assert_eq!((items.len(), ending), (whole.len(), Ending::Truncated));
}

#[test]
fn every_changed_byte_is_noticed() {
    let bytes = written(&events(2));
    let (whole, _) = read(&bytes).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        match read(&damaged) {
            Err(_) => {}
            Ok((items, ending)) => {
                assert!(!matches!(ending, Ending::Whole { .. }), "byte {at}");
                assert!(items == whole[..items.len()]);
            }
        }
    }
}

/// A file that is made on purpose has right checksums: the content is nonsense then.
#[test]
fn nonsense_in_blocks_with_right_checksums_is_refused() {
    let mut prng = Prng::new(11);
    for _ in 0..2000 {
        let mut nonsense = vec![0; to_usize(prng.below(200))];
        prng.fill(&mut nonsense);
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        let json = serde_json::to_vec(&head()).unwrap();
        block::write(&mut bytes, block::Kind::Head, &json).unwrap();
        block::write(&mut bytes, block::Kind::Records, &nonsense).unwrap();
        let (items, _) = read(&bytes).unwrap();
        assert!(items.len() <= nonsense.len());
    }
}

#[test]
fn lengths_are_not_believed() {
    let mut bytes = written(&[]);
    let first_block = MAGIC.len() + 1;
    for at in [1, 5] {
        let mut long = bytes.clone();
        long[first_block + at..first_block + at + 4].fill(0xFF);
        assert!(matches!(read(&long), Err(LogError::Head)));
    }
    bytes[MAGIC.len()] = 1;
    assert!(matches!(read(&bytes), Err(LogError::Version { found: 1 })));
    assert!(matches!(read(b"ELF"), Err(LogError::Foreign)));
    assert!(to_u64(bytes.len()) < u64::from(block::RAW_MAX));
}
