//! Sets of semaphores.

use std::collections::BTreeMap;

use super::permission::Permission;
use super::registry::Object;
use super::semaphore_key;
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::Pid;

/// The highest value (`SEMVMX`).
pub(crate) const VALUE_MAX: i32 = 32_767;

/// One set.
#[derive(Debug, Clone)]
pub(crate) struct SemaphoreSet {
    pub(crate) permission: Permission,
    pub(crate) values: Vec<i32>,
    /// Who changed each last.
    pub(crate) last: Vec<u32>,
    /// Seconds since 1970.
    pub(crate) used: u64,
    pub(crate) changed: u64,
}

impl Object for SemaphoreSet {
    fn permission(&self) -> &Permission {
        &self.permission
    }

    fn permission_mut(&mut self) -> &mut Permission {
        &mut self.permission
    }
}

/// One element of semop(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) index: u16,
    pub(crate) change: i16,
    pub(crate) flags: u32,
}

/// `SEM_UNDO`.
pub(crate) const UNDO: u32 = 0o10_000;

/// What each process has changed with SEM_UNDO, by set and semaphore: taken back when it ends.
pub(crate) type Undo = BTreeMap<(Pid, i32), BTreeMap<u16, i32>>;

/// Why operations are not carried out now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Errno(Errno),
    /// This one must wait.
    Waits(Operation),
}

impl SemaphoreSet {
    /// The values after all operations, done in their order; nothing is changed.
    pub(crate) fn after(&self, operations: &[Operation]) -> Result<Vec<i32>, Refusal> {
        let mut values = self.values.clone();
        for operation in operations {
            let value = values
                .get_mut(usize::from(operation.index))
                .ok_or(Refusal::Errno(Errno::EFBIG))?;
            let new = *value + i32::from(operation.change);
            if new < 0 || (operation.change == 0 && *value != 0) {
                return Err(Refusal::Waits(*operation));
            }
            if new > VALUE_MAX {
                return Err(Refusal::Errno(Errno::ERANGE));
            }
            *value = new;
        }
        Ok(values)
    }
}

/// A process has ended: what it did with SEM_UNDO is taken back as far as that is possible.
pub(crate) fn undo_all(kernel: &mut Kernel, pid: Pid) {
    let own: Vec<(Pid, i32)> = kernel
        .state
        .ipc
        .undo
        .range((pid, i32::MIN)..=(pid, i32::MAX))
        .map(|(key, _)| *key)
        .collect();
    for key in own {
        let Some(changes) = kernel.state.ipc.undo.remove(&key) else {
            continue;
        };
        let Ok(set) = kernel.state.ipc.semaphores.get_mut(key.1) else {
            continue;
        };
        for (index, change) in changes {
            if let Some(value) = set.values.get_mut(usize::from(index)) {
                *value = (*value + change).clamp(0, VALUE_MAX);
                set.last[usize::from(index)] = pid.0;
            }
        }
        kernel.wake(semaphore_key(key.1));
    }
}
