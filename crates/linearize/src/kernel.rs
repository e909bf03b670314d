//! Tests of kernels: the calls of their threads are the operations, their checks are the probes.
//!
//! What a call gives is its return value, and what is in the buffers that it was given; a buffer that several threads
//! use, or a check, is state.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use raddle_campaign::{Leave, Stage as _};
use raddle_explore::Marked;
use raddle_kernel::campaign::{
    CallMark, Gave, Judge, LOOP_WINDOW, LivenessRule, PAUSE_WINDOW, Rules, Session, Target,
};
use raddle_kernel::program::{Code, Operand, Operation as Step, ResultKind};
use raddle_kernel::test_case::TestCase;
use raddle_sched::End;
use raddle_stdx::width::to_u64;
use raddle_trace::SerialRules;
use raddle_world::{Mark, Value};

use crate::compare::Comparison;
use crate::history::{Client, History, Operation};
use crate::judge::{CannotJudge, check};
use crate::one_at_a_time::{OneAtATime, Turns};
use crate::orders::{PATIENCE, SerialRun, SerialWorld, serial_run, steps_max, whole_order};
use crate::verdicts::{Figures, Verdicts};

/// Steps of the first serial order at most. A call that waits for an answer of a processor that is held before its own call
/// gets it only behind them.
const FIRST_STEPS: u64 = 30_000_000;

/// Compares runs of a kernel with serial orders of their calls.
#[derive(Debug, Clone)]
pub struct LinearizeKernel {
    shared: Arc<Mutex<Verdicts<SerialWorld>>>,
    layout: Arc<Layout>,
    rules: SerialRules,
}

impl LinearizeKernel {
    /// Makes a guest of its own, and runs the calls of the test in a first serial order.
    ///
    /// # Errors
    /// The test cannot be run, has calls of one thread only, or does not come to its end.
    pub fn start(target: Target, rules: &SerialRules, leave: Leave) -> Result<Self, CannotJudge> {
        let comparison = Comparison::new(rules)?;
        if !rules.state_files.is_empty() {
            return Err(CannotJudge::KernelFiles);
        }
        let Some(test) = &target.test else {
            return Err(CannotJudge::NoTestCase);
        };
        let layout = Arc::new(Layout::of(test));
        let own = Arc::clone(&layout);
        let thread = SerialWorld::on_thread(move |desk| {
            let mut session = match Session::start_serial(&target) {
                Ok(session) => session,
                Err(failure) => return desk.refuse(failure),
            };
            session.set_leave(leave);
            let (first, steps) = run(&mut session, &own, &[], FIRST_STEPS);
            // Explanations ask when the time for exploring is up.
            session.set_leave(Leave::endless());
            desk.serve(first, |order| {
                run(&mut session, &own, order, steps_max(steps)).0
            });
        });
        let (mut world, first) = thread.map_err(CannotJudge::NoThread)??;
        check(&whole_order(&mut world, first))?;
        Ok(Self {
            shared: Arc::new(Mutex::new(Verdicts::new(world, comparison, rules))),
            layout,
            rules: rules.clone(),
        })
    }

    /// The judge of a campaign or a replay.
    pub fn judge(&self) -> Judge {
        let shared = Arc::clone(&self.shared);
        let layout = Arc::clone(&self.layout);
        Judge::new(self.rules.clone(), move |gave| {
            let history = layout.history(gave);
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.verdict(&history).map(|verdict| *verdict)
        })
    }

    pub fn figures(&self) -> Figures {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.figures()
    }
}

/// Runs an order that begins so; gives its steps, too.
fn run(
    session: &mut Session<'_>,
    layout: &Layout,
    beginning: &[Client],
    steps_max: u64,
) -> (SerialRun, u64) {
    let turns = Turns::in_order(beginning);
    let mut scheduler = OneAtATime::new(&turns);
    let rules = Rules {
        patience: PATIENCE,
        // In the second half of its steps a run is fair to everybody, and no longer serial.
        steps: steps_max.saturating_mul(2),
        races: None,
        interrupts: false,
        pause_window: PAUSE_WINDOW,
        loop_window: LOOP_WINDOW,
        liveness: LivenessRule::Rehearsed,
    };
    let mut marks: Vec<CallMark> = Vec::new();
    let drive = session.play(&mut scheduler, rules, &mut |world, events| {
        let mut turns = turns.borrow_mut();
        for event in events {
            turns.event(event);
            marks.extend(CallMark::of(world, event));
        }
    });
    let world = &session.world;
    let gave = Gave {
        marks: &marks,
        results: world.results(),
        buffers: world.buffers(),
    };
    let status = matches!(drive.end, End::Exited { .. }) && !world.results().is_empty();
    let in_order = turns.borrow().over();
    let run = serial_run(layout.history(gave), in_order, status.then_some(0));
    (run, drive.steps)
}

