//! Recordings of `raddle run --record`: the same run again, with its output and its exit status.

use anyhow::ensure;
use raddle_explore::ordinary::{Past, follow};
use raddle_linux::LinuxWorld;
use raddle_report::words::counted;
use raddle_sched::{End, Reaction};
use raddle_trace::Recording;
use raddle_world::{Event, EventKind};

use crate::commands::run::{cannot_start, conclude, pass_on};
use crate::event_text;
use crate::exit::Code;
use crate::interrupt::Interrupt;
use crate::message;
use crate::output::{Destination, Output};

/// Has a run again so many times; its output is passed on, and its events are written, the first time.
pub(super) fn replay(
    recording: &Recording,
    recorded: Past,
    times: u32,
    trace: Option<&Destination>,
) -> anyhow::Result<Code> {
    let interrupt = Interrupt::listen()?;
    let mut first = Listener::new(trace)?;
    let (mut world, end) = once(recording, recorded, &interrupt, &mut first)?;
    first.close()?;
    for _ in 1..times {
        once(recording, recorded, &interrupt, &mut Listener::default())?;
    }
    message::note(&format!(
        "replayed {} bit for bit: {}, digest {:016x}",
        counted(times.into(), "time"),
        counted(recorded.ordinary.steps, "instruction"),
        recorded.run_digest
    ));
    conclude(end, recording.limits.steps, &mut world)
}

fn once(
    recording: &Recording,
    recorded: Past,
    interrupt: &Interrupt,
    listener: &mut Listener,
) -> anyhow::Result<(LinuxWorld, End)> {
    let setup = raddle_explore::setup(&recording.inputs);
    let mut world = LinuxWorld::new(setup).map_err(cannot_start)?;
    if listener.trace.is_some() {
        world.set_tracing(true);
        let hooks = &recording.inputs.hooks;
        world.set_hooks(raddle_config::hooks::with_standard(hooks));
    }
    let mut trouble = None;
    let mut is_interrupted = false;
    let (end, past) = follow(&mut world, recording, &mut |_, events| {
        if let Err(error) = listener.events(events) {
            trouble = Some(error);
        }
        is_interrupted = interrupt.is_requested();
        match is_interrupted || trouble.is_some() {
            true => Reaction::Stop,
            false => Reaction::GoOn,
        }
    });
    if let Some(error) = trouble {
        return Err(error);
    }
    if past != recorded {
        let made = past.ordinary.steps;
        ensure!(
            !is_interrupted,
            "interrupted after {made} of {}: up to there nothing was compared",
            counted(recorded.ordinary.steps, "instruction")
        );
        return Err(diverges(recording, past, recorded));
    }
    Ok((world, end))
}

/// What is different about a run that should be the recorded one.
pub(super) fn diverges(recording: &Recording, past: Past, recorded: Past) -> anyhow::Error {
    let (now, then) = (past.ordinary, recorded.ordinary);
    let what = if now.steps != then.steps {
        format!(
            "it makes {} instead of {}",
            counted(now.steps, "instruction"),
            then.steps
        )
    } else if now.ending != then.ending {
        "it ends in another way".to_owned()
    } else if now.output_digest != then.output_digest {
        "the program writes something else".to_owned()
    } else {
        "its digest is another one".to_owned()
    };
    anyhow::anyhow!(
        "the replay diverges: {what}, although no file of `{}` has changed: another raddle or another machine may have made the recording, or the recorded run saw files or folders come and go",
        recording.inputs.program
    )
}

/// Hears the events of a run; most runs have no reader of their events.
#[derive(Default)]
struct Listener {
    passes_on: bool,
    trace: Option<Output>,
}

impl Listener {
    fn new(trace: Option<&Destination>) -> anyhow::Result<Self> {
        Ok(Self {
            passes_on: true,
            trace: trace.map(Output::open).transpose()?,
        })
    }

    fn events(&mut self, events: &[Event]) -> anyhow::Result<()> {
        for event in events {
            // That the reader of the output is gone now is nothing that the recorded program would hear of.
            if let EventKind::Output { descriptor, bytes } = &event.kind
                && self.passes_on
            {
                self.passes_on = pass_on(*descriptor, bytes)?;
            }
            if let Some(trace) = &mut self.trace {
                trace.write(&format!("{}\n", event_text::line(event)))?;
            }
        }
        Ok(())
    }

    fn close(self) -> anyhow::Result<()> {
        self.trace.map_or(Ok(()), Output::close)
    }
}
