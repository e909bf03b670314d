//! Memory accesses that the engine observed, as events.

use raddle_mem::{AddressSpace, GuestAddr, PageNo};
use raddle_stdx::width::{low_u8, low_u16, to_usize};
use raddle_world::{Access, AccessKind, Event, EventKind, Location, PageKey, Site};
use raddle_x86::{Engine, LogKind};

use crate::kernel::Kernel;
use crate::process::SpaceId;
use crate::thread::Tid;

/// Pages whose frame is remembered while a log is read.
const KNOWN_PAGES: usize = 64;

/// Moves the engine's log to the list of events. Called right after a run, so that mappings are still those
/// under which the accesses were made.
pub(crate) fn drain(engine: &mut Engine, kernel: &mut Kernel, tid: Tid) {
    let context = kernel.thread(tid).context;
    let first_step = kernel.state.contexts.get(context).steps;
    let image = kernel.image(tid);
    let id = kernel.process_of(tid).space;
    let map = &kernel.state.spaces[&id].map;
    // Accesses cluster on few pages: remember where they are instead of asking the page table each time.
    let mut known = [(u64::MAX, PageKey::shared(0)); KNOWN_PAGES];
    let events = &mut kernel.events;
    engine.log().for_each(|record| {
        let page = GuestAddr(record.addr).page();
        let slot = &mut known[to_usize(page.0) % KNOWN_PAGES];
        if slot.0 != page.0 {
            let Some(key) = page_key(id, map, page) else {
                return;
            };
            *slot = (page.0, key);
        }
        let location = Location::new(slot.1, low_u16(record.addr & 0xFFF));
        // Not `push`: room is made before the event is, so that it is built in its place instead of copied there.
        events.extend(std::iter::once_with(|| Event {
            context,
            step: first_step + record.step,
            site: Site::new(image, record.pc),
            kind: EventKind::Access(Access {
                how: access_kind(record.kind),
                size: low_u8(u64::from(record.size)),
                location,
                addr: record.addr,
                value: record.value,
            }),
        }));
    });
    engine.clear_log();
}

/// The name of a present page for everyone who can reach it.
pub(crate) fn page_key(id: SpaceId, map: &AddressSpace, page: PageNo) -> Option<PageKey> {
    let frame = map.pte(page)?.frame.0;
    // One process needs no other name than the frame, and no search for its area.
    let is_shared = id == SpaceId::FIRST || map.vma_at(page).is_some_and(|vma| vma.shared);
    Some(if is_shared {
        PageKey::shared(frame)
    } else {
        PageKey::private(id.0, frame)
    })
}

fn access_kind(kind: LogKind) -> AccessKind {
    match kind {
        LogKind::Read | LogKind::Block => AccessKind::Read,
        LogKind::Write => AccessKind::Write,
        LogKind::Update => AccessKind::Update,
        LogKind::AtomicUpdate => AccessKind::AtomicUpdate,
    }
}
