//! From runs in which nothing goes wrong to confirmed concurrency bugs: what could another interleaving do?
//!
//! Reading order: [`access`] and [`mod@profile`] (what is remembered of a run), [`unserializable`] (CTrigger),
//! [`memory_errors`] and `overflow` (ConMem), [`critical_reads`] (ConSeq), [`target`] (what is to be forced, and how it is ranked),
//! [`mod@predict`] (profile, rank, force, report).
//!
//! # The profile
//!
//! Some finely interleaved runs that end well, since remote distances and loops that wait mean nothing in an
//! uninterleaved one. A run that fails is a finding and predicts nothing; another seed is tried. Of each eight bytes the
//! first and the last access of every kind are kept (context, instruction, bytes, direction), with values, critical
//! sections and clocks. Accesses to different bytes of the eight never meet. What a library does to the program's memory
//! counts at the calling instruction, before which it is held. Variables that locked instructions touch take part unless
//! they are used as locks. Clocks know *order* only: creation, joining, barriers, hand-overs, flags that are waited for;
//! neither locks nor conditions, since another schedule may need no wake-up. Loops that wait for a plain variable are
//! found as in ConMem, section 4.2.6 (`waiting`), and listed; functions that the user declares are known by
//! `raddle.toml`.
//!
//! # CTrigger (Park, Lu, Zhou: ASPLOS 2009)
//!
//! A context accesses a place twice, `P` and then `C`; another one accesses it with `R`. If `R` comes between, no serial
//! order gives the same result in four of the eight cases: read-write-read, write-write-read, write-read-write,
//! read-write-write. The runs of the profile show which `P`, `C` and `R` there are. An interleaving is *infeasible* if
//! order puts `R` before `P` or behind `C`, or if `P` and `C` lie in one critical section and `R` is protected by the
//! same lock; identity is that of the critical section, not of the lock. What was seen in the profile needs not be
//! forced. The rest is ranked by its *local gap*, the steps of the context between `P` and `C`: the smaller, the rarer in
//! nature, the earlier tested. Deviation: critical sections are not cut out of the gap.
//!
//! # Other values (ConMem and ConSeq)
//!
//! Con-NULL, Con-UnInit and ConSeq ask the same: a read `r` found what the write `w` left; could it find something else?
//! Either what another write `w'` leaves (ConSeq's Algorithm 1), or what was there before `w`, if `r` comes too early. It
//! cannot, if order puts `r` before `w'` or `w'` before `w` before `r`; if `w` and `r` lie in one critical section and
//! `w'` needs its lock; or if `w'` and a later write of its context do, and `r` needs it. The papers have these
//! conditions once for each detector; here they stand in one file.
//!
//! # ConMem (Zhang, Sun, Lu: ASPLOS 2010)
//!
//! Its four detectors: a pointer that is read could be NULL (Con-NULL), unless the same instruction has found NULL
//! before and went on, for then it tests; a place could be read before its first write (Con-UnInit; deviation: whatever
//! no context has used since the snapshot counts as not initialised, whatever it holds); a block that one context uses
//! could have been freed by another (Con-Dangling; deviation: the first use counts as well as the last, since the last
//! one may come only when the block is safe); two contexts race for an index or a length with which a buffer is
//! accessed (Con-Overflow). A variable is an index if its value takes part in an address, or bounds a copy of the C
//! library, within three computations and is no address itself. Deviations: the paper follows data in a second run,
//! here the machine code of the reading function is asked, in which copies count as no step; and a pointer to a text
//! that is copied to its end counts as a length. Both orders are forced; red zones of the heap and the other judges
//! tell whether something overflowed. An overflow inside of a global structure that harms nothing else is not noticed.
//!
//! # ConSeq (Zhang, Lim, Olichandran, Scherpelz, Jin, Lu, Reps: ASPLOS 2011)
//!
//! Failure sites are calls of assertions, of error messages and of output, and branches that leave loops; of machine code
//! also calls of own functions that never return, into which compilers move the failing half of an assertion. *Critical
//! reads* are the reads of memory that may be shared on the backward slice of a site, at most [`DISTANCE_MAX`] steps of
//! data or control dependence away. Calls begin with a control dependence, outputs add the set-up of their arguments at
//! distance 1, loops keep what is repeated in them. What a called function returns is one step away. If the other value
//! is known, the code behind the read is followed with it: a target is dropped if control then misses the site. A loop is
//! endangered only if the other write can come after the usual one. Deviation: of the invariants that ConSeq takes from
//! Daikon there is one, that a read finds one of the few values that it has found in the profile.
//!
//! # Validation
//!
//! Where the papers put a sleep before an instruction, the context is held exactly there until the other one has passed
//! ([`raddle_sched::Directed`]); before the outermost critical section if the other one needs its lock. ConSeq's first
//! special case, `w'` and `r` in one context, holds the usual write until the read is over. If a hold leads nowhere, it is
//! tried once more with the context that is held going first: a context that waits for a condition before it holds up
//! everybody.
//!
//! An access that usually comes too early to do harm needs two holds: it is kept back until the other context has begun,
//! and that one until it has passed. CTrigger's `R` before `P`, and an other write before the usual one, are such; their
//! chain is a *way* of the target beside the single hold. The papers force one order of two accesses at a time.
//!
//! A target is *confirmed* if the forced run fails by the judges of `raddle explore`; else it was forced without harm, or
//! it could not be forced, which is told apart. *Infeasible* is never said of a run: what order or critical sections
//! exclude is no target, and counted.
//!
//! # Invariants
//!
//! What a read found in all runs that ended well, and did not in a forced run that failed, is proposed to the user
//! (thesis of Zhang, section 6.2.3): the simplest of constant, not zero, range and list that tells the two apart. The
//! paper learns equality, ordering and sums, too, and from some 50 runs.
//!
//! # What is not here
//!
//! Custom synchronisation beyond inferred locks, flags and loops that wait; the other invariants of
//! ConSeq; stack slots of code without frame pointers in slices; targets that are restricted to call stacks (a hold names
//! its context, bytes and visit instead); several targets in one run; logs on disk; bounds of global variables.

pub mod access;
mod cell;
pub mod critical_reads;
pub mod memory_errors;
mod overflow;
pub mod predict;
pub mod profile;
pub mod target;
pub mod unserializable;
mod values;
mod waiting;
mod wrong_value;

pub use critical_reads::{CriticalReads, DISTANCE_MAX, Indices, Loaded, ProgramCode};
pub use predict::{Predicted, Prediction, Predictions, Proposed, predict};
pub use profile::Profile;
pub use raddle_code::{SiteKind, SiteNames};
pub use target::{Kind, Outcome, Target};
pub use values::{Holds, Invariant};