/// What belongs to what in a test.
#[derive(Debug)]
struct Layout {
    /// The statements of each thread's calls.
    calls: Vec<Vec<usize>>,
    /// The statements of the checks' calls, with their texts.
    checks: Vec<(usize, String)>,
    /// The statements whose calls give a new descriptor.
    opening: BTreeSet<usize>,
    buffers: Vec<Buffer>,
}

#[derive(Debug)]
struct Buffer {
    name: String,
    /// The thread and its last call that gets the buffer, if no other thread or check does; otherwise it is state.
    owner: Option<(usize, usize)>,
    /// What calls leave there about files.
    stats: Vec<Stat>,
    is_used: bool,
}

impl Layout {
    fn of(test: &TestCase) -> Self {
        let calls = test.calls();
        let program = &test.program;
        let checks = program.check.iter();
        let checks = checks.filter(|step| matches!(step.code, Code::Call(_) | Code::Run));
        let text = |step: &Step| (step.statement, test.statements[step.statement].text.clone());
        let buffers = test.buffers.iter().map(|buffer| {
            let range = buffer.offset..buffer.offset + buffer.size;
            let users: BTreeMap<usize, &Step> = program
                .threads
                .iter()
                .enumerate()
                .filter_map(|(thread, steps)| {
                    let last = steps.iter().rfind(|step| takes(step, &range))?;
                    Some((thread, last))
                })
                .collect();
            let is_checked = program.check.iter().any(|step| takes(step, &range));
            let every = program.threads.iter().flatten().chain(&program.check);
            let takers = every.filter(|step| takes(step, &range));
            let owner = users.first_key_value().filter(|_| users.len() == 1);
            Buffer {
                name: buffer.name.clone(),
                owner: owner
                    .filter(|_| !is_checked)
                    .map(|(thread, step)| (*thread, step.statement)),
                stats: takers.filter_map(stat).collect(),
                is_used: is_checked || !users.is_empty(),
            }
        });
        let every = program.threads.iter().flatten().chain(&program.check);
        let opening = every.filter(|step| opens(step));
        Self {
            opening: opening.map(|step| step.statement).collect(),
            buffers: buffers.collect(),
            checks: checks.map(text).collect(),
            calls: calls
                .into_iter()
                .map(|calls| calls.into_iter().map(|(number, _)| number).collect())
                .collect(),
        }
    }

    /// The operations of a run with what they gave.
    fn history(&self, gave: Gave<'_>) -> History {
        let marks: Vec<Marked> = gave.marks.iter().map(marked).collect();
        let mut history = History::of(&marks);
        let returned: BTreeMap<usize, i64> = gave
            .results
            .iter()
            .filter(|result| result.kind == ResultKind::Returned)
            .map(|result| (result.statement, result.value))
            .collect();
        let mut counts: BTreeMap<Client, usize> = BTreeMap::new();
        for operation in &mut history.operations {
            let count = counts.entry(Arc::clone(&operation.client)).or_default();
            let thread = operation.client.last().map_or(0, |cpu| *cpu as usize);
            let statement = self.calls.get(thread).and_then(|calls| calls.get(*count));
            *count += 1;
            let Some(statement) = statement else {
                continue;
            };
            let result = returned.get(statement).copied();
            let result = result.map(|result| self.value(*statement, result));
            operation.results.extend(result);
            let own = self.contents(gave, |owner| owner == Some((thread, *statement)));
            operation.results.extend(own.map(|(_, content)| content));
        }
        let probe = |name: String, results: Vec<Value>| Operation {
            results,
            ..probe(name)
        };
        let checks = self.checks.iter().map(|(statement, text)| {
            let result = returned.get(statement).copied();
            let result = result.map(|result| self.value(*statement, result));
            probe(text.clone(), result.into_iter().collect())
        });
        let shared = self.contents(gave, |owner| owner.is_none());
        let shared = shared.map(|(name, content)| probe(format!("buffer {name}"), vec![content]));
        history.probes = checks.chain(shared).collect();
        history
    }

