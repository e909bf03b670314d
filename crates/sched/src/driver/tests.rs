//! Tests of the loop and of all schedulers on a toy world.

use raddle_trace::{Limits, Schedule};
use raddle_world::World;

use crate::toy::{Do, Toy};
use crate::{
    DelayBounded, Drive, End, Follow, Pct, Pos, Profile, RandomWalk, ReadsFrom, Scheduler, Urw,
    drive,
};

const LIMITS: Limits = Limits {
    patience: 50,
    steps: 10_000,
};

fn run(toy: &Toy, scheduler: &mut dyn Scheduler) -> Drive {
    let mut world = toy.clone();
    drive(&mut world, scheduler, LIMITS, &mut |_, _| {})
}

/// Two increments that are not atomic, and a third context that looks once.
fn lost_update() -> Toy {
    let increment = vec![Do::Work, Do::Load(0), Do::StoreNext(0), Do::Set(1)];
    let check = vec![
        Do::SpinOn(1),
        Do::Work,
        Do::Work,
        Do::Work,
        Do::FailIf([1, 1]),
    ];
    Toy::new(vec![increment.clone(), increment, check])
}

fn deadlock() -> Toy {
    let a = vec![Do::Lock(0), Do::Lock(1), Do::Unlock(1), Do::Unlock(0)];
    let b = vec![Do::Lock(1), Do::Lock(0), Do::Unlock(0), Do::Unlock(1)];
    Toy::new(vec![a, b])
}

fn schedulers(seed: u64, profile: &Profile) -> Vec<Box<dyn Scheduler>> {
    vec![
        Box::new(RandomWalk::new(seed, profile)),
        Box::new(Pct::new(seed, 3, profile)),
        Box::new(Pos::new(seed)),
        Box::new(Urw::new(seed, profile, Vec::new())),
        Box::new(ReadsFrom::new(seed, Vec::new())),
    ]
}

fn profile(toy: &Toy) -> Profile {
    let mut world = toy.clone();
    let mut scheduler = DelayBounded::new(Vec::new());
    let driven = drive(&mut world, &mut scheduler, LIMITS, &mut |_, _| {});
    driven.profile(&world)
}

#[test]
fn the_default_order_has_no_deviations() {
    let driven = run(&deadlock(), &mut Follow::new(&Schedule::default()));
    assert_eq!(driven.end, End::Exited { status: 0 });
    assert!(driven.schedule.is_empty());
}

#[test]
fn every_scheduler_finds_the_deadlock_and_its_replay_is_the_same() {
    let toy = deadlock();
    let profile = profile(&toy);
    for index in 0..schedulers(0, &profile).len() {
        let found = (0..200).find_map(|seed| {
            let mut scheduler = schedulers(seed, &profile).remove(index);
            let driven = run(&toy, &mut *scheduler);
            (driven.end == End::Stuck).then_some(driven)
        });
        let found = found.unwrap_or_else(|| panic!("scheduler {index} missed it 200 times"));
        let mut follow = Follow::new(&found.schedule);
        let again = run(&toy, &mut follow);
        assert_eq!(follow.missed(), 0);
        assert_eq!(again.end, found.end);
        assert_eq!(again.schedule, found.schedule);
        assert_eq!(again.last, found.last);
    }
}

#[test]
fn single_delays_find_the_deadlock() {
    let toy = deadlock();
    let k = profile(&toy).decisions;
    let stuck = (0..k)
        .filter_map(|number| DelayBounded::nth(number, k))
        .any(|mut scheduler| run(&toy, &mut scheduler).end == End::Stuck);
    assert!(stuck);
}

#[test]
fn spinning_contexts_do_not_stop_the_others() {
    let toy = lost_update();
    let profile = profile(&toy);
    for seed in 0..100 {
        for mut scheduler in schedulers(seed, &profile) {
            let end = run(&toy, &mut *scheduler).end;
            assert!(
                matches!(end, End::Exited { .. }),
                "{end:?} with seed {seed}"
            );
        }
    }
}

#[test]
fn a_loop_that_nobody_ends_is_a_hang() {
    let toy = Toy::new(vec![vec![Do::SpinOn(0)], vec![Do::Work]]);
    let driven = run(&toy, &mut RandomWalk::new(1, &Profile::default()));
    assert_eq!(driven.end, End::Hanging);
}

/// PCT hits a bug of depth 2 among n contexts and k decisions with a probability of at least 1/(n k).
#[test]
fn pct_keeps_its_promise() {
    let check = vec![Do::Work, Do::FailIf([1, 0])];
    let setter = vec![
        Do::Work,
        Do::Work,
        Do::Set(0),
        Do::Set(1),
        Do::Work,
        Do::Work,
    ];
    let toy = Toy::new(vec![setter, check]);
    let profile = profile(&toy);
    let runs = 4000;
    let hits = (0..runs)
        .filter(|seed| {
            run(&toy, &mut Pct::new(*seed, 2, &profile)).end == End::Exited { status: 256 }
        })
        .count();
    let contexts = toy.contexts().iter().count();
    let bound = runs / (u64::try_from(contexts).unwrap() * profile.decisions);
    // Four standard deviations below the bound: a miss by chance is rarer than 1 in 30,000.
    let least = bound - 4 * bound.isqrt();
    assert!(
        u64::try_from(hits).unwrap() >= least,
        "{hits} hits in {runs} runs, promised {bound}"
    );
}
