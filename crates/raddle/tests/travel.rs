//! Going to and fro in a recorded run: every moment is the same, from whichever side it is reached.

use std::collections::BTreeMap;

use raddle_explore::Replayer;
use raddle_sched::travel::{Direction, Halted, Stops, Travel, Watched};
use raddle_stdx::Prng;
use raddle_testkit::{compile_test_program, gdb, recordings, told_in};
use raddle_trace::{Enveloped as _, Recording};
use raddle_world::World as _;
use tempfile::TempDir;

/// A recording of the marathon.
fn recorded(rounds: &str) -> (TempDir, Recording) {
    let folder = TempDir::new().expect("a folder");
    let flags = ["-g", "-O0", "-pthread"];
    compile_test_program(folder.path(), "explore/marathon.c", &flags);
    let options = [
        "explore",
        "--schedules",
        "1",
        "--explain-time",
        "1",
        "--until-found",
    ];
    let mut arguments = options.to_vec();
    arguments.extend(["--", "./marathon", rounds]);
    let (code, text) = told_in(folder.path(), &arguments);
    assert_eq!(code, 1, "{text}");
    let path = recordings(folder.path()).remove(0);
    let text = std::fs::read_to_string(path).expect("a recording");
    (folder, Recording::parse(&text).expect("a recording"))
}

fn travel(recording: &Recording) -> Travel<Replayer<'_>> {
    let Ok(run) = Replayer::start(recording, None) else {
        panic!("it starts");
    };
    Travel::new(run)
}

/// What can be told of a moment.
fn state(travel: &mut Travel<Replayer<'_>>) -> (u64, u64, u64) {
    let now = travel.now();
    let world = travel.world_mut();
    (now, world.run_digest(), world.state_digest())
}

#[test]
fn a_moment_is_the_same_from_every_side() {
    let (_folder, recording) = recorded("8000");
    let mut there = travel(&recording);
    let end = there.end();
    assert!(end > 100_000, "checkpoints are needed: {end}");
    // Each moment is reached forwards first, by a journey of its own.
    let mut random = Prng::new(1);
    let moments: Vec<u64> = (0..12).map(|_| random.below(end)).collect();
    let mut known = BTreeMap::new();
    for moment in &moments {
        let mut straight = travel(&recording);
        straight.go_to(*moment);
        known.insert(*moment, state(&mut straight));
    }
    for _ in 0..40 {
        let index = usize::try_from(random.below(12)).expect("few");
        let moment = moments[index];
        there.go_to(moment);
        assert_eq!(state(&mut there), known[&moment]);
    }
    there.go_to(end);
    let last = state(&mut there);
    there.go_to(0);
    there.go_to(end);
    assert_eq!(state(&mut there), last);
}

#[test]
fn steps_back_undo_steps_and_writes_are_found_from_behind() {
    let (_folder, recording) = recorded("4000");
    let mut travel = travel(&recording);
    travel.go_to(travel.end() - 40_000);
    let who = travel.current();
    let mut before = Vec::new();
    for _ in 0..20 {
        before.push(state(&mut travel));
        assert_eq!(travel.step(who, Direction::Forward), Halted::Stepped(who));
    }
    while let Some(known) = before.pop() {
        assert_eq!(travel.step(who, Direction::Backward), Halted::Stepped(who));
        assert_eq!(state(&mut travel), known);
    }
    let symbols = travel.world_mut().symbols(who).expect("names");
    let counted = symbols
        .modules()
        .iter()
        .find_map(|mapping| {
            let found = mapping.module.debug_info()?.variables_named("counted");
            Some(found.first()?.address.0.wrapping_add(mapping.bias))
        })
        .expect("the variable");
    let watched = |addr| Stops {
        watched: [Watched {
            addr,
            len: 8,
            reads: false,
            writes: true,
        }]
        .into(),
        ..Stops::default()
    };
    travel.go_to(travel.end());
    for addr in [counted + 8, counted] {
        let last = travel.find(Direction::Backward, &watched(addr), &mut |_, _| true);
        let last = last.expect("it was written");
        travel.go_to(last.before());
        // The next write after the moment before is this one.
        let next = travel.find(Direction::Forward, &watched(addr), &mut |_, _| true);
        assert_eq!(next, Some(last));
        travel.go_to(last.at);
        let later = travel.find(Direction::Forward, &watched(addr), &mut |_, _| true);
        assert_eq!(later, None);
        travel.go_to(travel.end());
    }
}

#[test]
fn threads_keep_their_numbers_in_gdb_when_it_goes_back() {
    let (folder, _) = recorded("100");
    let recording = recordings(folder.path()).remove(0);
    let text = gdb::debug(
        folder.path(),
        (&["replay"], &[&recording.to_string_lossy()]),
        &["-ex", "set sysroot /", "marathon"],
        &[
            "break count",
            "continue",
            "continue",
            "echo at the second\\n",
            "info threads",
            "delete",
            "reverse-continue",
            "echo at the beginning\\n",
            "info threads",
            "break count",
            "continue",
            "continue",
            "echo at the second again\\n",
            "info threads",
        ],
    );
    let part = |title: &str| {
        let (_, rest) = text.split_once(&format!("{title}\n")).expect("the title");
        let rows = rest.lines().skip(1).take(3);
        rows.map(|row| row.chars().take(30).collect::<String>())
            .collect::<Vec<_>>()
    };
    let second = part("at the second");
    assert!(second[2].starts_with("* 3 "), "{text}");
    assert_eq!(part("at the second again"), second, "{text}");
    assert!(text.contains("thread 3, not begun"), "{text}");
}