    /// What a call has returned. Which number a new descriptor gets means nothing: a call that fails may have had a lower
    /// one for a while.
    fn value(&self, statement: usize, result: i64) -> Value {
        if result >= 0 && self.opening.contains(&statement) {
            return Value::Text(b"a descriptor".to_vec());
        }
        value(result)
    }

    /// Numbers of files as they first appear in buffers: which number a new file gets means nothing.
    fn file_numbers(&self, gave: Gave<'_>) -> BTreeMap<u64, u64> {
        let mut numbers = BTreeMap::new();
        for (buffer, bytes) in self.buffers.iter().zip(gave.buffers) {
            for number in buffer
                .stats
                .iter()
                .filter_map(|stat| stat.file_number(bytes))
            {
                let next = to_u64(numbers.len()) + 1;
                numbers.entry(number).or_insert(next);
            }
        }
        numbers
    }

    /// What some buffers held at the end.
    fn contents<'a>(
        &'a self,
        gave: Gave<'a>,
        wanted: impl Fn(Option<(usize, usize)>) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a str, Value)> + 'a {
        let numbers = self.file_numbers(gave);
        let all = self.buffers.iter().zip(gave.buffers);
        all.filter(move |(buffer, _)| buffer.is_used && wanted(buffer.owner))
            .map(move |(buffer, bytes)| {
                let mut bytes = bytes.clone();
                for stat in &buffer.stats {
                    let number = stat.file_number(&bytes);
                    if let Some(known) = number.and_then(|number| numbers.get(&number))
                        && let Some(part) = bytes.get_mut(stat.number.clone())
                    {
                        part.copy_from_slice(&known.to_le_bytes());
                    }
                    let end = stat.times.end.min(bytes.len());
                    if let Some(part) = bytes.get_mut(stat.times.start..end) {
                        part.fill(0);
                    }
                }
                (buffer.name.as_str(), Value::Text(bytes))
            })
    }
}

/// Where a call leaves what in its buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stat {
    /// When something was done is no result.
    times: Range<usize>,
    /// The number of the file: only whether two are the same is a result.
    number: Range<usize>,
}

impl Stat {
    /// The number of a file that is there.
    fn file_number(&self, bytes: &[u8]) -> Option<u64> {
        let number = bytes.get(self.number.clone())?.try_into().ok()?;
        Some(u64::from_le_bytes(number)).filter(|number| *number != 0)
    }
}

/// Whether a call gets the address of a place in a range.
fn takes(step: &Step, range: &Range<usize>) -> bool {
    let is_address = |operand: &Operand| match operand {
        Operand::Address(offset) => range.contains(offset),
        Operand::Load { .. } | Operand::None | Operand::Value(_) => false,
    };
    matches!(step.code, Code::Call(_) | Code::Run) && step.operands.iter().any(is_address)
}

/// Whether a call gives a descriptor whose number the kernel chooses.
fn opens(step: &Step) -> bool {
    const OPENING: [&str; 20] = [
        "open",
        "openat",
        "openat2",
        "creat",
        "dup",
        "socket",
        "accept",
        "accept4",
        "epoll_create",
        "epoll_create1",
        "eventfd",
        "eventfd2",
        "inotify_init",
        "inotify_init1",
        "timerfd_create",
        "memfd_create",
        "pidfd_open",
        "userfaultfd",
        "fanotify_init",
        "io_uring_setup",
    ];
    match step.code {
        Code::Call(number) => {
            raddle_calls::of(number).is_some_and(|call| OPENING.contains(&call.name))
        }
        _ => false,
    }
}

/// What a call leaves in its buffer about a file.
fn stat(step: &Step) -> Option<Stat> {
    /// `st_atime` to `st_ctime` and `st_ino` of `struct stat`, `stx_atime` to `stx_mtime` and `stx_ino` of `struct statx`.
    const STATS: [(&str, Range<usize>, Range<usize>); 5] = [
        ("stat", 72..120, 8..16),
        ("fstat", 72..120, 8..16),
        ("lstat", 72..120, 8..16),
        ("newfstatat", 72..120, 8..16),
        ("statx", 64..128, 32..40),
    ];
    let Code::Call(number) = step.code else {
        return None;
    };
    let called = raddle_calls::of(number)?.name;
    let found = STATS.iter().find(|(name, ..)| *name == called);
    found.map(|(_, times, number)| Stat {
        times: times.clone(),
        number: number.clone(),
    })
}

fn marked(mark: &CallMark) -> Marked {
    Marked {
        context: Arc::clone(&mark.context),
        steps: mark.steps,
        shared_steps: None,
        mark: mark.mark.clone(),
    }
}

