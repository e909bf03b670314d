//! Communication points: instructions that touched memory which another context touched too, one of them
//! writing (SKI, Fonseca et al., OSDI 2014, section 4.4). Only there can a switch change what anybody reads.

use std::collections::{BTreeMap, BTreeSet};

use raddle_stdx::width::{to_u64, to_usize};
use raddle_world::{Access, ContextId, Event, EventKind, Granule, Location, Site};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known about the uses of one granule.
#[derive(Debug, Clone, Default)]
struct Uses {
    first: Option<ContextId>,
    is_shared: bool,
    is_written: bool,
    /// Instructions that touched it; few, so a list.
    sites: Vec<Site>,
}

impl Uses {
    /// Whether several contexts touched it, one of them writing.
    fn is_meeting(&self) -> bool {
        self.is_shared && self.is_written
    }
}

/// One access, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Touch {
    granule: Granule,
    site: Site,
    context: ContextId,
    writes: bool,
    /// How often granules had become something new by then, and one.
    age: u32,
}

impl Touch {
    /// What no context does.
    const NONE: Self = Self {
        granule: Granule::FIRST,
        site: Site::NOWHERE,
        context: ContextId(0),
        writes: false,
        age: 0,
    };
}

/// The touches noted last. Loops repeat theirs, and noting one again changes nothing.
#[derive(Debug)]
struct Recent(Box<[Touch; 1 << RECENT_BITS]>);

const RECENT_BITS: u32 = 11;

impl Default for Recent {
    fn default() -> Self {
        Self(Box::new([Touch::NONE; 1 << RECENT_BITS]))
    }
}

impl Recent {
    /// Whether a touch is among them; it is from now on.
    fn has(&mut self, touch: Touch) -> bool {
        let mixed = (touch.granule.number() ^ touch.site.number().rotate_left(24))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = &mut self.0[to_usize(mixed >> (64 - RECENT_BITS))];
        std::mem::replace(slot, touch) == touch
    }
}

/// Watches one run.
#[derive(Debug, Default)]
pub struct Communication {
    recent: Recent,
    /// How often granules became something new.
    age: u32,
    granules: FxHashMap<Granule, Uses>,
    /// The instructions at granules that were shared and written before they became something else.
    former: BTreeSet<Vec<Site>>,
    /// Instructions that wrote.
    writers: FxHashSet<Site>,
}

/// The instructions of a run that met at one granule, for each granule where contexts met.
pub type Meetings = BTreeSet<Vec<Site>>;

impl Communication {
    pub fn event(&mut self, event: &Event) {
        if let EventKind::Access(access) = &event.kind {
            self.access(event.context, event.site, access);
        }
    }

    /// An access by a context or by a part of one, as a signal handler is.
    pub fn access(&mut self, user: ContextId, site: Site, access: &Access) {
        let writes = access.how.writes();
        if access.is_in_one_granule() {
            self.touch(user, site, access, writes);
        } else {
            for piece in access.pieces() {
                self.touch(user, site, &piece, writes);
            }
        }
    }

    #[inline]
    fn touch(&mut self, user: ContextId, site: Site, piece: &Access, writes: bool) {
        let key = piece.location.granule();
        let touch = Touch {
            granule: key,
            site,
            context: user,
            writes,
            age: self.age + 1,
        };
        if self.recent.has(touch) {
            return;
        }
        if writes {
            self.writers.insert(site);
        }
        let uses = self.granules.entry(key).or_default();
        let first = *uses.first.get_or_insert(user);
        uses.is_shared |= first != user;
        uses.is_written |= writes;
        if !uses.sites.contains(&site) {
            uses.sites.push(site);
        }
    }

    /// Memory that a context has touched is taken away, which is as good as a write for one that still uses it.
    pub fn taken_away(&mut self, by: ContextId, location: Location) {
        if let Some(uses) = self.granules.get_mut(&location.granule()) {
            uses.is_shared |= uses.first.is_some_and(|first| first != by);
            uses.is_written = true;
        }
    }

    /// The rest of a page from this location on, up to so many bytes, becomes something new: a block, a stack. A
    /// context that used it before meets none that uses it now.
    pub fn becomes_new(&mut self, location: Location, bytes: u64) {
        for key in location.granules(bytes) {
            let Some(mut uses) = self.granules.remove(&key) else {
                continue;
            };
            self.age += 1;
            if uses.is_meeting() {
                uses.sites.sort_unstable();
                self.former.insert(uses.sites);
            }
        }
    }

    /// The instructions that met somewhere, by granule; `is_interesting` says which instructions count.
    pub fn meetings(&self, is_interesting: &mut dyn FnMut(Site) -> bool) -> Meetings {
        let mut decided: BTreeMap<Site, bool> = BTreeMap::new();
        let now = self.granules.values().filter(|uses| uses.is_meeting());
        now.map(|uses| &uses.sites)
            .chain(&self.former)
            .map(|met| {
                let mut sites: Vec<Site> = met
                    .iter()
                    .copied()
                    .filter(|site| {
                        *decided
                            .entry(*site)
                            .or_insert_with(|| is_interesting(*site))
                    })
                    .collect();
                sites.sort_unstable();
                sites
            })
            .filter(|sites| !sites.is_empty())
            .collect()
    }

