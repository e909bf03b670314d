//! A recording that is looked into: stacks, variables, steps in both directions.

use std::path::PathBuf;

use raddle_debug::debugger::Breakpoint;
use raddle_debug::expression::Meaning;
use raddle_debug::{Debugger, StackFrame, bytes_text};
use raddle_explore::Replayer;
use raddle_mcp::{Call, Calls};
use raddle_sched::travel::{Direction, Halted, Watched};
use raddle_stdx::width::to_usize;
use raddle_trace::Recording;
use raddle_world::ContextId;
use serde_json::Value;

use super::super::replay;
use super::{Refused, Session, text};

/// Frames that an answer shows.
const FRAMES_MAX: usize = 20;
/// Bytes of memory that an answer shows.
const BYTES_MAX: u64 = 256;

/// Opens the recording that a call names and answers the calls that follow; gives the call that opens another.
pub(super) fn serve(session: &mut Session, call: Call, calls: &Calls) -> Option<Call> {
    let (path, recording) = match read(&call.arguments) {
        Ok(read) => read,
        Err(why) => {
            call.answer(Err(why));
            return calls.next();
        }
    };
    let mut opened = match replay::debugger(&path, &recording) {
        Ok(debugger) => Opened { debugger },
        Err(failure) => {
            call.answer(Err(format!("{:#}", failure.error)));
            return calls.next();
        }
    };
    if call.arguments["at"] != "begin" {
        let end = opened.debugger.travel.end();
        opened.debugger.travel.go_to(end);
    }
    let answer = opened.place(opened.debugger.travel.current());
    call.answer(Ok(answer));
    while let Some(call) = calls.next() {
        if call.tool == "open" {
            return Some(call);
        }
        let answer = session.answer(&call.tool, &call.arguments);
        let answer = answer.unwrap_or_else(|| opened.answer(&call.tool, &call.arguments));
        call.answer(answer);
    }
    None
}

fn read(arguments: &Value) -> Result<(PathBuf, Recording), Refused> {
    let path = PathBuf::from(text(arguments, "recording")?);
    let recording = replay::read(&path).map_err(|error| format!("{error:#}"))?;
    Ok((path, recording))
}

struct Opened<'r> {
    debugger: Debugger<Replayer<'r>>,
}

