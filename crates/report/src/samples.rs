//! Findings with every kind of evidence, for the tests of renderers.

use crate::action::{Action, Want};
use crate::evidence::{
    Block, Context, Edge, EdgeKind, Held, Locks, Moment, Run, Search, Step, Value, Wait,
};
use crate::finding::{Confidence, Finding, RecordingFile, Severity};
use crate::order::set_clocks;
use crate::place::{Code, Frame, Place, Word};
use crate::serial::{Compared, Effect, SerialOrder, SerialOrders};

pub(crate) fn place(file: &str, line: u32, function: &str) -> Place {
    Place {
        file: file.into(),
        line,
        column: 5,
        function: function.into(),
    }
}

/// Every action there is.
pub(crate) fn actions() -> Vec<Action> {
    let (call, offset, writes) = (Some("read(p, 1)".to_owned()), 4, true);
    let mut actions = vec![
        Action::Read { in_call: false },
        Action::Read { in_call: true },
        Action::Write { in_call: false },
        Action::Update,
        Action::AtomicUpdate,
        Action::Lock,
        Action::Unlock,
        Action::WaitBegin,
        Action::WaitEnd,
        Action::Notify { everyone: true },
        Action::Barrier,
        Action::Handle {
            signal: "SIGUSR1".into(),
        },
        Action::Free,
        Action::Crash,
        Action::GiveUp,
        Action::EndProgram,
        Action::UseAfterFree { writes, offset },
        Action::Overflow { writes, offset },
        Action::FreeAgain,
        Action::FreeOther,
        Action::RunOn,
        Action::Interrupt {
            vector: 0xFB,
            call: call.clone(),
        },
        Action::Stop {
            call: call.clone(),
            in_user: false,
        },
        Action::Sleep { call },
        Action::Test,
        Action::Loop,
        Action::Call,
        Action::Return,
        Action::Break,
        Action::Jump,
        Action::Evaluate,
    ];
    let wants = [
        Want::Lock,
        Want::Signal,
        Want::End,
        Want::Io,
        Want::Child,
        Want::SystemSignal,
        Want::Time,
        Want::Other,
    ];
    actions.extend(wants.map(|on| Action::Blocked { on }));
    actions
}

/// A step with all that can be known of its instruction.
fn known_step(finding: &mut Finding, context: usize, action: Action, line: u32) -> Step {
    let at = place("/project/src/bank.c", line, "deposit");
    finding.quote(&at, |at| Some(format!("line {} < of source", at.line)));
    let stack = vec![
        Frame::own(at.clone()),
        Frame {
            place: place("/usr/lib/libc.so.6", 0, "start_thread"),
            is_library: true,
        },
    ];
    Step {
        object: action.is_passing().then(|| "`balance`".into()),
        address: Some(Word(0x5555_5555_8010)),
        size: Some(4),
        code: Some(Code {
            image: "/project/bank".into(),
            offset: Word(0x1136),
        }),
        stack: finding.stack(stack),
        locks: Locks::Known(vec![Held {
            name: "`audit`".into(),
            address: Some(Word(0x5555_5555_8040)),
            is_shared: true,
            section: Some(3),
        }]),
        ..Step::new(context, action, at)
    }
}

fn searched() -> Search {
    Search {
        schedule: 3,
        preemptions: 1,
        switches: 4,
        torn: 1,
        clock_jumps: 1,
        is_minimal: true,
        replays: 2,
        replays_same: 2,
    }
}

