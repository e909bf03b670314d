//! Tests of holds and of what comes of them, on a toy world.

use raddle_trace::Limits;

use super::*;
use crate::toy::{Do, Toy};
use crate::{Drive, Follow, drive};

const LIMITS: Limits = Limits {
    patience: 200,
    steps: 10_000,
};
const BUDGET: Budget = Budget {
    steps: 100,
    jumps: 4,
};

fn spot(context: u64, operation: u64) -> Spot {
    Spot {
        site: Site::first(1 + (context << 32 | operation)),
        addr: None,
    }
}

fn hold(at: Spot, until: Spot) -> Hold {
    Hold {
        context: None,
        at,
        visit: 1,
        until,
        budget: BUDGET,
    }
}

/// Runs under holds; the run can be had again.
#[track_caller]
fn run(programs: Vec<Vec<Do>>, holds: Vec<Hold>) -> (Toy, Directed, Drive) {
    let toy = Toy::new(programs);
    let mut world = toy.clone();
    let mut directed = Directed::new(holds);
    let driven = drive(&mut world, &mut directed, LIMITS, &mut |_, _| {});
    let mut again = toy.clone();
    let mut follow = Follow::new(&driven.schedule);
    let followed = drive(&mut again, &mut follow, LIMITS, &mut |_, _| {});
    assert_eq!(followed.schedule, driven.schedule);
    assert_eq!(again.cells, world.cells);
    (world, directed, driven)
}

#[test]
fn holds_can_wait_for_one_another() {
    let first = vec![Do::Work, Do::Load(0), Do::StoreNext(0), Do::Set(0)];
    let second = vec![Do::Work, Do::Load(0), Do::StoreNext(1)];
    let third = vec![Do::Work, Do::Set(0), Do::Set(0)];
    let holds = vec![hold(spot(0, 1), spot(2, 1)), hold(spot(1, 1), spot(0, 2))];
    let (world, directed, _) = run(vec![first, second, third], holds);
    assert_eq!(
        directed.verdicts().collect::<Vec<_>>(),
        [Verdict::Reached; 2]
    );
    assert_eq!(world.cells[1], 3, "set, counted on and read in this order");
}

/// Two switches in exact places: the second context reads what the first has set between its own two accesses, before
/// the first sets it anew.
#[test]
fn what_a_released_one_does_counts_for_the_next_hold() {
    let first = vec![Do::Work, Do::Set(0), Do::Load(0), Do::StoreNext(0)];
    let second = vec![
        Do::Work,
        Do::Load(0),
        Do::StoreNext(0),
        Do::Work,
        Do::Load(0),
        Do::StoreNext(1),
    ];
    let chain = |context: Option<Vec<u32>>| {
        let second_hold = Hold {
            context,
            ..hold(spot(1, 4), spot(0, 1))
        };
        let holds = vec![hold(spot(0, 1), spot(1, 2)), second_hold];
        run(vec![first.clone(), second.clone()], holds)
    };
    let (world, directed, _) = chain(Some(vec![1]));
    assert_eq!(directed.verdict(), Verdict::Reached);
    assert_eq!(world.cells[1], 2, "what was set, not what became of it");
    // Without a name no context can be sent on at once.
    let (world, directed, _) = chain(None);
    assert_eq!(directed.verdict(), Verdict::Reached);
    assert_eq!(world.cells[1], 3);
}

#[test]
fn the_held_one_goes_on_at_once() {
    // The other sets the cell and counts on; what is held reads right after the set.
    let held = vec![Do::Work, Do::Load(0), Do::StoreNext(1)];
    let other = vec![Do::Work, Do::Set(0), Do::Load(0), Do::StoreNext(0)];
    let (world, directed, _) = run(vec![held, other], vec![hold(spot(0, 1), spot(1, 1))]);
    assert_eq!(directed.verdict(), Verdict::Reached);
    assert_eq!(world.cells, [2, 2]);
}

