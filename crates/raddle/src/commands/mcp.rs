//! `raddle mcp`: raddle as tools of a coding assistant, over the Model Context Protocol.
//!
//! Reading order: [`Mcp`], `tools` (what an assistant is told), `search` (explore and predict), `opened` (a recording that
//! is looked into).

mod opened;
mod search;
mod tools;

use clap::Args;
use raddle_mcp::{About, Call, Calls};
use serde_json::Value;
use tempfile::TempDir;

use crate::exit::{Code, Failure};
use search::Found;

/// Serve raddle's powers to a coding assistant over the Model Context Protocol on standard input and output.
#[derive(Debug, Args)]
#[command(
    after_help = "Assistants start this command themselves; docs/src/commands/mcp.md says how to tell them.\nPrograms run in raddle's own machine and change nothing on the host; recordings go to a temporary folder that is removed at the end, unless --output names another.\n\nExample:\n  raddle mcp"
)]
pub(crate) struct Mcp {
    /// Folder for recordings; default: a temporary one.
    #[arg(long, value_name = "DIR")]
    output: Option<std::path::PathBuf>,
}

/// What an assistant has done so far.
pub(super) struct Session {
    found: Found,
}

/// Why a tool has no answer, in words that the assistant can act on.
type Refused = String;

impl Mcp {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let temporary = match &self.output {
            Some(_) => None,
            None => Some(TempDir::new().map_err(anyhow::Error::from)?),
        };
        let folder = self
            .output
            .or_else(|| Some(temporary.as_ref()?.path().to_path_buf()));
        let mut session = Session {
            found: Found::in_folder(folder.unwrap_or_default()),
        };
        let about = About {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: tools::INSTRUCTIONS,
            tools: tools::TOOLS,
        };
        let calls = raddle_mcp::serve(about).map_err(anyhow::Error::from)?;
        let mut next = calls.next();
        while let Some(call) = next {
            next = session.serve(call, &calls);
        }
        calls.end().map_err(anyhow::Error::from)?;
        Ok(Code::Clean)
    }
}

impl Session {
    /// Answers a call, and those that follow it as long as a recording is open; gives the next one.
    fn serve(&mut self, call: Call, calls: &Calls) -> Option<Call> {
        if call.tool == "open" {
            return opened::serve(self, call, calls);
        }
        let answer = self.answer(&call.tool, &call.arguments);
        let unknown = || Err(String::from("no recording is open: call `open` first"));
        call.answer(answer.unwrap_or_else(unknown));
        calls.next()
    }

    /// The answer of a tool that needs no open recording; none if it does.
    fn answer(&mut self, tool: &str, arguments: &Value) -> Option<Result<String, Refused>> {
        Some(match tool {
            "explore" | "predict" => self.found.search(tool, arguments),
            "findings" => Ok(self.found.list()),
            "story" => search::story(arguments),
            "run_without" => search::run_without(arguments),
            tool if tools::TOOLS.iter().any(|known| known.name == tool) => return None,
            tool => Err(format!("there is no tool `{tool}`")),
        })
    }
}

/// A text among the arguments.
fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, Refused> {
    let value = arguments[name].as_str();
    value.ok_or_else(|| format!("the argument `{name}` is missing: it is a text"))
}
