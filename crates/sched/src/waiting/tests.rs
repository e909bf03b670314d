//! Tests of who is set aside, and until when.

use super::*;

const SPINNER: ContextId = ContextId(1);
const HERE: Site = Site::first(0x40);

/// A world of one word, with a loop that may count in memory.
#[derive(Default)]
struct OneWord {
    value: u64,
    counts: bool,
    is_felt: bool,
    rehearsals: u64,
}

impl Rehearse for OneWord {
    fn rehearse(&mut self, _: ContextId, _: u64) -> Option<Standstill> {
        self.rehearsals += 1;
        let words = vec![(0, self.value)];
        let is_felt = self.is_felt;
        (!self.counts).then_some(Standstill { words, is_felt })
    }

    fn stands_still(&mut self, _: ContextId, standstill: &Standstill) -> bool {
        standstill.words == [(0, self.value)]
    }
}

/// A stop at the head of a loop; whether the context was set aside there.
fn comes_round(waiting: &mut Waiting, world: &mut OneWord, steps: u64) -> bool {
    let suspicion = waiting.stop(SPINNER, HERE, 7, steps);
    suspicion.is_some_and(|suspicion| waiting.look_into(suspicion, Some(world)))
}

#[test]
fn a_loop_that_changes_nothing_waits_until_what_it_reads_is_changed() {
    let (mut waiting, mut world) = (Waiting::default(), OneWord::default());
    assert!(!comes_round(&mut waiting, &mut world, 10));
    assert!(comes_round(&mut waiting, &mut world, 15));
    waiting.revive(Some(&mut world));
    assert!(waiting.is_aside(SPINNER));
    world.value = 1;
    waiting.revive(Some(&mut world));
    assert!(!waiting.is_aside(SPINNER));
}

#[test]
fn a_loop_that_counts_is_never_set_aside_and_seldom_tried_out() {
    let mut waiting = Waiting::default();
    let mut world = OneWord {
        counts: true,
        ..OneWord::default()
    };
    for turn in 0..10_000 {
        assert!(!comes_round(&mut waiting, &mut world, 5 * turn));
    }
    assert!(waiting.is_empty());
    assert!(world.rehearsals < 20, "{}", world.rehearsals);
    // When it counts no more, this is seen before long.
    world.counts = false;
    assert!((10_000..30_000).any(|turn| comes_round(&mut waiting, &mut world, 5 * turn)));
}

#[test]
fn a_loop_that_was_tried_out_is_known_for_as_long_as_it_reads_the_same() {
    let (mut waiting, mut world) = (Waiting::default(), OneWord::default());
    for turn in 0..100 {
        comes_round(&mut waiting, &mut world, 5 * turn);
        waiting.revive_all();
    }
    assert_eq!(world.rehearsals, 1);
    world.value = 2;
    assert!(comes_round(&mut waiting, &mut world, 500));
    assert_eq!(world.rehearsals, 2);
}

#[test]
fn a_loop_that_others_feel_waits_but_is_not_set_aside() {
    let mut waiting = Waiting::default();
    let mut world = OneWord {
        is_felt: true,
        ..OneWord::default()
    };
    for turn in 1..5 {
        comes_round(&mut waiting, &mut world, 5 * turn);
        assert!(comes_round(&mut waiting, &mut world, 5 * turn + 5));
        assert!(waiting.is_empty());
    }
    assert_eq!(world.rehearsals, 1);
}

#[test]
fn without_a_rehearsal_nobody_is_set_aside() {
    let mut waiting = Waiting::default();
    let suspicion = waiting.yields(SPINNER, HERE, 7);
    assert!(!waiting.look_into(suspicion, None));
    assert!(waiting.look_into(suspicion, Some(&mut OneWord::default())));
}

/// Whether a loop is seen that takes so many instructions and passes so many points.
fn is_seen(window: Option<u64>, instructions: u64, points: u64) -> bool {
    let mut waiting = Waiting::new(window);
    (0..2).any(|turn| {
        (0..points).any(|point| {
            let steps = 1_000 + turn * instructions + point;
            waiting.stop(SPINNER, HERE, point, steps).is_some()
        })
    })
}

#[test]
fn a_loop_may_be_as_long_as_the_window() {
    assert!(is_seen(Some(20), 20, 1));
    assert!(is_seen(Some(20), 20, 20));
    assert!(!is_seen(Some(20), 21, 1));
    assert!(!is_seen(Some(0), 1, 1));
}

#[test]
fn without_a_window_a_loop_may_pass_eight_points() {
    assert!(is_seen(None, 1_000_000, 8));
    assert!(!is_seen(None, 1_000_000, 9));
}
