//! Locations that synchronise: whatever a locked instruction ever touched, until it becomes a new block of memory.
//! Plain accesses to them acquire and release, too.

use raddle_world::{Access, ContextId, GRANULE_BYTES, PageKey};
use rustc_hash::FxHashMap;

use super::clocks::Clocks;
use crate::clock::VectorClock;

/// A granule of memory at a virtual address: a frame that was given back and is used elsewhere is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MappedGranule {
    page: PageKey,
    /// Virtual address in units of granules.
    at: u64,
}

impl MappedGranule {
    #[inline]
    pub fn of(access: &Access) -> Self {
        Self::new(access.location.page, access.addr)
    }

    #[inline]
    fn new(page: PageKey, addr: u64) -> Self {
        let at = addr / u64::from(GRANULE_BYTES);
        Self { page, at }
    }
}

/// The bytes of its first granule that an access touches, one bit each.
#[inline]
pub fn touched_bytes(access: &Access) -> u8 {
    let first = u32::from(access.location.offset & 7);
    let ones = if access.size >= GRANULE_BYTES {
        0xFF
    } else {
        (1_u8 << access.size) - 1
    };
    ones.checked_shl(first).unwrap_or(0)
}

/// What locked instructions touched of a granule.
#[derive(Debug, Default)]
struct SyncBytes {
    bytes: u8,
    clock: VectorClock,
    /// What is ordered before the values that were stored, if values are observed.
    flag: VectorClock,
}

/// The locations of one run that synchronise, and where its memory is.
#[derive(Debug, Default)]
pub(super) struct Places {
    of: FxHashMap<MappedGranule, SyncBytes>,
    /// The page of memory at each virtual page that was touched, for allocations.
    pages: FxHashMap<u64, PageKey>,
    /// The one that was touched last: accesses cluster.
    last: Option<(u64, PageKey)>,
}

/// Bytes of a new block that are looked at.
const BLOCK_BYTES_MAX: u64 = 1 << 20;

impl Places {
    /// From now on every access to these bytes orders, as those of locked instructions do.
    pub(super) fn mark(&mut self, access: &Access) {
        for piece in access.pieces() {
            self.place(&piece);
        }
    }

    fn place(&mut self, piece: &Access) -> &mut SyncBytes {
        let place = self.of.entry(MappedGranule::of(piece)).or_default();
        place.bytes |= touched_bytes(piece);
        place
    }

    /// A locked instruction touches a granule.
    pub(super) fn update(&mut self, clocks: &mut Clocks, who: ContextId, piece: &Access) {
        clocks.exchange(who, &mut self.place(piece).clock);
    }

    /// A plain access touches a granule: whether it synchronises.
    #[inline]
    pub(super) fn touch(&mut self, clocks: &mut Clocks, who: ContextId, piece: &Access) -> bool {
        let page = (piece.addr >> 12, piece.location.page);
        if self.last != Some(page) {
            self.last = Some(page);
            self.pages.insert(page.0, page.1);
        }
        let Some(place) = self.of.get_mut(&MappedGranule::of(piece)) else {
            return false;
        };
        if place.bytes & touched_bytes(piece) == 0 {
            return false;
        }
        if piece.how.writes() {
            clocks.store(who, &mut place.clock);
        } else {
            clocks.load(who, &place.clock);
        }
        true
    }

    /// A context stores a value for which others may wait, at this count of its clock.
    pub(super) fn set_flag(&mut self, clocks: &Clocks, who: (ContextId, u32), piece: &Access) {
        if let Some(place) = self.of.get_mut(&MappedGranule::of(piece)) {
            clocks.set_flag(who.0, who.1, &mut place.flag);
        }
    }

    /// A context sees the value for which it has waited.
    pub(super) fn see_flag(&mut self, clocks: &mut Clocks, who: ContextId, piece: &Access) {
        if let Some(place) = self.of.get(&MappedGranule::of(piece)) {
            clocks.see_flag(who, &place.flag);
        }
    }

    /// The granules of a block of memory, as far as they were touched.
    pub(super) fn granules(&self, addr: u64, size: u64) -> impl Iterator<Item = MappedGranule> {
        let end = addr.saturating_add(size.min(BLOCK_BYTES_MAX));
        let step = usize::from(GRANULE_BYTES);
        (addr & !7..end).step_by(step).filter_map(|at| {
            let page = self.pages.get(&(at >> 12))?;
            Some(MappedGranule::new(*page, at))
        })
    }

    /// A new block of memory has no past.
    pub(super) fn forget(&mut self, addr: u64, size: u64) {
        if self.of.is_empty() {
            return;
        }
        let granules: Vec<MappedGranule> = self
            .granules(addr, size)
            .filter(|granule| self.of.contains_key(granule))
            .collect();
        for granule in granules {
            self.of.remove(&granule);
        }
    }
}
