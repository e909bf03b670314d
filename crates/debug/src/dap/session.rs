//! What an editor asks for, answered from a recorded run.

use std::io::{self, BufRead, Write};

use raddle_sched::travel::{Direction, Halted, Rerun};
use raddle_world::ContextId;
use serde_json::{Value, json};

use super::breakpoints::{Breakpoints, data_name};
use super::variables::References;
use super::wire::{Request, Wire};
use crate::debugger::Debugger;
use crate::expression::{self, Meaning};
use crate::scene::FRAMES_MAX;
use crate::value::{Typed, bytes_text};

/// Why a request was not answered.
type Refused = String;

/// A recorded run in conversation with an editor.
pub(super) struct Session<R: Rerun> {
    debugger: Debugger<R>,
    breakpoints: Breakpoints,
    references: References,
}

/// What a request leads to: an answer, and perhaps a stop elsewhere.
enum Reply {
    Body(Value),
    Moved(Value, Halted),
}

impl<R: Rerun> Session<R> {
    pub(super) fn new(mut debugger: Debugger<R>, at_end: bool) -> Self {
        if at_end {
            let end = debugger.travel.end();
            debugger.travel.go_to(end);
        }
        Self {
            debugger,
            breakpoints: Breakpoints::default(),
            references: References::default(),
        }
    }

    pub(super) fn serve<I: BufRead, O: Write>(
        &mut self,
        wire: &mut Wire<I, O>,
        request: &Request,
    ) -> io::Result<()> {
        match self.reply(request) {
            Ok(Reply::Body(body)) => {
                wire.answer(request, body)?;
                if request.command == "configurationDone" {
                    let who = number_of(self.debugger.travel.current());
                    let body =
                        json!({"reason": "entry", "threadId": who, "allThreadsStopped": true});
                    wire.event("stopped", body)?;
                }
                Ok(())
            }
            Ok(Reply::Moved(body, halted)) => {
                wire.answer(request, body)?;
                let stopped = self.stopped(halted);
                wire.event("stopped", stopped)
            }
            Err(why) => wire.refuse(request, &why),
        }
    }

    fn reply(&mut self, request: &Request) -> Result<Reply, Refused> {
        let arguments = &request.arguments;
        let moved = |halted| Reply::Moved(Value::Null, halted);
        let body = match request.command.as_str() {
            "threads" => self.threads(),
            "stackTrace" => self.stack(arguments)?,
            "scopes" => {
                let frame = arguments["frameId"].as_u64().unwrap_or(0);
                let scopes = self.references.scopes(frame);
                scopes.ok_or("the frame is gone: the run has moved")?
            }
            "variables" => self.variables(arguments)?,
            "evaluate" => self.evaluate(arguments)?,
            "setBreakpoints" => self.breakpoints.set_lines(&mut self.debugger, arguments),
            "setFunctionBreakpoints" => self
                .breakpoints
                .set_functions(&mut self.debugger, arguments),
            "setDataBreakpoints" => self.breakpoints.set_data(&mut self.debugger, arguments),
            "dataBreakpointInfo" => self.data_info(arguments)?,
            "setExceptionBreakpoints" => json!({"breakpoints": []}),
            "source" => return Err("the file is not on this machine".to_owned()),
            "configurationDone" | "pause" | "disconnect" | "terminate" => Value::Null,
            "continue" => {
                let halted = self.debugger.proceed(Direction::Forward);
                return Ok(Reply::Moved(json!({"allThreadsContinued": true}), halted));
            }
            "reverseContinue" => return Ok(moved(self.debugger.proceed(Direction::Backward))),
            "next" | "stepIn" | "stepOut" | "stepBack" => {
                return Ok(moved(self.step(&request.command, arguments)?));
            }
            other => {
                return Err(format!(
                    "`{other}` is not supported: a recording can be looked at, not changed"
                ));
            }
        };
        Ok(Reply::Body(body))
    }

