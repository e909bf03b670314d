//! Critical sections and allocations that begin and end inside a region.

use super::log::Step::{self, Call, Plain, Release, Take, Write};
use super::log::{apply, deadlock, line};
use super::*;
use crate::analysis::model::{LockHow, Shelter};
use crate::analysis::summary::Summary;

#[test]
fn a_section_that_only_reads_does_not_end_a_region() {
    let function = line(vec![Take(1), Take(2), Plain(read()), Release(2), Take(3)]);
    let plan = deadlock(&function, 4).unwrap();
    assert_eq!((plan.points, plan.acquires), (vec![0], vec![0]));
    // At a site inside of it, its lock is given back like any other.
    let plan = deadlock(&line(vec![Take(1), Take(2), Take(3), Release(2)]), 2).unwrap();
    assert_eq!(plan.acquires, [0, 1]);
}

#[test]
fn a_release_without_its_acquisition_ends_the_region() {
    let steps = |before: Step| vec![before, Take(1), Release(2), Take(3)];
    for before in [Take(2), Plain(read())] {
        let function = line(steps(before));
        let ended = deadlock(&function, 3).map(|plan| plan.acquires);
        let taken_before = function.lock_uses.contains_key(&0);
        // Taken and released in the region, but not in the order of a stack: lock 1 is what is still held.
        let expected = if taken_before {
            Ok(vec![1])
        } else {
            Err(Pruned::NoLockInRegion)
        };
        assert_eq!(ended, expected);
    }
}

#[test]
fn a_release_after_a_release_or_a_trylock_is_not_balanced() {
    let twice = line(vec![Take(1), Take(2), Release(2), Release(2), Take(3)]);
    assert_eq!(deadlock(&twice, 4).unwrap_err(), Pruned::NoLockInRegion);
    let mut tried = line(vec![
        Take(1),
        Take(2),
        Release(2),
        Take(2),
        Release(2),
        Take(3),
    ]);
    assert_eq!(deadlock(&tried, 5).unwrap().acquires, [0]);
    if let Some(using) = tried.lock_uses.get_mut(&3) {
        using.how = LockHow::Tries;
    }
    assert_eq!(deadlock(&tried, 5).unwrap_err(), Pruned::NoLockInRegion);
}

#[test]
fn what_was_written_in_a_section_has_been_seen() {
    // Lock 2 alone shelters the write, and it is released.
    let function = line(vec![Take(1), Take(2), Write(&[2]), Release(2), Take(3)]);
    assert_eq!(deadlock(&function, 4).unwrap_err(), Pruned::NoLockInRegion);
    // Lock 1 shelters it as well, and is kept.
    let function = line(vec![Take(1), Take(2), Write(&[1, 2]), Release(2), Take(3)]);
    assert_eq!(deadlock(&function, 4).unwrap().logs, [2]);
}

#[test]
fn what_the_user_vouches_for_may_stand_before_a_section_but_not_in_it() {
    for (write, section, is_kept) in [(1, 2, true), (2, 1, false)] {
        let mut function = line(vec![
            Take(1),
            Plain(read()),
            Plain(read()),
            Release(9),
            Take(3),
        ]);
        let second = line(vec![Take(9)]);
        function.insts[section] = second.insts[0].clone();
        function
            .lock_uses
            .insert(section, second.lock_uses[&0].clone());
        function.objects.insert(section, second.objects[&0].clone());
        function.shelters.push(Shelter::Anywhere);
        function.insts[write].effect = Effect::LoggedWrite { shelter: 0 };
        function.log_entries.insert(write, 1);
        let plan = deadlock(&function, 4);
        assert_eq!(plan.is_ok_and(|plan| plan.acquires == [0]), is_kept);
    }
}

#[test]
fn a_section_on_one_path_only_is_not_balanced() {
    // Entry takes 1 and 2; one arm releases 2; both meet at the site.
    let straight = line(vec![Take(1), Take(2), Release(2), Take(3)]);
    let mut function = function(vec![
        (
            vec![inst(LOCK, &[]), inst(LOCK, &[]), read(), choice(2)],
            vec![1, 2],
        ),
        (vec![inst(Effect::Release, &[]), go()], vec![2]),
        (vec![inst(LOCK, &[]), go()], vec![]),
    ]);
    for (from, to) in [(0, 0), (1, 1), (2, 4), (3, 6)] {
        function
            .lock_uses
            .insert(to, straight.lock_uses[&from].clone());
        function.objects.insert(to, straight.objects[&from].clone());
    }
    // Behind the release nothing is left to give back; on the other path both locks are.
    let plan = deadlock(&function, 6).unwrap();
    assert_eq!(plan.acquires, [0, 1]);
    assert!(
        !plan.useless.is_empty() || plan.points.len() > 1,
        "{plan:?}"
    );
}

#[test]
fn another_object_of_the_same_expression_is_another() {
    let mut function = line(vec![Take(1), Take(2), Plain(read()), Release(2), Take(3)]);
    // The pointer is read anew between the two.
    if let Some(object) = function.objects.get_mut(&3) {
        object.made_of.insert(2);
    }
    assert_eq!(deadlock(&function, 4).unwrap_err(), Pruned::NoLockInRegion);
}

#[test]
fn functions_with_balanced_sections_are_harmless() {
    let (bodies, summaries) = apply(vec![
        line(vec![Take(2), Plain(read()), Release(2)]),
        line(vec![Take(1), Call(0), Take(3)]),
        line(vec![Take(2), Plain(read())]),
        line(vec![Release(2)]),
    ]);
    assert_eq!(summaries[0], Summary::Harmless);
    assert!(matches!(&summaries[2], Summary::Logged(log) if log.takes_lock));
    assert_eq!(summaries[3], Summary::Destroys);
    assert_eq!(deadlock(&bodies[1].function, 2).unwrap().acquires, [0]);
}
