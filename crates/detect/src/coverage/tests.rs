//! Coverage of hand-written runs.

use raddle_world::{Location, LockMode};

use super::*;

const LOCK: u64 = 0x9000;

#[derive(Default)]
struct Script {
    facts: Facts,
    coverage: Coverage,
    steps: u64,
}

impl Script {
    fn with_threads(count: u32) -> Self {
        let mut script = Self::default();
        for child in 1..=count {
            let child = ContextId(child);
            script.event(0, 0, EventKind::Create { child });
        }
        script
    }

    fn event(&mut self, context: u32, pc: u64, kind: EventKind) {
        self.steps += 1;
        let event = Event {
            context: ContextId(context),
            step: self.steps,
            site: Site::first(pc),
            kind,
        };
        self.facts.event(&event);
        self.coverage.event(&event, &self.facts);
    }

    fn access(&mut self, context: u32, pc: u64, how: AccessKind, page: u32) {
        let access = Access {
            how,
            size: 8,
            location: Location::shared(page, 0),
            addr: 0x5000 + u64::from(page) * 0x1000,
            value: None,
        };
        self.event(context, pc, EventKind::Access(access));
    }

    fn locked(&mut self, context: u32, accesses: &[(u64, AccessKind)]) {
        let (object, mode) = (LOCK, LockMode::Exclusive);
        self.event(context, 1, EventKind::Acquire { object, mode });
        for (pc, how) in accesses {
            self.access(context, *pc, *how, 1);
        }
        self.event(context, 2, EventKind::Release { object, mode });
    }

    fn reach(self, pc: u64) -> Option<Reach> {
        let covered = self.coverage.finish();
        covered.sites.get(&Site::first(pc)).copied()
    }
}

#[test]
fn what_happened_is_covered_and_what_could_happen_is_feasible() {
    for (is_between, wanted) in [(true, Reach::Covered), (false, Reach::Feasible)] {
        let mut script = Script::with_threads(2);
        script.access(1, 0x10, AccessKind::Read, 1);
        if is_between {
            script.access(2, 0x30, AccessKind::Write, 1);
        }
        script.access(1, 0x20, AccessKind::Read, 1);
        if !is_between {
            script.access(2, 0x30, AccessKind::Write, 1);
        }
        assert_eq!(script.reach(0x20), Some(wanted));
    }
}

#[test]
fn a_remote_access_that_came_before_counts_too() {
    let mut script = Script::with_threads(2);
    script.access(2, 0x30, AccessKind::Write, 1);
    script.access(1, 0x10, AccessKind::Read, 1);
    script.access(1, 0x20, AccessKind::Write, 1);
    assert_eq!(script.reach(0x20), Some(Reach::Feasible));
}

#[test]
fn one_critical_section_and_order_leave_what_is_only_potential() {
    let pair = [(0x10, AccessKind::Read), (0x20, AccessKind::Write)];
    let mut script = Script::with_threads(2);
    script.locked(1, &pair);
    script.locked(2, &[(0x30, AccessKind::Write)]);
    assert_eq!(script.reach(0x20), Some(Reach::Potential));
    // The same lock in two critical sections protects nothing.
    let mut script = Script::with_threads(2);
    script.locked(1, &pair[..1]);
    script.locked(1, &pair[1..]);
    script.locked(2, &[(0x30, AccessKind::Write)]);
    assert_eq!(script.reach(0x20), Some(Reach::Feasible));
    let mut script = Script::with_threads(1);
    script.access(1, 0x10, AccessKind::Read, 1);
    script.access(1, 0x20, AccessKind::Read, 1);
    script.event(1, 0x21, EventKind::Exit);
    let child = ContextId(1);
    script.event(0, 0x40, EventKind::Join { child });
    script.access(0, 0x41, AccessKind::Write, 1);
    assert_eq!(script.reach(0x20), Some(Reach::Potential));
}

#[test]
fn serializable_interleavings_are_no_property() {
    let mut script = Script::with_threads(2);
    script.access(1, 0x10, AccessKind::Read, 1);
    script.access(2, 0x30, AccessKind::Read, 1);
    script.access(1, 0x20, AccessKind::Read, 1);
    assert_eq!(script.reach(0x20), None);
}

/// Fig. 4 of the paper: three threads that each access x twice and y twice.
#[test]
fn the_spaces_of_the_paper_have_their_sizes() {
    let mut script = Script::with_threads(3);
    for thread in 1..=3 {
        for page in [1, 2] {
            script.access(thread, 0x10, AccessKind::Write, page);
            script.access(thread, 0x20, AccessKind::Write, page);
        }
    }
    // What only one context uses is no part of any space.
    script.access(1, 0x50, AccessKind::Write, 7);
    script.access(1, 0x50, AccessKind::Write, 7);
    let spaces = script.coverage.finish().spaces;
    let thousandths = |size: f64| format!("{:.0}", size.log10() * 1000.0);
    assert_eq!(spaces.all.to_string(), thousandths(34_650.0));
    assert_eq!(spaces.thread_pairs.to_string(), thousandths(210.0));
    assert_eq!((spaces.pairs, spaces.unserializable), (12, 6));
}

#[test]
fn runs_add_up() {
    let site = Site::first(0x20);
    let covered = |reach| Covered {
        sites: BTreeMap::from([(site, reach)]),
        spaces: Spaces::default(),
    };
    let mut all = covered(Reach::Feasible);
    all.absorb(covered(Reach::Covered));
    all.absorb(covered(Reach::Potential));
    assert_eq!(all.sites[&site], Reach::Covered);
}