/// A lost update with all that can be known of it.
pub(crate) fn lost_update() -> Finding {
    let mut finding = Finding::new("wrong-exit", Severity::Error, Confidence::Confirmed);
    finding.title = "exit status 1 instead of 0".into();
    finding.why = "an update is <lost> & \"gone\"".into();
    finding.fingerprint = "1c9e00ff1c9e00ff".into();
    finding.objects = vec!["`balance`".into()];
    for (number, label) in ["thread 1 (main)", "thread 2", "thread 3"]
        .iter()
        .enumerate()
    {
        let main = place("/project/src/bank.c", 20, "main");
        finding.contexts.push(Context {
            path: if number == 0 { vec![0] } else { vec![0, 1] },
            created: (number > 0).then_some(main),
            ..Context::named(*label)
        });
    }
    let value = |bits| {
        Some(Value {
            bits: Word(bits),
            size: 4,
        })
    };
    let read = Action::Read { in_call: false };
    let write = Action::Write { in_call: false };
    let told = [
        (1, read.clone(), 6, value(100), value(100)),
        (2, read.clone(), 6, value(100), value(100)),
        (2, write.clone(), 7, value(100), value(150)),
        (1, write, 7, value(150), value(150)),
        (0, read, 22, value(150), value(150)),
        (0, Action::EndProgram, 23, None, None),
    ];
    for ((context, action, line, before, after), number) in told.into_iter().zip(1..) {
        let step = Step {
            before,
            after,
            global_step: Some(number * 100),
            repeats: number % 2,
            ..known_step(&mut finding, context, action, line)
        };
        finding.steps.push(step);
    }
    let edge = |kind, from, to| Edge { kind, from, to };
    finding.edges = vec![
        edge(EdgeKind::Switch, 0, 1),
        edge(EdgeKind::Switch, 2, 3),
        edge(EdgeKind::HappensBefore, 3, 4),
        edge(EdgeKind::ReadsFrom, 3, 4),
    ];
    set_clocks(&mut finding);
    finding.expected = Some(Run {
        title: "without the preemption of thread 2 the program ends with status 0".into(),
        steps: finding.steps.clone(),
        edges: finding.edges.clone(),
    });
    finding.console = "balance is 150\n".into();
    finding.search = Some(searched());
    finding.recording = Some(RecordingFile {
        file: "bank-WE-1c9e.raddle".into(),
        command: "raddle replay bank-WE-1c9e.raddle".into(),
    });
    finding.notes = vec!["a note".into()];
    finding
}

/// Two threads that wait for each other.
pub(crate) fn deadlock() -> Finding {
    let mut finding = Finding::new("deadlock", Severity::Error, Confidence::Confirmed);
    finding.title = "deadlock: thread 2 and thread 3 wait for each other".into();
    finding.fingerprint = "9eb4000000000000".into();
    finding.contexts = ["thread 2", "thread 3"].map(Context::named).to_vec();
    for (context, lock) in [(0, "`left`"), (1, "`right`")] {
        finding.waits.push(Wait {
            context,
            step: finding.steps.len(),
            object: Some(lock.into()),
            holder: Some(1 - context),
            in_circle: true,
        });
        let action = Action::Blocked { on: Want::Lock };
        finding.steps.push(Step {
            object: Some(lock.into()),
            locks: Locks::named([format!("other than {lock}")]),
            ..Step::new(context, action, place("/project/src/dead.c", 6, "one"))
        });
    }
    finding
}

/// One of the source, with a path as the user has named it.
pub(crate) fn scanned() -> Finding {
    let mut finding = Finding::new("lock-leak", Severity::Warning, Confidence::StaticHigh);
    finding.title = "`m` stays locked".into();
    finding.fingerprint = "00ff000000000000".into();
    finding.contexts = vec![Context::named("pattern 1")];
    finding.steps = vec![Step {
        object: Some("mutex_lock(&m)".into()),
        locks: Locks::named([]),
        ..Step::new(0, Action::Call, place("fs/a b.c", 12, "open"))
    }];
    finding
}

/// One with every action, a heap block and nothing else that is known.
fn everything() -> Finding {
    let mut finding = Finding::new("use-after-free", Severity::Note, Confidence::Predicted);
    finding.contexts = vec![Context::named("thread 2")];
    let step = |action| Step::new(0, action, Place::default());
    finding.steps = actions().into_iter().map(step).collect();
    finding.steps_dropped = 7;
    let moment = |stack| Moment { context: 0, stack };
    finding.block = Some(Block {
        address: Word(u64::MAX),
        size: 8,
        allocated: moment(None),
        freed: Some(moment(None)),
    });
    finding
}

/// A run that neither of two orders explains.
pub(crate) fn serial() -> SerialOrders {
    let order = |order: &str, results, state| SerialOrder {
        order: order.into(),
        same_results: Some(results),
        same_state: Some(state),
    };
    SerialOrders {
        orders: vec![order("A B", false, true), order("B A", false, false)],
        nearest: "A B".into(),
        differences: vec![Compared {
            client: Some("B".into()),
            operation: "incr hits".into(),
            seen: "2".into(),
            expected: Some("3".into()),
            is_same: false,
        }],
        ..SerialOrders::broken_off(Effect::Semantic, Some(false))
    }
}

/// Findings that have, together, all there is.
pub(crate) fn all() -> Vec<Finding> {
    vec![lost_update(), deadlock(), scanned(), everything()]
}