    fn step(&mut self, command: &str, arguments: &Value) -> Result<Halted, Refused> {
        let who = self.thread(arguments)?;
        if arguments["granularity"] == "instruction" && command != "stepOut" {
            let direction = match command {
                "stepBack" => Direction::Backward,
                _ => Direction::Forward,
            };
            return Ok(self.debugger.travel.step(who, direction));
        }
        Ok(match command {
            "next" => self.debugger.next(who),
            "stepIn" => self.debugger.step_in(who),
            "stepOut" => self.debugger.step_out(who),
            _ => self.debugger.step_back(who),
        })
    }

    /// The thread that a request names.
    fn thread(&self, arguments: &Value) -> Result<ContextId, Refused> {
        let number = arguments["threadId"].as_u64().unwrap_or(0);
        let index = number.checked_sub(1).and_then(|n| u32::try_from(n).ok());
        let who = index.map(ContextId);
        who.filter(|who| self.debugger.travel.is_live(*who))
            .ok_or_else(|| format!("there is no thread {number} at this moment"))
    }

    /// The event that tells where the run stands now. Everything that the editor knew may be another.
    fn stopped(&mut self, halted: Halted) -> Value {
        self.references.forget();
        let travel = &self.debugger.travel;
        let who = number_of(travel.current());
        let step = format!("step {} of {}", travel.now(), travel.end());
        let (reason, text) = match halted {
            Halted::Breakpoint(_) => ("breakpoint", step),
            Halted::Watch { watched, .. } => {
                let what = format!("{} bytes at {:#x}", watched.len, watched.addr);
                ("data breakpoint", format!("{what}, {step}"))
            }
            Halted::Stepped(_) => ("step", step),
            Halted::Begin => ("entry", "the beginning of the recording".to_owned()),
            Halted::End => ("pause", "the end of the recording".to_owned()),
        };
        json!({
            "reason": reason,
            "description": text,
            "threadId": who,
            "allThreadsStopped": true,
        })
    }

    fn threads(&self) -> Value {
        let threads = self.debugger.travel.threads();
        let threads: Vec<Value> = threads
            .iter()
            .map(|(who, name)| json!({"id": number_of(*who), "name": name}))
            .collect();
        json!({ "threads": threads })
    }

    fn stack(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let who = self.thread(arguments)?;
        let number = |name: &str| {
            arguments[name]
                .as_u64()
                .and_then(|n| usize::try_from(n).ok())
        };
        let first = number("startFrame").unwrap_or(0);
        let count = number("levels")
            .filter(|count| *count > 0)
            .unwrap_or(FRAMES_MAX);
        let frames = self.debugger.scene(who).frames(FRAMES_MAX);
        let total = frames.len();
        let shown: Vec<Value> = frames
            .iter()
            .skip(first)
            .take(count)
            .map(|frame| {
                let mut told = json!({
                    "id": self.references.add_frame(who, frame),
                    "name": frame.function,
                    "line": 0,
                    "column": 0,
                    "instructionPointerReference": format!("{:#x}", frame.pc),
                });
                match &frame.place {
                    Some((file, line)) => {
                        let name = file.rsplit('/').next().unwrap_or_default();
                        told["source"] = json!({"name": name, "path": &**file});
                        told["line"] = (*line).into();
                        told["column"] = 1.into();
                    }
                    None => told["presentationHint"] = "subtle".into(),
                }
                told
            })
            .collect();
        Ok(json!({"stackFrames": shown, "totalFrames": total}))
    }

    fn variables(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let gone = "these variables are gone: the run has moved";
        let reference = arguments["variablesReference"].as_u64().unwrap_or(0);
        let who = self.references.thread(reference).ok_or(gone)?;
        let mut scene = self.debugger.scene(who);
        let listed = self.references.variables(&mut scene, reference);
        listed.ok_or_else(|| gone.to_owned())
    }

    /// The thread and frame that a request is about.
    fn frame(&self, arguments: &Value) -> (ContextId, Option<crate::scene::StackFrame>) {
        let known = arguments["frameId"].as_u64();
        match known.and_then(|number| self.references.frame(number)) {
            Some((who, frame)) => (*who, Some(frame.clone())),
            None => (self.debugger.travel.current(), None),
        }
    }

