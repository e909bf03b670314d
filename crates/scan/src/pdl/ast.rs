//! Patterns as data. Variables and labels are numbers into the pattern's tables.

use raddle_report::Severity;

/// A bug pattern: sub-patterns that run on different threads, and conditions on them.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) name: String,
    /// One line with `$variables`.
    pub(crate) title: String,
    pub(crate) severity: Severity,
    pub(crate) why: String,
    /// The text of `raddle explain`.
    pub(crate) about: String,
    pub(crate) subs: Vec<Sub>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) variables: Vec<String>,
    pub(crate) labels: Vec<String>,
    /// Added to the rank of every finding of this pattern.
    pub(crate) weight: i32,
    /// The variable whose object groups the findings.
    pub(crate) object: Option<usize>,
    /// Nothing is said about locks: sub-patterns must be able to run at the same time.
    pub(crate) disjoint_by_default: bool,
}

/// What one thread does.
#[derive(Debug, Clone)]
pub(crate) struct Sub {
    pub(crate) functions: Vec<Fun>,
}

/// A function; further ones of the same sub-pattern are called by the first.
#[derive(Debug, Clone)]
pub(crate) struct Fun {
    pub(crate) name: Name,
    pub(crate) body: Vec<Stmt>,
}

/// A constant, a variable, or anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    Constant(String),
    Variable(usize),
    Any,
}

#[derive(Debug, Clone)]
pub(crate) struct Stmt {
    pub(crate) label: Option<usize>,
    pub(crate) kind: StmtKind,
}

