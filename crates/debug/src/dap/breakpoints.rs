//! Breakpoints as editors set them: all of a file, all functions, all data at once.

use std::collections::BTreeMap;

use raddle_sched::travel::{Rerun, Watched};
use serde_json::{Value, json};

use crate::debugger::{Breakpoint, Debugger};

/// What the editor has set so far.
#[derive(Debug, Default)]
pub(super) struct Breakpoints {
    lines: BTreeMap<String, Vec<Breakpoint>>,
    functions: Vec<Breakpoint>,
    data: Vec<Watched>,
}

impl Breakpoints {
    /// `setBreakpoints`: replaces those of one file.
    pub(super) fn set_lines<R: Rerun>(
        &mut self,
        debugger: &mut Debugger<R>,
        arguments: &Value,
    ) -> Value {
        let file = arguments["source"]["path"].as_str().unwrap_or_default();
        let mut set = Vec::new();
        let mut told = Vec::new();
        for wanted in list(&arguments["breakpoints"]) {
            let line = wanted["line"].as_u64().unwrap_or(0);
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            let (at, found) = debugger.line(file, line);
            told.push(match found {
                Some(line) => json!({"verified": true, "line": line}),
                None => json!({
                    "verified": false,
                    "line": line,
                    "message": "the program has no code of this line that has a debug description; was it compiled with -g?",
                }),
            });
            let condition = condition(wanted);
            set.push(Breakpoint { at, condition });
        }
        self.lines.insert(file.to_owned(), set);
        self.apply(debugger);
        json!({ "breakpoints": told })
    }

    /// `setFunctionBreakpoints`: replaces all of them.
    pub(super) fn set_functions<R: Rerun>(
        &mut self,
        debugger: &mut Debugger<R>,
        arguments: &Value,
    ) -> Value {
        self.functions.clear();
        let mut told = Vec::new();
        for wanted in list(&arguments["breakpoints"]) {
            let name = wanted["name"].as_str().unwrap_or_default();
            let at = debugger.function(name);
            told.push(if at.is_empty() {
                json!({"verified": false, "message": format!("there is no function `{name}`")})
            } else {
                json!({"verified": true})
            });
            let condition = condition(wanted);
            self.functions.push(Breakpoint { at, condition });
        }
        self.apply(debugger);
        json!({ "breakpoints": told })
    }

    /// `setDataBreakpoints`: replaces all of them. Their names are those that `dataBreakpointInfo` gave.
    pub(super) fn set_data<R: Rerun>(
        &mut self,
        debugger: &mut Debugger<R>,
        arguments: &Value,
    ) -> Value {
        self.data.clear();
        let mut told = Vec::new();
        for wanted in list(&arguments["breakpoints"]) {
            let found = wanted["dataId"].as_str().and_then(parse_data);
            let Some((addr, len)) = found else {
                told.push(json!({"verified": false, "message": "not a data breakpoint"}));
                continue;
            };
            let how = wanted["accessType"].as_str().unwrap_or("write");
            self.data.push(Watched {
                addr,
                len,
                reads: how != "write",
                writes: how != "read",
            });
            told.push(json!({"verified": true}));
        }
        self.apply(debugger);
        json!({ "breakpoints": told })
    }

    fn apply<R: Rerun>(&self, debugger: &mut Debugger<R>) {
        let lines = self.lines.values().flatten();
        debugger.breakpoints = lines.chain(&self.functions).cloned().collect();
        debugger.watched.clone_from(&self.data);
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn condition(wanted: &Value) -> Option<String> {
    let text = wanted["condition"].as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The name of a data breakpoint.
pub(super) fn data_name(addr: u64, len: u64) -> String {
    format!("{addr:#x}/{len}")
}

fn parse_data(name: &str) -> Option<(u64, u64)> {
    let (addr, len) = name.split_once('/')?;
    let addr = u64::from_str_radix(addr.strip_prefix("0x")?, 16).ok()?;
    Some((addr, len.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_data_breakpoints_are_read_back() {
        assert_eq!(parse_data(&data_name(0x4010, 8)), Some((0x4010, 8)));
        assert_eq!(parse_data("0x4010"), None);
        assert_eq!(parse_data("x/8"), None);
    }
}
