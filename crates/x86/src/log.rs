//! The observation log: what handlers append, and how to read it.

use crate::engine::Observe;
use crate::op::{LogKind, Meta};

/// Words in the buffer.
const WORDS: usize = 1 << 20;
/// Bound on the words one step can append: a block head and five accesses of three words.
const WORDS_PER_STEP: usize = 18;

/// One observed access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Step of the slice, counted from the first instruction of the run.
    pub step: u64,
    pub pc: u64,
    pub addr: u64,
    pub size: u16,
    pub kind: LogKind,
    /// The low 64 bits read, written, or found by an update before it changed them.
    pub value: Option<u64>,
}

/// A buffer of records of one or more runs.
#[derive(Debug)]
pub struct Log {
    words: Box<[u64]>,
    used: usize,
    observe: Observe,
    /// For each run: where its records begin, and the steps of its slice.
    runs: Vec<RunMark>,
}

#[derive(Debug, Clone, Copy)]
struct RunMark {
    first_word: usize,
    slice_steps: i64,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            words: Box::default(),
            used: 0,
            observe: Observe::None,
            runs: Vec::new(),
        }
    }
}

impl Log {
    /// Prepares for a run; gives how many steps there is surely room for.
    pub(crate) fn begin(&mut self, observe: Observe) -> u64 {
        if observe == Observe::None {
            return u64::MAX;
        }
        if observe != self.observe {
            self.clear();
            self.observe = observe;
        }
        if self.words.is_empty() {
            self.words = vec![0; WORDS].into_boxed_slice();
        }
        self.runs.push(RunMark {
            first_word: self.used,
            slice_steps: 0,
        });
        ((WORDS - self.used) / WORDS_PER_STEP) as u64
    }

    pub(crate) fn position(&mut self) -> *mut u64 {
        let used = self.used.min(self.words.len());
        self.words[used..].as_mut_ptr()
    }

    pub(crate) fn end(&mut self, position: *mut u64, slice_steps: i64) {
        if self.words.is_empty() {
            return;
        }
        let bytes = position.addr() - self.words.as_ptr().addr();
        self.used = bytes / size_of::<u64>();
        assert!(
            self.used <= WORDS,
            "a slice never appends more than its share"
        );
        if let Some(run) = self.runs.last_mut() {
            run.slice_steps = slice_steps;
        }
    }

    /// Forgets all records.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.runs.clear();
    }

    /// Whether nothing was observed.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The accesses in order, for the most recent run only or, if several were made, for all of them.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let stride = if self.observe == Observe::AddrValue {
            3
        } else {
            2
        };
        let mut runs = self.runs.iter().copied().peekable();
        let mut slice_steps = 0;
        let mut block_step = 0;
        (0..self.used).step_by(stride).filter_map(move |at| {
            while runs.peek().is_some_and(|run| run.first_word <= at) {
                slice_steps = runs.next().map_or(0, |run| run.slice_steps);
            }
            let meta = Meta(self.words[at + 1]);
            if meta.kind() == LogKind::Block {
                block_step = slice_steps - self.words[at].cast_signed();
                return None;
            }
            let value = (stride == 3).then(|| self.words[at + 2]);
            Some(Record {
                step: (block_step + i64::from(meta.index())).cast_unsigned(),
                pc: meta.pc(),
                addr: self.words[at],
                size: meta.size(),
                kind: meta.kind(),
                value,
            })
        })
    }
}