#[derive(Debug, Clone)]
pub(crate) enum StmtKind {
    If {
        cond: Name,
        then: Vec<Stmt>,
        other: Option<Vec<Stmt>>,
        /// A loop's condition will do as well.
        or_loop: bool,
    },
    Loop {
        cond: Name,
        body: Vec<Stmt>,
    },
    Break,
    Continue,
    /// Leaves the loop in any way.
    Leave,
    Return(Name),
    Lock {
        lock: Name,
        holding: Option<Name>,
    },
    TryLock(Name),
    Unlock(Name),
    Read(Name),
    Write(Name),
    /// Read and write in one.
    Update(Name),
    /// Read or write.
    Access(Name),
    Call {
        callee: Callee,
        args: Args,
        result: Name,
    },
    Exclude(Vec<Stmt>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Callee {
    Named(Vec<String>),
    Class(String),
    Variable(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Args {
    Any,
    All(usize),
    Each(Vec<Name>),
}

/// A semantic condition.
#[derive(Debug, Clone)]
pub(crate) enum Condition {
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Test(Test),
}

/// A predicate, possibly compared with a value.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    pub(crate) predicate: Predicate,
    pub(crate) args: Vec<Arg>,
    pub(crate) compare: Option<(Compare, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    Different,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// An argument of a predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arg {
    Label(usize),
    Variable(usize),
    /// `$args[n]`
    Element(usize, usize),
    Class(String),
    Text(String),
}

macro_rules! predicates {
    ($($variant:ident $name:literal $args:literal $help:literal,)*) => {
        /// What a condition can ask.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Predicate { $(#[doc = $help] $variant,)* }

        /// Name, number of arguments and meaning of each predicate.
        pub(crate) const PREDICATES: &[(Predicate, &str, usize, &str)] =
            &[$((Predicate::$variant, $name, $args, $help),)*];
    };
}

predicates! {
    DisjointLocks "disjoint_locks" 2 "the two statements can run at the same time: no lock that may be held at both excludes it",
    CommonLock "common_lock" 2 "some excluding lock is certainly held at both statements",
    Writes "writes" 2 "the function of the statement writes the object itself",
    NoGate "no_gate" 2 "no further lock is held at both lock statements that would serialise them",
    Shared "shared" 1 "other threads may reach the object: not a local, not freshly allocated",
    Alias "alias" 2 "the two may name the same object (same struct and field, or same variable)",
    Mentions "mentions" 2 "the condition contains exactly this object",
    Same "same" 2 "the same text in the same function",
    SameBase "same_base" 2 "reached through the same variable",
    SameLock "same_lock" 2 "the two may be the same lock",
    SameFunction "same_function" 2 "the two name the same function",
    Starts "starts" 2 "the call at the statement starts the function as a thread",
    Passed "passed" 2 "the thread started at the statement is given the object, or what leads to it",
    Type "type" 1 "the type of the object, to compare with a name",
    NameOf "name" 1 "the last part of the object's name, to compare with a name; `*` stands for any characters",
    ReachableFromThread "reachable_from_thread" 1 "a known starting point of a thread, entry or interrupt leads to the function",
    InitOnly "init_only" 1 "the function runs only while a module or device is set up or torn down",
    Before "before" 2 "control can get from the first statement to the second",
    Dominates "dominates" 2 "every way to the second statement passes the first",
    SameBranch "same_branch" 2 "the second statement always follows the first, unless the function is left",
    Calls "calls" 2 "the condition or arguments contain a call of the class",
    ByCall "by_call" 2 "the access is made by a call of the class",
    Holds "holds" 2 "the lock, or a lock of the named family, is certainly held at the statement",
    HoldsAny "holds_any" 1 "some excluding lock is certainly held at the statement",
    AtomicContext "atomic_context" 1 "a spinning lock is certainly held, or interrupts or preemption are off",
    MaySleep "may_sleep" 1 "the function called at the statement sleeps on its straight way",
    Guarded "guarded" 1 "percentage of the other accesses to the object under its usual lock",
    GuardedWrites "guarded_writes" 1 "percentage of the other writes to the object under its usual lock; 0 if there are fewer than four",
    Unguarded "unguarded" 2 "the usual lock of the object is not held at the statement",
    UsualLock "usual_lock" 2 "the lock is the usual lock of the object",
    Atomic "atomic" 1 "the access is atomic by itself",
    InLoop "in_loop" 1 "the statement is inside a loop",
    InCondition "in_condition" 1 "the statement is part of a condition",
    ErrorExit "error_exit" 1 "the function returns an error there",
    ReturnsNothing "returns_nothing" 1 "the statement is a return without a value",
    ReturnsHolding "returns_holding" 2 "the lock is certainly still held at the return",
    ReleasedElsewhere "released_elsewhere" 2 "another return of the function does not hold the lock",
    Published "published" 2 "the call at the statement makes the freshly allocated owner of the object known to others",
    Pointer "pointer" 1 "the object is a pointer",
    Dereferenced "dereferenced" 1 "what is read at the statement is followed as a pointer at once",
    SetsNull "sets_null" 1 "the statement writes a null pointer or zero",
    LockFree "lock_free" 1 "the statement is part of a retry loop, a sequence-counter section or an RCU section",
    Global "global" 1 "the object is a variable at file level",
    Diagnostic "diagnostic" 1 "the statement only feeds a message or an assertion",
    Idempotent "idempotent" 1 "the write sets or clears bits: doing it twice is doing it once",
    Lifecycle "lifecycle" 1 "the function's name says that it sets up or tears down",
    SameDirectory "same_directory" 2 "the two functions are in files of the same folder",
    Near "near" 2 "only a few operations lie between the two statements",
    SetsUp "sets_up" 1 "the statement is a plain write in a function whose name says that it opens, starts or enables",
    Teardown "teardown" 1 "the function's name says that it frees or gives up the object",
    ErrorPath "error_path" 1 "the statement runs only after a call has failed",
    Negated "negated" 2 "the second statement runs when the condition tested at the first is zero or false",
    AnyLocks "any_locks" 0 "always; says that locks held by several sub-patterns do not matter, which they do by default",
    FollowedIn "followed_in" 2 "the condition tests the pointer and follows it further right, fetching it a second time",
    Limits "limits" 1 "the condition compares with `<`, `<=`, `>` or `>=`",
    FoundByRcu "found_by_rcu" 1 "the object hangs on a local that was set by a look-up under RCU in the same function",
    ReadLocked "read_locked" 2 "the usual lock of the object is held at the statement for reading only, and no other lock is",
    Leaks "leaks" 2 "on some path the lock taken at the first statement is still held at the second, a return, though other ways out release it and the result does not tell",
    Relocks "relocks" 2 "on some path the lock taken at the first statement is taken again at the second, itself or by what is called there",
    Reunlocks "reunlocks" 2 "on some path the lock released at the first statement is released again at the second",
    UsesFreed "uses_freed" 2 "on some path what is freed at the first statement is used at the second",
    UsesAfterRcu "uses_after_rcu" 2 "on some path what was found in the RCU section that ends at the first statement is used at the second",
    UsesAfterUnlock "uses_after_unlock" 2 "on some path what was found under the lock that is released at the first statement is used at the second, though nothing keeps it",
    LacksUsual "lacks_usual" 2 "some functions hold a lock where they use the object, at least half of the accesses or nearly all writes, and it is not held at the statement",
    UnmetCall "unmet_call" 1 "what is called uses data under a lock that at least half of its callers hold, and that is not held here",
    FewCaller "few_caller" 1 "as odd_caller, for two other calls at least",
    OutsideSection "outside_section" 1 "the statement, or what it calls, follows an RCU pointer, and neither a section nor a lock is held",
    UsuallyIrqOff "usually_irq_off" 1 "most others take the lock that is taken at the statement with interrupts off; here they are on",
    Awaits "awaits" 2 "the call at the statement waits for the end of the function, a handler or what it calls",
    Called "called" 2 "the function is what the statement calls",
    Unheld "unheld" 2 "the lock asserted at the second statement is in no way held at the first",
    Interruptible "interruptible" 1 "the lock is taken with interrupts on, by a function that no interrupt runs",
    InInterrupt "in_interrupt" 1 "an interrupt handler, timer or tasklet runs the statement",
    LeavesArmed "leaves_armed" 2 "what the call at the second statement starts is never cancelled, or not by the function of the first, which ends another item of the same object",
    ArmedIn "armed_in" 2 "the function starts what is left running at the statement",
    CalledUnlocked "called_unlocked" 1 "nearly all other callers of what is called hold a lock that is not held here",
    OddCaller "odd_caller" 1 "every other call of what is called, three at least, is made under a lock of its arguments or a global one that is not held here",
    GivesUp "gives_up" 2 "the function of the first statement ends another item of the object whose item is started at the second, or frees such an object",
    RcuPointer "rcu_pointer" 1 "most other reads of what is read at the statement are made by rcu_dereference(), and it is written by rcu_assign_pointer()",
    FreedLater "freed_later" 1 "what is freed at the statement is freed after an RCU grace period by another function of the folder",
    ReleasesUnheld "releases_unheld" 1 "on some path the lock released at the statement was not taken, in a function that takes it itself on another one",
    SwitchesOff "switches_off" 1 "the function's name says that a device is suspended, closed or taken away",
    StopsOnly "stops_only" 1 "the work item or timer is stopped at the statement without waiting for its handler, and neither the function nor what it calls waits",
    StartedAgain "started_again" 2 "the work item or timer that ends at the first statement is started by a handler that runs until the second, or until a callee of it has waited, and not ended again",
    EndedElsewhere "ended_elsewhere" 1 "what the call starts is ended by some function, only not by the one that gives its object up",
    AwaitsItself "awaits_itself" 1 "the call waits for the handler that runs it",
    TakesUsual "takes_usual" 2 "the function of the statement takes the usual lock of the object somewhere",
    RemoveRoot "removes" 1 "the function is the one by which a driver or module is told to let go of an object",
    Raises "raises" 1 "the statement writes something other than zero, or sets a bit",
    Lowers "lowers" 1 "the statement writes zero or a null pointer, or clears a bit",
    LateReference "late_reference" 2 "the call at the second statement takes a reference on the object whose work item or timer was started at the first",
    WakesTooEarly "wakes_too_early" 2 "the queue woken at the first statement has sleepers that wait for the change at the second, and is not woken again",
    Unannounced "unannounced" 1 "sleepers wait for the change at the statement, all other such changes are followed by a wake-up, and this one is not",
    RcuHead "rcu_head" 1 "what is freed at the statement has a head for call_rcu() or kfree_rcu(), and nothing waits for readers",
    EndsByItself "ends_by_itself" 1 "the thread function may return although nothing asked it to stop",
    DifferentFunction "different_function" 2 "the two functions are not the same",
}
