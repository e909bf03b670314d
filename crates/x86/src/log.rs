//! The observation log: what handlers append, and how to read it.

use crate::engine::Observe;
use crate::op::{LogKind, Meta};

/// Words in the buffer.
const WORDS: usize = 1 << 16;
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

    /// Shows the accesses of all runs since the last clearing, in order.
    pub fn for_each(&self, visit: impl FnMut(&Record)) {
        if self.observe == Observe::AddrValue {
            self.walk::<3>(visit);
        } else {
            self.walk::<2>(visit);
        }
    }

    /// An explicit loop rather than an iterator: this is the hottest code of an observed run.
    fn walk<const STRIDE: usize>(&self, mut visit: impl FnMut(&Record)) {
        let mut block_step = 0;
        for (index, run) in self.runs.iter().enumerate() {
            let end = self
                .runs
                .get(index + 1)
                .map_or(self.used, |next| next.first_word);
            let (entries, _) = self.words[run.first_word..end].as_chunks::<STRIDE>();
            for entry in entries {
                let meta = Meta(entry[1]);
                if meta.kind() == LogKind::Block {
                    block_step = run.slice_steps - entry[0].cast_signed();
                    continue;
                }
                visit(&Record {
                    step: (block_step + i64::from(meta.index())).cast_unsigned(),
                    pc: meta.pc(),
                    addr: entry[0],
                    size: meta.size(),
                    kind: meta.kind(),
                    value: (STRIDE == 3).then(|| entry[STRIDE - 1]),
                });
            }
        }
    }
}
