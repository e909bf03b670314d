//! What happened to eight bytes, and what could have.
//!
//! Of accesses that are alike the first and the last one are kept.

use raddle_world::ContextId;

use crate::access::Seen;
use crate::target::Targets;
use crate::unserializable::{self, Between};
use crate::waiting::Order;

/// Accesses of different kinds that are kept for eight bytes; as many as there are bits in a mask.
const ACCESSES_MAX: usize = 64;
/// Pairs of accesses of one context that are kept for eight bytes.
const PAIRS_MAX: usize = 64;

/// What is known of eight bytes.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) accesses: Vec<Seen>,
    /// The last access of each context to the same bytes, and its last write.
    last: Vec<Seen>,
    last_writes: Vec<Seen>,
    /// Two accesses in a row of one context.
    pairs: Vec<(Seen, Seen)>,
    /// What is there, by the bytes that were written or read together.
    contents: Vec<Content>,
}

/// What some bytes hold.
#[derive(Debug, Clone, Copy)]
struct Content {
    /// The number of the write that left it, if there was one.
    number: Option<u64>,
    bytes: u8,
    value: Option<u64>,
}

impl Cell {
    /// Takes in an access.
    pub(crate) fn take(&mut self, mut now: Seen, order: &Order<'_>, targets: &mut Targets) {
        let who = now.context;
        for (index, other) in self.accesses.iter().enumerate() {
            let is_ordered = order.is_before(other, who);
            if other.context != who && !is_ordered {
                now.concurrent |= 1 << index;
            }
        }
        now.is_first_use = self.accesses.iter().all(|other| !other.overlaps(&now));
        self.note_content(&mut now);
        self.note_own_writes(&mut now);
        self.remote_after(&now, order, targets);
        self.remote_before(&now, targets);
        self.keep(now);
    }

    /// What the access finds and leaves behind.
    fn note_content(&mut self, now: &mut Seen) {
        let overlapping = self.contents.iter();
        let overlapping = overlapping.filter(|content| content.bytes & now.bytes != 0);
        now.from = overlapping.filter_map(|content| content.number).max();
        let mut contents = self.contents.iter_mut();
        let known = contents.find(|content| content.bytes == now.bytes);
        if let Some(content) = known {
            if let (Some(value), None) = (now.value, content.value) {
                // What an update wrote shows when a later access reads it.
                content.value = Some(value);
                let mut writes = self.accesses.iter_mut();
                let writer = writes.find(|seen| Some(seen.number) == content.number);
                if let Some(writer) = writer.filter(|writer| writer.writes) {
                    writer.written = Some(value);
                }
            }
            now.overwritten = content.value;
        } else if now.reads {
            now.overwritten = now.value;
            self.contents.push(Content {
                number: now.from,
                bytes: now.bytes,
                value: now.value,
            });
        }
        if now.writes {
            self.contents
                .retain(|content| content.bytes & now.bytes == 0);
            self.contents.push(Content {
                number: Some(now.number),
                bytes: now.bytes,
                value: now.written,
            });
        }
    }

    /// Critical sections in which a context writes and reads, or writes twice, let no other context come between.
    fn note_own_writes(&mut self, now: &mut Seen) {
        let own = latest(&self.last_writes, now.context, now.bytes);
        let Some(before) = own else {
            return;
        };
        let shared = before.sections_with(now);
        if now.writes && !shared.is_empty() {
            let number = before.number;
            for seen in &mut self.accesses {
                if seen.number == number {
                    seen.own_after.clone_from(&shared);
                }
            }
        }
        now.own_before = shared;
    }

    /// This access could have come between two earlier ones of another context.
    fn remote_after(&self, now: &Seen, order: &Order<'_>, targets: &mut Targets) {
        for (first, second) in &self.pairs {
            let is_other = first.context != now.context;
            if is_other && !order.is_before(second, now.context) {
                let between = Between {
                    first,
                    remote: now,
                    second,
                };
                targets.extend(unserializable::target(between));
            }
        }
    }

    /// An earlier access of another context could have come between this one and the one before.
    fn remote_before(&self, now: &Seen, targets: &mut Targets) {
        let Some(first) = latest(&self.last, now.context, now.bytes) else {
            return;
        };
        for (index, remote) in self.accesses.iter().enumerate() {
            let is_concurrent = first.concurrent >> index & 1 == 1;
            // What came between has happened already.
            if is_concurrent && remote.number < first.number {
                let between = Between {
                    first,
                    remote,
                    second: now,
                };
                targets.extend(unserializable::target(between));
            }
        }
    }

    fn keep(&mut self, now: Seen) {
        if let Some(before) = latest(&self.last, now.context, now.bytes) {
            let pair = (before.clone(), now.clone());
            let is_alike = |(first, second): &(Seen, Seen)| {
                first.is_alike(&pair.0) && second.is_alike(&pair.1)
            };
            let known = self.pairs.iter().position(is_alike);
            match known {
                Some(index) => self.pairs[index] = pair,
                None if self.pairs.len() < PAIRS_MAX => self.pairs.push(pair),
                None => {}
            }
        }
        replace(&mut self.last, &now);
        if now.writes {
            replace(&mut self.last_writes, &now);
        }
        let mut alike = (0..self.accesses.len()).filter(|at| self.accesses[*at].is_alike(&now));
        match (alike.next(), alike.next()) {
            (Some(_), Some(last)) => self.accesses[last] = now,
            _ if self.accesses.len() < ACCESSES_MAX => self.accesses.push(now),
            _ => {}
        }
    }

    /// The write whose value a read of some bytes would find now, if it was kept.
    pub(crate) fn writer(&self, bytes: u8) -> Option<&Seen> {
        let contents = self.contents.iter();
        let overlapping = contents.filter(|content| content.bytes & bytes != 0);
        let number = overlapping.filter_map(|content| content.number).max()?;
        self.by_number(number).map(|(_, seen)| seen)
    }

    /// Whether several contexts used it, so that their order can matter.
    pub(crate) fn is_shared(&self) -> bool {
        let first = self.accesses.first().map(|seen| seen.context);
        self.accesses.iter().any(|seen| Some(seen.context) != first)
    }

    /// Whether one access comes before another by order, in every schedule with the same hand-overs.
    pub(crate) fn is_ordered(&self, (index, first): (usize, &Seen), second: &Seen) -> bool {
        let is_known = second.concurrent >> index & 1 == 0;
        first.number < second.number && (first.context == second.context || is_known)
    }

    /// An access by its number, if it was kept.
    pub(crate) fn by_number(&self, number: u64) -> Option<(usize, &Seen)> {
        let mut accesses = self.accesses.iter().enumerate();
        accesses.find(|(_, seen)| seen.number == number)
    }
}

/// The latest access of a context that touches one of some bytes.
fn latest(all: &[Seen], who: ContextId, bytes: u8) -> Option<&Seen> {
    let own = all
        .iter()
        .filter(|seen| seen.context == who && seen.bytes & bytes != 0);
    own.max_by_key(|seen| seen.number)
}

/// Remembers an access instead of the one of the same context to the same bytes.
fn replace(all: &mut Vec<Seen>, now: &Seen) {
    let same = |seen: &&mut Seen| (seen.context, seen.bytes) == (now.context, now.bytes);
    match all.iter_mut().find(same) {
        Some(known) => *known = now.clone(),
        None => all.push(now.clone()),
    }
}
