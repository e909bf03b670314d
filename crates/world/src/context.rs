//! Contexts: whatever can be chosen to run next. Threads, processes, virtual CPUs, interrupt handlers.

use std::fmt;
use std::sync::Arc;

use raddle_stdx::width::{low_u32, to_u64};
use serde::{Deserialize, Serialize};

/// A small handle for a context, valid in one world. Contexts are numbered in the order of their creation,
/// which depends on the schedule; what is stable across schedules is the [`Context::path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContextId(pub u32);

/// One context as schedulers and reports see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Creation path: `[0, 2, 1]` is the second child of the third child of the first context.
    pub path: Arc<[u32]>,
    pub parent: Option<ContextId>,
    /// How many children it has created; the next child's last path element.
    pub children: u32,
    /// Name given by the program, or the program's own name.
    pub name: Arc<str>,
    liveness: Liveness,
    /// Steps this context has made.
    pub steps: u64,
}

impl Context {
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    pub fn is_runnable(&self) -> bool {
        self.liveness == Liveness::Runnable
    }
}

/// Whether a context can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Liveness {
    Runnable,
    Blocked(WaitReason),
    Done,
}

/// What a blocked context waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// A futex word, by its address in the waiter's address space.
    Futex { addr: u64 },
    /// Readiness or data of descriptors.
    Io { descriptors: Vec<i32> },
    /// A child process.
    Child,
    /// Only the passing of time.
    Sleep,
    /// A signal.
    Signal,
    /// The end of a borrowed address space (vfork).
    Vfork,
    /// A file lock.
    FileLock,
    /// An interrupt (HLT).
    Interrupt,
}

/// All contexts of a world, dead ones included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextTable {
    contexts: Vec<Context>,
    /// Those that can be chosen, ascending: asked for at every stop, changed rarely.
    runnable: Vec<ContextId>,
}

impl ContextTable {
    /// Adds a child of `parent` (or the first context) and gives its handle.
    pub fn create(&mut self, parent: Option<ContextId>, name: Arc<str>) -> ContextId {
        let path: Arc<[u32]> = match parent {
            None => Arc::from([low_u32(to_u64(
                self.contexts
                    .iter()
                    .filter(|context| context.parent.is_none())
                    .count(),
            ))]),
            Some(parent) => {
                let parent = &mut self.contexts[parent.0 as usize];
                let path = parent
                    .path
                    .iter()
                    .copied()
                    .chain([parent.children])
                    .collect();
                parent.children += 1;
                path
            }
        };
        self.add(path, parent, name)
    }

    fn add(&mut self, path: Arc<[u32]>, parent: Option<ContextId>, name: Arc<str>) -> ContextId {
        let id = ContextId(low_u32(to_u64(self.contexts.len())));
        self.contexts.push(Context {
            path,
            parent,
            children: 0,
            name,
            liveness: Liveness::Runnable,
            steps: 0,
        });
        self.runnable.push(id);
        id
    }

    /// Adds a child of `parent` whose last path element is `element` and not the order of creation: for contexts that
    /// are the same in every schedule, such as an interrupt of a processor.
    pub fn create_at(&mut self, parent: ContextId, element: u32, name: Arc<str>) -> ContextId {
        let path = &self.contexts[parent.0 as usize].path;
        let path = path.iter().copied().chain([element]).collect();
        self.add(path, Some(parent), name)
    }

    pub fn get(&self, id: ContextId) -> &Context {
        &self.contexts[id.0 as usize]
    }

    /// The context, if it was created yet.
    pub fn find(&self, id: ContextId) -> Option<&Context> {
        self.contexts.get(id.0 as usize)
    }

    pub fn get_mut(&mut self, id: ContextId) -> &mut Context {
        &mut self.contexts[id.0 as usize]
    }

    /// All contexts in the order of creation.
    pub fn iter(&self) -> impl Iterator<Item = (ContextId, &Context)> {
        (0..).map(ContextId).zip(self.contexts.iter())
    }

    /// How many contexts there are.
    pub fn len(&self) -> usize {
        self.contexts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty()
    }

    /// Says whether a context can be chosen from now on.
    pub fn set_liveness(&mut self, id: ContextId, liveness: Liveness) {
        let context = &mut self.contexts[id.0 as usize];
        let could_run = context.is_runnable();
        context.liveness = liveness;
        let can_run = context.is_runnable();
        if can_run == could_run {
            return;
        }
        match self.runnable.binary_search(&id) {
            Ok(at) => drop(self.runnable.remove(at)),
            Err(at) => self.runnable.insert(at, id),
        }
    }

    /// The contexts that can be chosen now, in the order of creation.
    pub fn runnable(&self) -> &[ContextId] {
        &self.runnable
    }
}

/// The context after `last` in a list in the order of creation, round the circle; the first if there was no last one.
pub fn successor(among: &[ContextId], last: Option<ContextId>) -> Option<ContextId> {
    let behind = |who: &&ContextId| last.is_none_or(|last| **who > last);
    among.iter().find(behind).or(among.first()).copied()
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: Vec<String> = self.path.iter().map(u32::to_string).collect();
        write!(f, "{} `{}`", path.join("."), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runnable_contexts_are_listed_in_the_order_of_creation() {
        let mut table = ContextTable::default();
        let main = table.create(None, "main".into());
        let child = table.create(Some(main), "child".into());
        table.set_liveness(main, Liveness::Blocked(WaitReason::Sleep));
        table.set_liveness(main, Liveness::Blocked(WaitReason::Child));
        assert_eq!(table.runnable(), [child]);
        table.set_liveness(main, Liveness::Runnable);
        table.set_liveness(main, Liveness::Runnable);
        assert_eq!(table.runnable(), [main, child]);
        table.set_liveness(child, Liveness::Done);
        assert_eq!(table.runnable(), [main]);
    }

    #[test]
    fn successors_go_round_the_circle() {
        let among = [ContextId(1), ContextId(4)];
        let next = |last: u32| successor(&among, Some(ContextId(last)));
        assert_eq!([0, 1, 4].map(next), [1, 4, 1].map(|id| Some(ContextId(id))));
        assert_eq!(successor(&among, None), Some(ContextId(1)));
        assert_eq!(successor(&[], None), None);
    }

    #[test]
    fn paths_name_the_creator_and_the_order() {
        let mut table = ContextTable::default();
        let main = table.create(None, "main".into());
        let first = table.create(Some(main), "a".into());
        let second = table.create(Some(main), "b".into());
        let nested = table.create(Some(second), "c".into());
        assert_eq!(&*table.get(first).path, &[0, 0]);
        assert_eq!(&*table.get(nested).path, &[0, 1, 0]);
        assert_eq!(table.get(nested).to_string(), "0.1.0 `c`");
    }
}