/// A call that fails says so by its number.
fn value(result: i64) -> Value {
    let shown = TestCase::show_result(result);
    if result < 0 && shown.starts_with("-E") {
        Value::Error(shown.into_bytes())
    } else {
        Value::Number(result)
    }
}

fn probe(name: String) -> Operation {
    let is_probe = true;
    let marks = [Mark::Begin { name, is_probe }, Mark::End];
    let marks = marks.map(|mark| Marked {
        context: Arc::from([u32::MAX]),
        steps: 0,
        shared_steps: None,
        mark,
    });
    History::of(&marks).probes.remove(0)
}

#[cfg(test)]
mod tests {
    use raddle_kernel::program::StatementResult;

    use super::*;

    const TEST: &str = r#"
setup:
    buffer own 8
    buffer both 8
    buffer unused 8
    buffer s 144
thread a:
    read(3, own, 8)
    read(3, both, 8)
thread b:
    read(3, both, 8)
check:
    stat("/tmp", s) == 0
"#;

    fn layout() -> Layout {
        let test = TestCase::parse("t.ktest", TEST, &mut |_| Err(String::new()));
        Layout::of(&test.expect("a test"))
    }

    #[test]
    fn buffers_belong_to_the_call_that_alone_gets_them() {
        let layout = layout();
        let owner = |name: &str| {
            let buffer = layout.buffers.iter().find(|buffer| buffer.name == name);
            buffer.map(|buffer| (buffer.owner, buffer.is_used))
        };
        assert_eq!(owner("own"), Some((Some((0, 0)), true)));
        assert_eq!(owner("both"), Some((None, true)));
        assert_eq!(owner("unused"), Some((None, false)));
        assert_eq!(owner("s"), Some((None, true)));
    }

    #[test]
    fn which_descriptor_is_given_means_nothing() {
        let text = "thread a:\n    f = open(\"/a\", 0, 0)\n    close(f)\nthread b:\n    sync()\n";
        let test = TestCase::parse("t.ktest", text, &mut |_| Err(String::new()));
        let layout = Layout::of(&test.expect("a test"));
        let [open, close] = layout.calls[0][..] else {
            panic!("two calls");
        };
        assert_eq!(layout.value(open, 6), layout.value(open, 7));
        assert_eq!(layout.value(open, -17), Value::Error(b"-EEXIST".to_vec()));
        assert_ne!(layout.value(close, 6), layout.value(close, 7));
    }

    #[test]
    fn results_buffers_and_checks_are_told_without_times() {
        let layout = layout();
        let context: Arc<[u32]> = Arc::from([0]);
        let mark = |mark: Mark| CallMark {
            context: Arc::clone(&context),
            steps: 0,
            mark,
        };
        let (name, is_probe) = ("read(3, own, 8)".to_owned(), false);
        let marks = [mark(Mark::Begin { name, is_probe }), mark(Mark::End)];
        let result = |statement, value| StatementResult {
            statement,
            kind: ResultKind::Returned,
            value,
        };
        let results = [result(0, 3), result(3, -2)];
        let buffer = |buffer: &Buffer| vec![7_u8; if buffer.name == "s" { 144 } else { 3 }];
        let buffers: Vec<Vec<u8>> = layout.buffers.iter().map(buffer).collect();
        let history = layout.history(Gave {
            marks: &marks,
            results: &results,
            buffers: &buffers,
        });
        let [read] = &history.operations[..] else {
            panic!("one operation");
        };
        assert_eq!(read.asked(), "read(3, own, 8)");
        assert_eq!(read.results[0], Value::Number(3));
        assert_eq!(read.results[1], Value::Text(vec![7; 3]));
        let names: BTreeSet<&str> = history.probes.iter().map(|o| &*o.call.name).collect();
        let expected = ["buffer both", "buffer s", "stat(\"/tmp\", s) == 0"];
        assert_eq!(names, BTreeSet::from(expected));
        assert_eq!(history.probes[0].given(), "error -ENOENT");
        let stat = history.probes.iter().find(|o| o.call.name == "buffer s");
        let Some(Value::Text(bytes)) = stat.map(|stat| &stat.results[0]) else {
            panic!("bytes");
        };
        assert_eq!((bytes[71], bytes[72], bytes[119], bytes[120]), (7, 0, 0, 7));
        // The first file that is asked for.
        assert_eq!(bytes[8..16], 1_u64.to_le_bytes());
    }
}
