//! How the told steps of a run depend on each other, and what memory held before and after them.

use std::collections::BTreeMap;

use raddle_report::evidence::Value;
use raddle_report::{Edge, EdgeKind, Word};
use raddle_stdx::width::low_u8;
use raddle_world::{Access, AccessKind, ContextId, EventKind, GRANULE_BYTES, Granule};

/// Sees the events of a run in order; told steps have numbers from 0.
#[derive(Debug, Default)]
pub(crate) struct Weaver {
    edges: Vec<Edge>,
    memory: BTreeMap<Granule, Cell>,
    /// What updates left, as the next one found it.
    results: Vec<(usize, Value)>,
    /// The step that last gave up each lock, or signalled each condition.
    given: BTreeMap<u64, (usize, ContextId)>,
    /// Steps that have arrived at each barrier.
    arrived: BTreeMap<u64, Vec<usize>>,
    /// The last step of each context.
    last: BTreeMap<ContextId, usize>,
    /// Steps that come before the next one of a context.
    coming: BTreeMap<ContextId, Vec<usize>>,
}

/// What was last seen of eight bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// Offset in the granule and value of the last access; nothing if that is not known any more.
    content: Option<(u8, Value)>,
    /// The update whose result is not known yet, with offset and size.
    updated: Option<(usize, u8, u8)>,
    writer: Option<(usize, ContextId)>,
}

impl Weaver {
    /// A step was told, or the last one was replaced by one of the same kind.
    pub(crate) fn step(&mut self, number: usize, context: ContextId) {
        self.last.insert(context, number);
        for from in self.coming.remove(&context).unwrap_or_default() {
            self.add(EdgeKind::HappensBefore, from, number);
        }
    }

    /// What an access that is told as this step found and left.
    pub(crate) fn access(
        &mut self,
        number: usize,
        context: ContextId,
        access: &Access,
    ) -> (Option<Value>, Option<Value>) {
        let cell = self.seen(access);
        let reads = access.how != AccessKind::Write;
        if let Some((writer, by)) = cell.writer
            && reads
            && by != context
        {
            self.add(EdgeKind::ReadsFrom, writer, number);
        }
        let (offset, value) = content_of(access);
        let known = cell.content.filter(|(at, known)| {
            let is_same = value.is_none_or(|value| value.size == known.size);
            *at == offset && is_same
        });
        let before = known.map(|(_, known)| known);
        match access.how {
            AccessKind::Read => (value, value),
            AccessKind::Write => {
                self.written(access, value, None, Some((number, context)));
                (before, value)
            }
            AccessKind::Update | AccessKind::AtomicUpdate => {
                let updated = Some((number, offset, access.size));
                self.written(access, None, updated, Some((number, context)));
                (value, None)
            }
        }
    }

    /// An access that is not told.
    pub(crate) fn pass(&mut self, access: &Access) {
        if access.how == AccessKind::Read {
            self.seen(access);
        } else if !self.memory.is_empty() {
            self.written(access, None, None, None);
        }
    }

    /// What is there now says what the update before it has left.
    fn seen(&mut self, access: &Access) -> Cell {
        let granule = access.location.granule();
        let Some(cell) = self.memory.get_mut(&granule) else {
            return Cell::default();
        };
        let (offset, value) = content_of(access);
        if let (Some(value), Some((by, at, size))) = (value, cell.updated)
            && access.how != AccessKind::Write
            && (at, size) == (offset, access.size)
        {
            self.results.push((by, value));
            cell.updated = None;
            cell.content = Some((offset, value));
        }
        *cell
    }

    fn written(
        &mut self,
        access: &Access,
        value: Option<Value>,
        updated: Option<(usize, u8, u8)>,
        writer: Option<(usize, ContextId)>,
    ) {
        let offset = content_of(access).0;
        let granules = access.location.granules(access.size.into());
        for (granule, piece) in granules.zip(0_u8..) {
            let cell = Cell {
                content: value.map(|value| (offset, value)).filter(|_| piece == 0),
                updated: updated.filter(|_| piece == 0),
                writer,
            };
            // An access that is not told matters only where one was told before.
            if writer.is_some() || self.memory.contains_key(&granule) {
                self.memory.insert(granule, cell);
            }
        }
    }

    /// The last step is told anew: what it read from does not count any more.
    pub(crate) fn forget(&mut self, number: usize) {
        let is_of_it = |edge: &Edge| edge.to == number && edge.kind == EdgeKind::ReadsFrom;
        while self.edges.last().is_some_and(is_of_it) {
            self.edges.pop();
        }
    }