    /// Instructions that wrote somewhere.
    pub fn writers(&self) -> BTreeSet<Site> {
        self.writers.iter().copied().collect()
    }

    /// Whether several contexts touched what an access touches, one of them writing.
    pub fn is_meeting(&self, access: &Access) -> bool {
        access.pieces().any(|piece| {
            let uses = self.granules.get(&piece.location.granule());
            uses.is_some_and(Uses::is_meeting)
        })
    }

    /// Whether the users of what an access touches would have met, had all that this run and another did happened in
    /// one: a context reads here what another one writes only there.
    pub fn is_meeting_with(&self, other: &Self, access: &Access) -> bool {
        access.pieces().any(|piece| {
            let granule = piece.location.granule();
            match (self.granules.get(&granule), other.granules.get(&granule)) {
                (Some(here), Some(there)) => {
                    let is_shared = here.is_shared || there.is_shared || here.first != there.first;
                    is_shared && (here.is_written || there.is_written)
                }
                (Some(uses), None) | (None, Some(uses)) => uses.is_meeting(),
                (None, None) => false,
            }
        })
    }

    /// Places that several contexts touched, one of them writing.
    pub fn shared_places(&self) -> u64 {
        let shared = self.granules.values().filter(|uses| uses.is_meeting());
        to_u64(shared.count())
    }
}

#[cfg(test)]
mod tests {
    use raddle_world::{AccessKind, ImageId};

    use super::*;

    fn access(context: u32, pc: u64, offset: u16, writes: bool) -> Event {
        Event {
            context: ContextId(context),
            step: 0,
            site: Site::first(pc),
            kind: EventKind::Access(Access {
                how: if writes {
                    AccessKind::Write
                } else {
                    AccessKind::Read
                },
                size: 8,
                location: Location::shared(1, offset),
                addr: 0,
                value: None,
            }),
        }
    }

    fn met(groups: &[&[u64]]) -> Meetings {
        let sites = |group: &&[u64]| group.iter().copied().map(Site::first).collect();
        groups.iter().map(sites).collect()
    }

    #[test]
    fn instructions_of_two_programs_at_one_address_are_two() {
        let mut watch = Communication::default();
        let mut other = access(1, 10, 0, true);
        other.site = Site::new(ImageId::new(5), 10);
        watch.event(&access(0, 10, 0, false));
        watch.event(&other);
        let meetings = watch.meetings(&mut |_| true);
        let both = vec![Site::first(10), other.site];
        assert_eq!(meetings, BTreeSet::from([both]));
    }

    #[test]
    fn only_shared_and_written_places_count() {
        let mut watch = Communication::default();
        for event in [
            access(0, 10, 0, false),
            access(1, 20, 0, true),
            access(0, 30, 64, true),
            access(0, 40, 128, false),
            access(1, 50, 128, false),
        ] {
            watch.event(&event);
        }
        let meetings = watch.meetings(&mut |_| true);
        assert_eq!(meetings, met(&[&[10, 20]]));
        assert_eq!(
            watch.meetings(&mut |site| site != Site::first(20)),
            met(&[&[10]])
        );
    }

    #[test]
    fn a_read_of_one_run_meets_the_write_of_another() {
        let (mut failing, mut passing) = (Communication::default(), Communication::default());
        failing.event(&access(1, 20, 0, false));
        failing.event(&access(1, 21, 64, false));
        passing.event(&access(0, 10, 0, true));
        passing.event(&access(1, 11, 64, true));
        let touched = |offset| match access(1, 20, offset, false).kind {
            EventKind::Access(access) => access,
            other => panic!("{other:?}"),
        };
        assert!(!failing.is_meeting(&touched(0)));
        assert!(failing.is_meeting_with(&passing, &touched(0)));
        assert!(
            !failing.is_meeting_with(&passing, &touched(64)),
            "one context's own"
        );
        assert!(!failing.is_meeting_with(&passing, &touched(128)));
    }

    #[test]
    fn what_became_something_new_does_not_connect_its_users() {
        let mut watch = Communication::default();
        let new = |offset| Location::shared(1, offset);
        watch.event(&access(0, 10, 8, true));
        watch.event(&access(0, 11, 24, true));
        watch.becomes_new(new(8), 16);
        watch.event(&access(1, 20, 8, true));
        watch.event(&access(2, 30, 16, true));
        watch.event(&access(1, 40, 24, false));
        assert_eq!(
            watch.meetings(&mut |_| true),
            met(&[&[11, 40]]),
            "what lies behind it is what it was"
        );
        watch.event(&access(2, 50, 8, true));
        watch.becomes_new(new(0), 4096);
        assert_eq!(
            watch.meetings(&mut |_| true),
            met(&[&[11, 40], &[20, 50]]),
            "those who met before have met"
        );
    }
}
