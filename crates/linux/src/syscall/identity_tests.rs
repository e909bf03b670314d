//! Tests of users, permissions and System V objects through their handlers.

use raddle_calls::number;

use super::file_tests::{BUFFER, CLOSE, OPEN, World};
use crate::call::Trouble;
use crate::errno::Errno;
use crate::files::flags::{O_CREAT, O_RDWR};
use crate::files::testkit::TID;

const MKDIR: u32 = number("mkdir");
const CHMOD: u32 = number("chmod");
const CHOWN: u32 = number("chown");
const UNLINK: u32 = number("unlink");
const ACCESS: u32 = number("access");
const SETRESUID: u32 = number("setresuid");
const SETRESGID: u32 = number("setresgid");
const SETGROUPS: u32 = number("setgroups");
const GETGROUPS: u32 = number("getgroups");
const PRCTL: u32 = number("prctl");
const SEMGET: u32 = number("semget");
const SEMOP: u32 = number("semop");
const SEMCTL: u32 = number("semctl");
const SHMGET: u32 = number("shmget");
const SHMAT: u32 = number("shmat");
const SHMDT: u32 = number("shmdt");
const SHMCTL: u32 = number("shmctl");

fn become_user(world: &mut World, id: u64) {
    world.ok(SETGROUPS, &[0, 0]);
    world.ok(SETRESGID, &[id; 3]);
    world.ok(SETRESUID, &[id; 3]);
}

#[test]
fn an_ordinary_user_is_held_by_modes() {
    let mut world = World::new();
    let fd = world.open("secret", O_CREAT | O_RDWR);
    world.ok(CLOSE, &[fd]);
    world.ok_path(CHMOD, "secret", &[0o600]);
    world.ok_path(MKDIR, "free", &[0o777]);
    world.ok_path(CHMOD, "free", &[0o1777]);
    let fd = world.open("free/roots", O_CREAT | O_RDWR);
    world.ok(CLOSE, &[fd]);
    become_user(&mut world, 7);
    assert_eq!(world.errno_path(OPEN, "secret", &[0, 0]), Errno::EACCES);
    assert_eq!(world.errno_path(ACCESS, "secret", &[4]), Errno::EACCES);
    assert_eq!(world.errno_path(MKDIR, "new", &[0o777]), Errno::EACCES);
    assert_eq!(world.errno_path(UNLINK, "free/roots", &[]), Errno::EPERM);
    assert_eq!(world.errno_path(CHMOD, "secret", &[0o666]), Errno::EPERM);
    world.open("free/own", O_CREAT | O_RDWR);
    assert_eq!(world.errno_path(CHOWN, "free/own", &[0, 7]), Errno::EPERM);
    world.ok_path(UNLINK, "free/own", &[]);
}

#[test]
fn groups_are_sorted_and_kept() {
    let mut world = World::new();
    let groups: Vec<u8> = [9_u32, 3, 5]
        .iter()
        .flat_map(|id| id.to_le_bytes())
        .collect();
    world.put(BUFFER, &groups);
    world.ok(SETGROUPS, &[3, BUFFER]);
    assert_eq!(world.ok(GETGROUPS, &[0, 0]), 3);
    assert_eq!(world.errno(GETGROUPS, &[2, BUFFER]), Errno::EINVAL);
    world.ok(GETGROUPS, &[8, BUFFER]);
    let sorted: Vec<u8> = [3_u32, 5, 9]
        .iter()
        .flat_map(|id| id.to_le_bytes())
        .collect();
    assert_eq!(world.get(BUFFER, 12), sorted);
}

#[test]
fn kept_capabilities_let_a_user_change_groups_again() {
    const KEEP: u64 = 8;
    let mut world = World::new();
    world.ok(PRCTL, &[KEEP, 1]);
    world.ok(SETRESUID, &[7; 3]);
    // Kept, but not in force until the program asks for them.
    assert_eq!(world.errno(SETRESGID, &[8; 3]), Errno::EPERM);
    let who = world.kernel.credentials(TID);
    assert_ne!(who.permitted, 0);
    assert_eq!(who.effective, 0);
}

/// One `struct sembuf`.
fn operation(index: u16, change: i16, flags: u16) -> Vec<u8> {
    let mut bytes = index.to_le_bytes().to_vec();
    bytes.extend_from_slice(&change.to_le_bytes());
    bytes.extend_from_slice(&flags.to_le_bytes());
    bytes
}

#[test]
fn semaphore_operations_are_all_or_nothing() {
    const GET_VALUE: u64 = 12;
    const SET_VALUE: u64 = 16;
    let mut world = World::new();
    let id = world.ok(SEMGET, &[0, 2, 0o600]);
    world.ok(SEMCTL, &[id, 0, SET_VALUE, 1]);
    let both = [operation(0, -1, 0), operation(1, -1, 0)].concat();
    world.put(BUFFER, &both);
    assert!(world.blocks(SEMOP, &[id, BUFFER, 2]));
    assert_eq!(world.ok(SEMCTL, &[id, 0, GET_VALUE]), 1);
    world.ok(SEMCTL, &[id, 1, SET_VALUE, 1]);
    world.ok(SEMOP, &[id, BUFFER, 2]);
    assert_eq!(world.ok(SEMCTL, &[id, 0, GET_VALUE]), 0);
    assert!(world.blocks(SEMOP, &[id, BUFFER, 2]));
    world.ok(SEMCTL, &[id, 0, 0]);
    // Removed while a thread waited, and afterwards.
    let retried = world.call_as(TID, SEMOP, &[id, BUFFER, 2], true);
    assert_eq!(retried, Err(Trouble::Errno(Errno::EIDRM)));
    assert_eq!(world.errno(SEMOP, &[id, BUFFER, 2]), Errno::EINVAL);
}

#[test]
fn a_removed_segment_lives_as_long_as_it_is_attached() {
    const REMOVE: u64 = 0;
    const STAT: u64 = 2;
    let mut world = World::new();
    let before = world.kernel.state.files.by_number.len();
    let id = world.ok(SHMGET, &[77, 5000, 0o1600]);
    let addr = world.ok(SHMAT, &[id, 0, 0]);
    world.put(addr + 4096, b"shared");
    let again = world.ok(SHMAT, &[id, 0, 0o10_000]);
    assert_eq!(world.get(again + 4096, 6), b"shared");
    world.ok(SHMCTL, &[id, REMOVE, 0]);
    assert_eq!(world.errno(SHMGET, &[77, 0, 0]), Errno::ENOENT);
    world.ok(SHMDT, &[again]);
    world.ok(SHMCTL, &[id, STAT, BUFFER]);
    let attached = world.get(BUFFER + 88, 8);
    assert_eq!(attached, 1_u64.to_le_bytes());
    world.ok(SHMDT, &[addr]);
    assert_eq!(world.errno(SHMCTL, &[id, STAT, BUFFER]), Errno::EINVAL);
    assert_eq!(world.errno(SHMDT, &[addr]), Errno::EINVAL);
    // Its memory is given back.
    assert_eq!(world.kernel.state.files.by_number.len(), before);
}

#[test]
fn segments_are_for_those_who_may() {
    let mut world = World::new();
    let id = world.ok(SHMGET, &[78, 100, 0o1600]);
    become_user(&mut world, 7);
    assert_eq!(world.errno(SHMAT, &[id, 0, 0]), Errno::EACCES);
    assert_eq!(world.errno(SHMCTL, &[id, 0, 0]), Errno::EPERM);
}