    /// Synchronisation that is told as this step.
    pub(crate) fn synchronisation(&mut self, number: usize, context: ContextId, kind: &EventKind) {
        match *kind {
            EventKind::Release { object, .. } | EventKind::Notify { object, .. } => {
                self.given.insert(object, (number, context));
            }
            EventKind::Acquire { object, .. } | EventKind::WaitEnd { object, .. } => {
                let given = self.given.get(&object).copied();
                if let Some((from, _)) = given.filter(|(_, by)| *by != context) {
                    self.add(EdgeKind::HappensBefore, from, number);
                }
            }
            EventKind::BarrierEnter { object } => {
                self.arrived.entry(object).or_default().push(number);
            }
            _ => {}
        }
    }

    /// What orders others and is no step itself.
    pub(crate) fn order(&mut self, context: ContextId, kind: &EventKind) {
        match *kind {
            EventKind::Create { child } => self.before_next(context, child),
            EventKind::Join { child } => self.before_next(child, context),
            EventKind::BarrierLeave { object } => {
                let arrived = self.arrived.get(&object).cloned().unwrap_or_default();
                self.coming.entry(context).or_default().extend(arrived);
            }
            _ => {}
        }
    }

    fn before_next(&mut self, of: ContextId, next: ContextId) {
        if let Some(last) = self.last.get(&of) {
            self.coming.entry(next).or_default().push(*last);
        }
    }

    fn add(&mut self, kind: EdgeKind, from: usize, to: usize) {
        let edge = Edge { kind, from, to };
        if from < to && self.edges.last() != Some(&edge) {
            self.edges.push(edge);
        }
    }

    /// The edges between the steps that are left when the first ones are dropped, and what updates have left.
    pub(crate) fn finish(self, dropped: usize) -> (Vec<Edge>, Vec<(usize, Value)>) {
        let edge = |edge: Edge| {
            Some(Edge {
                from: edge.from.checked_sub(dropped)?,
                to: edge.to.checked_sub(dropped)?,
                ..edge
            })
        };
        let result = |(number, value): (usize, Value)| Some((number.checked_sub(dropped)?, value));
        (
            self.edges.into_iter().filter_map(edge).collect(),
            self.results.into_iter().filter_map(result).collect(),
        )
    }
}

/// Where in its granule an access begins, and what it found or left.
fn content_of(access: &Access) -> (u8, Option<Value>) {
    let offset = low_u8(access.addr) % GRANULE_BYTES;
    let value = access.value.map(|bits| Value {
        bits: Word(bits),
        size: access.size,
    });
    (offset, value)
}

#[cfg(test)]
mod tests {
    use raddle_world::{Location, LockMode};

    use super::*;

    const ONE: ContextId = ContextId(1);
    const OTHER: ContextId = ContextId(2);

    fn access(how: AccessKind, value: u64) -> Access {
        Access {
            how,
            size: 4,
            location: Location::shared(7, 16),
            addr: 0x1010,
            value: Some(value),
        }
    }

    fn value(bits: u64) -> Option<Value> {
        let bits = Word(bits);
        Some(Value { bits, size: 4 })
    }

    #[test]
    fn values_are_known_from_one_access_to_the_next() {
        let mut weaver = Weaver::default();
        assert_eq!(
            weaver.access(0, ONE, &access(AccessKind::Write, 5)),
            (None, value(5))
        );
        assert_eq!(
            weaver.access(1, OTHER, &access(AccessKind::Write, 6)),
            (value(5), value(6))
        );
        assert_eq!(
            weaver.access(2, ONE, &access(AccessKind::AtomicUpdate, 6)),
            (value(6), None)
        );
        weaver.access(3, OTHER, &access(AccessKind::Read, 7));
        weaver.pass(&access(AccessKind::Write, 9));
        assert_eq!(
            weaver.access(4, ONE, &access(AccessKind::Write, 1)).0,
            None,
            "somebody has written what is not told"
        );
        let (edges, results) = weaver.finish(0);
        assert_eq!(results, [(2, value(7).unwrap())]);
        let reads: Vec<(usize, usize)> = edges.iter().map(|e| (e.from, e.to)).collect();
        assert_eq!(reads, [(1, 2), (2, 3)]);
    }

    #[test]
    fn locks_and_creation_order_steps_and_dropped_steps_have_no_edges() {
        let mut weaver = Weaver::default();
        let (object, mode) = (8, LockMode::Exclusive);
        weaver.step(0, ONE);
        weaver.synchronisation(0, ONE, &EventKind::Release { object, mode });
        weaver.order(ONE, &EventKind::Create { child: OTHER });
        weaver.step(1, OTHER);
        weaver.step(2, OTHER);
        weaver.synchronisation(2, OTHER, &EventKind::Acquire { object, mode });
        weaver.order(ONE, &EventKind::Join { child: OTHER });
        weaver.step(3, ONE);
        let (edges, _) = weaver.finish(1);
        assert_eq!(
            edges,
            [Edge {
                kind: EdgeKind::HappensBefore,
                from: 1,
                to: 2
            }]
        );
    }
}
