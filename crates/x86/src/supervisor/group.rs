//! Which blocks may link to each other: those of one view of memory.
//!
//! Kernels map their own half of the address space alike for everybody, so that all code there is one group;
//! other code belongs to the address space (the root of its page tables) and the privilege level.

use crate::cache::GroupKey;
use crate::engine::Observe;
use crate::paging::Controls;

/// Privileged code in the upper half.
const KERNEL: u64 = 1;
/// Bits beside the root, which is page-aligned.
const OWN: u64 = 2;
const USER: u64 = 4;
const ROOT: u64 = !0xFFF;

/// The group of the code at `pc`.
pub(super) fn of(controls: Controls, pc: u64, is_user: bool, observe: Observe) -> GroupKey {
    let layout = if is_user {
        controls.root() | OWN | USER
    } else if pc >> 63 != 0 {
        KERNEL
    } else {
        controls.root() | OWN
    };
    GroupKey { layout, observe }
}

/// The root of the page tables to look a page of the group up in.
pub(super) fn root(key: GroupKey, current: Controls) -> u64 {
    if key.layout & OWN == 0 {
        current.root()
    } else {
        key.layout & ROOT
    }
}

pub(super) fn is_user(key: GroupKey) -> bool {
    key.layout & USER != 0
}
