//! Tests of the loop and of all schedulers on a toy world.

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_trace::{Limits, Schedule};
use raddle_world::{Context, ContextId, Site};

use crate::toy::{Do, Toy};
use crate::{
    Classes, DelayBounded, Drive, End, Focused, Follow, Given, Pct, Pos, PreemptionBounded,
    Profile, RandomWalk, ReadsFrom, Scheduler, Urw, View, Wish, drive,
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
        Box::new(Classes::new(seed)),
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

/// A context that counts in memory while it waits makes progress, though its registers stay the same.
#[test]
fn polling_a_bounded_number_of_times_can_happen_between_any_two_writes() {
    let toy = Toy::new(vec![
        vec![Do::Set(1), Do::Set(0)],
        vec![Do::SpinOn(1), Do::Poll(0, 4)],
    ]);
    let profile = profile(&toy);
    for index in 0..schedulers(0, &profile).len() {
        let longest = (0..300).map(|seed| {
            let mut world = toy.clone();
            let mut scheduler = schedulers(seed, &profile).remove(index);
            let driven = drive(&mut world, &mut *scheduler, LIMITS, &mut |_, _| {});
            assert_eq!(driven.end, End::Exited { status: 0 });
            world.looks[1]
        });
        assert_eq!(longest.max(), Some(4), "scheduler {index}");
    }
    let looks = (0..profile.decisions).filter_map(|number| {
        let mut world = toy.clone();
        let mut scheduler = DelayBounded::nth(number, profile.decisions)?;
        drive(&mut world, &mut scheduler, LIMITS, &mut |_, _| {});
        Some(world.looks[1])
    });
    assert_eq!(looks.max(), Some(4), "single delays");
}

/// Waiting costs a few steps, whether the loop yields or not.
#[test]
fn true_waiting_is_cheap() {
    for wait in [Do::SpinOn(0), Do::YieldOn(0)] {
        let mut work = vec![Do::Work; 200];
        work.push(Do::Set(0));
        let toy = Toy::new(vec![vec![wait], work]);
        let profile = profile(&toy);
        for seed in 0..50 {
            for mut scheduler in schedulers(seed, &profile) {
                let mut world = toy.clone();
                let driven = drive(&mut world, &mut *scheduler, LIMITS, &mut |_, _| {});
                assert_eq!(driven.end, End::Exited { status: 0 });
                assert!(driven.steps < 230, "{wait:?}: {} steps", driven.steps);
                assert!(world.rehearsals < 5, "{wait:?}: {}", world.rehearsals);
            }
        }
    }
}

/// Points that a scheduler does not care about can be passed without asking it: the schedule is the same.
#[test]
fn passing_points_changes_nothing() {
    let work = |cell: usize| {
        let mut program = vec![Do::Work; 40];
        program.extend([Do::Load(cell), Do::StoreNext(cell), Do::Lock(0)]);
        program.extend([Do::Work, Do::Load(1), Do::StoreNext(1), Do::Unlock(0)]);
        program.extend([Do::Work; 30]);
        program
    };
    let mut toy = Toy::new(vec![work(0), work(1), work(0)]);
    toy.has_points = true;
    let profile = profile(&toy);
    let interest = [42, 1 << 32 | 45].map(Site::first).to_vec();
    let mut lean = toy.clone();
    lean.passes = true;
    for seed in 0..60 {
        let make = || -> Vec<Box<dyn Scheduler>> {
            let delays = DelayBounded::nth(profile.decisions + 7 * seed, profile.decisions);
            vec![
                Box::new(delays.expect("there are as many")),
                Box::new(Pct::new(seed, 2, &profile)),
                Box::new(Pct::new(seed, 4, &profile)),
                Box::new(RandomWalk::new(seed, &profile)),
                Box::new(Urw::new(seed, &profile, interest.clone())),
                Box::new(Urw::new(seed, &profile, Vec::new())),
                Box::new(Pos::new(seed)),
            ]
        };
        for (mut full, mut passing) in make().into_iter().zip(make()) {
            let (asked, passed) = (run(&toy, &mut *full), run(&lean, &mut *passing));
            assert_eq!(asked.schedule, passed.schedule, "seed {seed}");
            assert_eq!(asked.decisions, passed.decisions);
            assert_eq!(asked.stops, passed.stops);
            assert_eq!(asked.end, passed.end);
        }
    }
    let mut follow = Pct::new(1, 2, &profile);
    let trail = run(&lean, &mut follow).trail.len();
    assert!(trail < 20, "{trail} questions were asked");
}

#[test]
fn a_loop_that_nobody_ends_is_a_hang() {
    let toy = Toy::new(vec![vec![Do::SpinOn(0)], vec![Do::Work]]);
    let driven = run(&toy, &mut RandomWalk::new(1, &Profile::default()));
    assert_eq!(driven.end, End::Hanging);
    assert!(driven.steps < LIMITS.steps / 2, "{} steps", driven.steps);
}

#[test]
fn a_loop_that_somebody_may_end_goes_on_to_the_limit() {
    let toy = Toy::new(vec![vec![Do::SpinOn(0)], vec![Do::Poll(1, u64::MAX)]]);
    let driven = run(&toy, &mut RandomWalk::new(1, &Profile::default()));
    assert_eq!(driven.end, End::Hanging);
    assert!(driven.steps >= LIMITS.steps, "{} steps", driven.steps);
}

/// Two contexts that count a cell up in turns, with other work between: to reach `count`, they must alternate.
/// That takes `count - 1` ordering constraints: a bug of depth `count - 1`.
fn handoffs(count: u64) -> Toy {
    let program = |parity: u64| {
        let turns = (0..count).filter(|turn| turn % 2 == parity);
        turns
            .flat_map(|turn| [Do::Work, Do::Advance(0, turn), Do::Work])
            .collect()
    };
    Toy::new(vec![program(0), program(1)])
}

/// PCT hits a bug of depth d among n contexts and k decisions with a probability of at least 1/(n k^(d-1)).
#[test]
fn pct_keeps_its_promise() {
    for (depth, runs) in [(1, 400), (2, 4_000), (3, 40_000)] {
        let toy = handoffs(depth + 1);
        let profile = profile(&toy);
        let mut hits = 0;
        for seed in 0..runs {
            let mut world = toy.clone();
            let mut scheduler = Pct::new(seed, depth, &profile);
            drive(&mut world, &mut scheduler, LIMITS, &mut |_, _| {});
            hits += u64::from(world.cells[0] == depth + 1);
        }
        let contexts = 2;
        let power = profile.decisions.pow(u32::try_from(depth - 1).unwrap());
        let promised = runs / (contexts * power);
        // Four standard deviations below the promise: a miss by chance is rarer than 1 in 30,000.
        let least = promised.saturating_sub(4 * promised.isqrt());
        assert!(promised >= 20, "too few runs to tell: {promised}");
        assert!(
            hits >= least,
            "depth {depth}: {hits} hits in {runs} runs, promised {promised} (k = {})",
            profile.decisions
        );
    }
}

/// Preemption bounding is systematic: a bug that needs one preemption is always found.
#[test]
fn single_preemptions_find_a_bug_of_depth_two() {
    let toy = handoffs(3);
    let profile = profile(&toy);
    let found = (0..PreemptionBounded::singles(&profile)).any(|number| {
        let mut world = toy.clone();
        let mut scheduler = PreemptionBounded::nth(number, &profile).expect("there are so many");
        drive(&mut world, &mut scheduler, LIMITS, &mut |_, _| {});
        world.cells[0] == 3
    });
    assert!(found);
}

/// A wish for a pair of write and read that plain sampling seldom shows is granted at once.
#[test]
fn wishes_are_granted() {
    let reader = vec![Do::Work, Do::Load(0), Do::StoreNext(1)];
    let writer = vec![Do::Work, Do::Set(0), Do::StoreNext(0), Do::Work];
    let toy = Toy::new(vec![reader, writer]);
    let place = |context: u64, operation: u64| Site::first(1 + (context << 32 | operation));
    let wish = Wish {
        pair: (place(1, 1), place(0, 1)),
        is_wanted: true,
    };
    for seed in 0..50 {
        let driven = run(&toy, &mut ReadsFrom::new(seed, vec![wish]));
        assert!(driven.pairs.contains(&wish.pair), "seed {seed}: {driven:?}");
    }
}

/// Decisions are made only inside the focus.
#[test]
fn focus_leaves_everything_else_alone() {
    let toy = handoffs(4);
    let ranges = std::iter::once(Site::first(5)..Site::first(6)).collect();
    let mut nowhere = Focused::new(RandomWalk::new(3, &Profile::default()), ranges);
    let driven = run(&toy, &mut nowhere);
    assert_eq!(driven.schedule.len(), 0);
}

/// Wants everybody to stop before the next step, always.
struct Standstill;

impl Scheduler for Standstill {
    fn pick(&mut self, view: &crate::View<'_>) -> raddle_world::ContextId {
        view.successor(view.current)
    }

    fn given(&mut self) -> Option<&mut dyn Given> {
        Some(self)
    }

    fn bound(&self, _: &raddle_world::Context) -> u64 {
        0
    }
}

impl Given for Standstill {
    fn tears(&mut self, _: &raddle_world::Context) -> bool {
        false
    }
}

#[test]
fn a_scheduler_that_lets_nobody_go_on_does_not_stop_the_world() {
    let driven = run(&lost_update(), &mut Standstill);
    assert!(matches!(driven.end, End::Exited { .. }));
    let again = run(&lost_update(), &mut Follow::new(&driven.schedule));
    assert_eq!(again.end, driven.end);
}

/// Chooses anybody, and often wants to be asked again before the chosen one has made a step.
struct Nervous(Prng);

impl Scheduler for Nervous {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        // Half of the time nothing is to be written down.
        if self.0.chance(1, 2) {
            return view.default;
        }
        let among = to_u64(view.runnable.len());
        view.runnable[to_usize(self.0.below(among))]
    }

    fn bound(&self, who: &Context) -> u64 {
        who.steps % 3
    }
}

/// A context that the default order has left may be stopped again before it makes a step: what happens then must not
/// be taken for what happened the first time.
#[test]
fn two_stops_at_one_position_are_told_apart_in_a_replay() {
    let limits = Limits {
        patience: 3,
        steps: 10_000,
    };
    let work = [Do::Work, Do::Load(0), Do::StoreNext(0), Do::Work].repeat(4);
    let toy = Toy::new(vec![work.clone(), work.clone(), work]);
    for seed in 0..300 {
        let mut world = toy.clone();
        let mut nervous = Nervous(Prng::new(seed));
        let driven = drive(&mut world, &mut nervous, limits, &mut |_, _| {});
        let mut again = toy.clone();
        let mut follow = Follow::new(&driven.schedule);
        let followed = drive(&mut again, &mut follow, limits, &mut |_, _| {});
        assert_eq!(follow.missed(), 0, "seed {seed}");
        assert_eq!(again.cells, world.cells, "seed {seed}");
        assert_eq!(followed.schedule, driven.schedule, "seed {seed}");
    }
}