impl Opened<'_> {
    fn answer(&mut self, tool: &str, arguments: &Value) -> Result<String, Refused> {
        match tool {
            "where" => {
                let who = self.thread(arguments)?;
                Ok(self.threads() + &self.place(who))
            }
            "step" => self.step(arguments),
            "variables" => self.variables(arguments),
            "evaluate" => {
                let (meaning, shown) = self.evaluate(arguments, text(arguments, "expression")?)?;
                Ok(match meaning {
                    Meaning::Typed(typed) => format!("{shown} ({})\n", typed.type_name()),
                    Meaning::Number(_) => shown + "\n",
                })
            }
            "memory" => self.memory(arguments),
            "who_wrote" => self.who_wrote(arguments),
            tool => Err(format!("there is no tool `{tool}`")),
        }
    }

    /// The thread that a call names, or the one that runs.
    fn thread(&self, arguments: &Value) -> Result<ContextId, Refused> {
        let Some(number) = arguments["thread"].as_u64() else {
            return Ok(self.debugger.travel.current());
        };
        let who = number
            .checked_sub(1)
            .and_then(|index| u32::try_from(index).ok());
        let who = who.map(ContextId);
        who.filter(|who| self.debugger.travel.is_live(*who))
            .ok_or_else(|| {
                format!(
                    "there is no thread {number} at this moment\n{}",
                    self.threads()
                )
            })
    }

    fn threads(&self) -> String {
        let threads = self.debugger.travel.threads();
        let lines = threads
            .iter()
            .map(|(who, label)| format!("thread {}: {label}\n", who.0 + 1));
        lines.collect()
    }

    /// The moment, and the stack of a thread.
    fn place(&mut self, who: ContextId) -> String {
        let travel = &self.debugger.travel;
        let mut told = format!(
            "step {} of {}, thread {}:\n",
            travel.now(),
            travel.end(),
            who.0 + 1
        );
        let frames = self.debugger.scene(who).frames(FRAMES_MAX);
        for (frame, number) in frames.iter().zip(0..) {
            told.push_str(&format!("  #{number} {}\n", frame_text(frame)));
        }
        told
    }

    fn step(&mut self, arguments: &Value) -> Result<String, Refused> {
        let who = self.thread(arguments)?;
        self.set_stops(arguments)?;
        let debugger = &mut self.debugger;
        let halted = match text(arguments, "how")? {
            "next" => debugger.next(who),
            "in" => debugger.step_in(who),
            "out" => debugger.step_out(who),
            "back" => debugger.step_back(who),
            "call" => debugger.reverse_finish(who),
            "instruction" => debugger.travel.step(who, Direction::Forward),
            "instruction-back" => debugger.travel.step(who, Direction::Backward),
            "continue" => debugger.proceed(Direction::Forward),
            "reverse-continue" => debugger.proceed(Direction::Backward),
            how => return Err(format!("`{how}` is not a way to step")),
        };
        let why = match halted {
            Halted::Breakpoint(_) => "came to `until`\n",
            Halted::Watch { .. } => "came to a write of `until_written`\n",
            Halted::Stepped(_) => "",
            Halted::Begin => "came to the beginning of the recording\n",
            Halted::End => "came to the end of the recording\n",
        };
        let who = self.debugger.travel.current();
        Ok(why.to_owned() + &self.place(who))
    }

    /// The stops of one step.
    fn set_stops(&mut self, arguments: &Value) -> Result<(), Refused> {
        self.debugger.breakpoints.clear();
        self.debugger.watched.clear();
        if let Some(until) = arguments["until"].as_str() {
            let line = until
                .rsplit_once(':')
                .and_then(|(file, line)| Some((file, line.parse().ok()?)));
            let at = match line {
                Some((file, line)) => self.debugger.line(file, line).0,
                None => self.debugger.function(until),
            };
            if at.is_empty() {
                return Err(format!(
                    "`{until}` has no code: name a FUNCTION or FILE:LINE"
                ));
            }
            let condition = arguments["condition"].as_str().map(str::to_owned);
            self.debugger.breakpoints.push(Breakpoint { at, condition });
        }
        if let Some(expression) = arguments["until_written"].as_str() {
            let (addr, len) = self.in_memory(arguments, expression)?;
            self.debugger.watched.push(Watched {
                addr,
                len,
                reads: false,
                writes: true,
            });
        }
        Ok(())
    }

    fn frame_number(arguments: &Value) -> usize {
        to_usize(arguments["frame"].as_u64().unwrap_or(0).min(1000))
    }

    fn evaluate(
        &mut self,
        arguments: &Value,
        expression: &str,
    ) -> Result<(Meaning, String), Refused> {
        let who = self.thread(arguments)?;
        let frame = Self::frame_number(arguments);
        let evaluated = self.debugger.evaluate(who, frame, expression);
        evaluated.map_err(|error| error.to_string())
    }

    /// Where what an expression stands for is, and its size.
    fn in_memory(&mut self, arguments: &Value, expression: &str) -> Result<(u64, u64), Refused> {
        match self.evaluate(arguments, expression)?.0 {
            Meaning::Typed(typed) => {
                let addr = typed.address();
                let addr = addr.ok_or_else(|| format!("`{expression}` is not in memory"))?;
                Ok((addr, typed.size().max(1)))
            }
            Meaning::Number(_) => Err(format!("`{expression}` is not in memory")),
        }
    }

    fn variables(&mut self, arguments: &Value) -> Result<String, Refused> {
        let who = self.thread(arguments)?;
        let number = Self::frame_number(arguments);
        let mut scene = self.debugger.scene(who);
        let frames = scene.frames(number + 1);
        let frame = frames.get(number);
        let frame = frame.ok_or_else(|| format!("there is no frame {number}"))?;
        let mut told = frame_text(frame) + "\n";
        for variable in scene.locals(frame) {
            let kind = if variable.is_parameter {
                "argument"
            } else {
                "local"
            };
            let value = variable.value.show(&mut scene);
            let type_name = variable.value.type_name();
            told.push_str(&format!(
                "  {kind} {}: {type_name} = {value}\n",
                variable.name
            ));
        }
        Ok(told)
    }

    fn memory(&mut self, arguments: &Value) -> Result<String, Refused> {
        let at = text(arguments, "at")?;
        let number = at
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let (addr, len) = match number {
            Some(addr) => (addr, 64),
            None => self.in_memory(arguments, at)?,
        };
        let count = arguments["count"]
            .as_u64()
            .unwrap_or(len)
            .clamp(1, BYTES_MAX);
        let who = self.thread(arguments)?;
        let bytes = self.debugger.scene(who).read(addr, to_usize(count));
        if bytes.is_empty() {
            return Err(format!("there is no memory at {addr:#x}"));
        }
        let lines = bytes.chunks(16).zip((addr..).step_by(16));
        let lines = lines.map(|(line, addr)| {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{addr:#x}: {}\n", hex.join(" "))
        });
        Ok(lines.collect())
    }

    fn who_wrote(&mut self, arguments: &Value) -> Result<String, Refused> {
        let expression = text(arguments, "expression")?;
        let (addr, len) = self.in_memory(arguments, expression)?;
        let Some(write) = self.debugger.last_write(addr, len) else {
            return Ok(format!(
                "nothing has written `{expression}` since the beginning of the recording\n"
            ));
        };
        let mut told = format!(
            "thread {} at step {}: {} became {}\n",
            write.thread.0 + 1,
            write.moment,
            bytes_text(&write.before),
            bytes_text(&write.after)
        );
        for (frame, number) in write.stack.iter().take(FRAMES_MAX).zip(0..) {
            told.push_str(&format!("  #{number} {}\n", frame_text(frame)));
        }
        Ok(told)
    }
}

fn frame_text(frame: &StackFrame) -> String {
    match &frame.place {
        Some((file, line)) => format!("{} ({file}:{line})", frame.function),
        None => frame.function.clone(),
    }
}