    /// The meaning of an expression for a frame that the editor knows, or for the innermost one.
    fn meaning(&mut self, arguments: &Value, text: &str) -> Result<(Meaning, String), Refused> {
        let (who, frame) = self.frame(arguments);
        let mut scene = self.debugger.scene(who);
        let frame = frame.or_else(|| scene.frames(1).into_iter().next());
        let meaning = expression::evaluate(&mut scene, frame.as_ref(), text);
        let meaning = meaning.map_err(|error| error.to_string())?;
        let shown = meaning.show(&mut scene);
        Ok((meaning, shown))
    }

    fn evaluate(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let text = arguments["expression"].as_str().unwrap_or_default().trim();
        if arguments["context"] == "repl"
            && let Some(expression) = text.strip_prefix("who-wrote ")
        {
            let told = self.who_wrote(arguments, expression)?;
            return Ok(json!({"result": told, "variablesReference": 0}));
        }
        let (meaning, shown) = self.meaning(arguments, text)?;
        let Meaning::Typed(typed) = meaning else {
            return Ok(json!({"result": shown, "variablesReference": 0}));
        };
        let (who, _) = self.frame(arguments);
        Ok(json!({
            "result": shown,
            "type": typed.type_name(),
            "variablesReference": self.references.reference(who, &typed),
        }))
    }

    /// Who wrote what an expression stands for last, in one sentence.
    fn who_wrote(&mut self, arguments: &Value, expression: &str) -> Result<String, Refused> {
        let typed = self.in_memory(arguments, expression)?;
        let addr = typed.address().unwrap_or(0);
        let Some(write) = self.debugger.last_write(addr, typed.size().max(1)) else {
            return Ok(format!(
                "nothing has written `{expression}` since the beginning of the recording"
            ));
        };
        let mut names = self.debugger.travel.all_threads().iter();
        let name = names.find(|(id, _)| *id == write.thread);
        let name = name.map_or("a thread that is gone", |(_, name)| name.as_str());
        let place = write.stack.first().map_or_else(String::new, |frame| {
            let line = frame.place.as_ref();
            let line = line.map_or_else(String::new, |(file, line)| format!(" ({file}:{line})"));
            format!(" in {}{line}", frame.function)
        });
        Ok(format!(
            "{name}{place}, step {}: {} became {}",
            write.moment,
            bytes_text(&write.before),
            bytes_text(&write.after)
        ))
    }

    /// What an expression stands for, if that is in memory.
    fn in_memory(&mut self, arguments: &Value, text: &str) -> Result<Typed, Refused> {
        match self.meaning(arguments, text)? {
            (Meaning::Typed(typed), _) if typed.address().is_some() => Ok(*typed),
            _ => Err(format!("`{text}` is not in memory")),
        }
    }

    fn data_info(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let name = arguments["name"].as_str().unwrap_or_default().to_owned();
        // A child of a structure is named by what it is part of.
        let reference = arguments["variablesReference"].as_u64().unwrap_or(0);
        let found = match self.references.thread(reference) {
            Some(who) => {
                let mut scene = self.debugger.scene(who);
                self.references.child(&mut scene, reference, &name)
            }
            None => self.in_memory(arguments, &name).ok(),
        };
        let Some((typed, addr)) = found.and_then(|typed| {
            let addr = typed.address()?;
            Some((typed, addr))
        }) else {
            let why = format!("`{name}` is not in memory");
            return Ok(json!({"dataId": null, "description": why}));
        };
        let size = typed.size().clamp(1, 8);
        Ok(json!({
            "dataId": data_name(addr, size),
            "description": format!("{name} ({size} bytes at {addr:#x})"),
            "accessTypes": ["read", "write", "readWrite"],
        }))
    }
}

/// Editors count threads from one.
fn number_of(who: ContextId) -> u64 {
    u64::from(who.0) + 1
}