#[test]
fn a_hold_is_blocked_if_the_others_need_the_held_one() {
    let held = vec![Do::Lock(0), Do::Work, Do::Unlock(0)];
    let other = vec![Do::Lock(0), Do::Set(0), Do::Unlock(0)];
    let programs = vec![held, other.clone()];
    let (_, directed, _) = run(programs, vec![hold(spot(0, 1), spot(1, 1))]);
    assert_eq!(directed.verdict(), Verdict::Blocked);
    // Waiting in a loop is no better, nor is an end without having been there.
    let held = vec![Do::Work, Do::Set(1)];
    for other in [vec![Do::SpinOn(1), Do::Set(0)], vec![Do::Work]] {
        let programs = vec![held.clone(), other];
        let (_, directed, _) = run(programs, vec![hold(spot(0, 1), spot(1, 1))]);
        assert_eq!(directed.verdict(), Verdict::Blocked);
    }
}

#[test]
fn a_budget_that_is_used_up_says_nothing() {
    let other = |work: usize| {
        let mut program = vec![Do::Work; work];
        program.push(Do::Set(0));
        program
    };
    for (work, verdict) in [(90, Verdict::Reached), (110, Verdict::NotReached)] {
        let programs = vec![vec![Do::Work, Do::Load(0), Do::StoreNext(1)], other(work)];
        let until = spot(1, u64::try_from(work).expect("few"));
        let (_, directed, _) = run(programs, vec![hold(spot(0, 1), until)]);
        assert_eq!(directed.verdict(), verdict);
    }
    // No context comes there.
    let (_, directed, _) = run(vec![vec![Do::Work]], vec![hold(spot(0, 7), spot(0, 0))]);
    assert_eq!(directed.verdict(), Verdict::NotReached);
}

#[test]
fn visits_and_addresses_are_told_apart() {
    // Polls its cell three times; before the third look the other sets it.
    let programs = vec![vec![Do::Work, Do::Poll(0, 5)], vec![Do::Work, Do::Set(0)]];
    let third = Hold {
        visit: 3,
        ..hold(spot(0, 1), spot(1, 1))
    };
    let (world, directed, _) = run(programs.clone(), vec![third.clone()]);
    assert_eq!(directed.verdict(), Verdict::Reached);
    assert_eq!(world.looks[0], 2);
    let elsewhere = |at: Option<u64>, until: Option<u64>| {
        let mut hold = third.clone();
        (hold.at.addr, hold.until.addr) = (at, until);
        run(programs.clone(), vec![hold]).1.verdict()
    };
    assert_eq!(elsewhere(Some(4), Some(0)), Verdict::Reached);
    assert_eq!(elsewhere(Some(8), None), Verdict::NotReached);
    assert_eq!(elsewhere(None, Some(8)), Verdict::Blocked);
}

#[test]
fn a_hold_can_name_its_context() {
    let program = || vec![Do::Work, Do::Load(0), Do::StoreNext(0)];
    let named = |context: u32| {
        let hold = Hold {
            context: Some(vec![context]),
            ..hold(spot(0, 1), spot(1, 2))
        };
        run(vec![program(), program()], vec![hold]).1.verdict()
    };
    assert_eq!(named(0), Verdict::Reached);
    assert_eq!(named(1), Verdict::NotReached);
}

/// Two contexts that would both be held at one place: the second passes while the first is held.
#[test]
fn one_is_held_at_a_time() {
    let program = || vec![Do::Work, Do::Load(0), Do::StoreNext(0)];
    let mut toy = Toy::new(vec![program(), program()]);
    toy.is_one_program = true;
    let here = |operation| spot(0, operation);
    let mut directed = Directed::new(vec![hold(here(2), here(2))]);
    drive(&mut toy, &mut directed, LIMITS, &mut |_, _| {});
    assert_eq!(directed.verdict(), Verdict::Reached);
    assert_eq!(toy.cells[0], 1, "an update is lost");
}
