//! The Model Context Protocol on standard input and output: tools that an assistant calls, one after the other.
//!
//! This crate knows the protocol. It never knows what a tool does: calls are handed to the caller, on its own thread, as
//! plain data, and answers are texts, which are cut to a size that fits into a conversation.
//!
//! ```text
//!   assistant ◀──▶ rmcp on a thread of its own ──Call──▶ [`Calls`] on the caller's thread
//!                                              ◀─answer──
//! ```

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt as _};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::oneshot;

/// Bytes of an answer at most.
pub const ANSWER_MAX: usize = 16 << 10;

/// What a tool is for and what it takes.
#[derive(Debug, Clone, Copy)]
pub struct ToolText {
    pub name: &'static str,
    pub description: &'static str,
    /// The JSON schema of its arguments.
    pub arguments: &'static str,
}

/// Who serves.
#[derive(Debug, Clone)]
pub struct About {
    pub version: String,
    pub instructions: &'static str,
    pub tools: &'static [ToolText],
}

/// The conversation could not be had.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error("the conversation with the assistant broke off: {0}")]
    BrokenOff(String),
    #[error("no thread for the conversation could be started: {0}")]
    NoThread(#[from] std::io::Error),
}

/// A call of a tool.
#[derive(Debug)]
pub struct Call {
    pub tool: String,
    pub arguments: Value,
    answer: oneshot::Sender<Result<String, String>>,
}

impl Call {
    /// Answers; an error is a text that the assistant reads and can act on.
    pub fn answer(self, answer: Result<String, String>) {
        // An assistant that has left wants no answer.
        drop(self.answer.send(answer.map(cut).map_err(cut)));
    }
}

/// The calls of an assistant, in their order.
#[derive(Debug)]
pub struct Calls {
    calls: Receiver<Call>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Calls {
    /// The next call; none when the assistant has left.
    pub fn next(&self) -> Option<Call> {
        self.calls.recv().ok()
    }

    /// How the conversation ended.
    ///
    /// # Errors
    /// If it broke off.
    pub fn end(self) -> Result<(), ServeError> {
        let broken = || ServeError::BrokenOff(String::from("its thread panicked"));
        self.served.join().map_err(|_| broken())?
    }
}

/// Begins to serve on standard input and output.
///
/// # Errors
/// If there is no thread to be had.
pub fn serve(about: About) -> Result<Calls, ServeError> {
    let (to, calls) = channel();
    let server = Server { about, calls: to };
    let serve = std::thread::Builder::new().name(String::from("mcp"));
    let served = serve.spawn(move || converse(server))?;
    Ok(Calls { calls, served })
}

fn converse(server: Server) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let broken = |error: &dyn std::fmt::Display| ServeError::BrokenOff(error.to_string());
    let served = runtime.block_on(async {
        let transport = rmcp::transport::stdio();
        let running = match server.serve(transport).await {
            Ok(running) => running,
            // An assistant that leaves before it has said anything has done no harm.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(broken(&error)),
        };
        running.waiting().await.map_err(|error| broken(&error))?;
        Ok(())
    });
    // A read of standard input may still be waiting for more, which the server does not need.
    runtime.shutdown_background();
    served
}

/// Hands calls on.
struct Server {
    about: About,
    calls: Sender<Call>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("raddle", &*self.about.version))
            .with_instructions(self.about.instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.about.tools.iter().map(described).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (answer, answered) = oneshot::channel();
        let call = Call {
            tool: request.name.into_owned(),
            arguments: request.arguments.map_or(Value::Null, Value::Object),
            answer,
        };
        let gone = || ErrorData::internal_error("raddle is about to end", None);
        self.calls.send(call).map_err(|_| gone())?;
        let answer = answered.await.map_err(|_| gone())?;
        let result = match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        };
        Ok(result.into())
    }
}

fn described(text: &ToolText) -> Tool {
    let schema: JsonObject = serde_json::from_str(text.arguments).unwrap_or_default();
    let hints = ToolAnnotations::new()
        .read_only(true)
        .destructive(false)
        .idempotent(false)
        .open_world(false);
    let mut tool = Tool::new(text.name, text.description, Arc::new(schema));
    tool.annotations = Some(hints);
    tool
}

/// A text that fits into a conversation.
fn cut(mut text: String) -> String {
    if text.len() > ANSWER_MAX {
        let mut end = ANSWER_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let left = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[{left} more bytes were left out]\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_are_cut_between_characters_and_say_so() {
        let long = "ä".repeat(ANSWER_MAX);
        let short = cut(format!("x{long}"));
        assert!(short.len() < ANSWER_MAX + 100);
        assert!(short.ends_with("more bytes were left out]\n"), "{short}");
        assert_eq!(cut(String::from("all")), "all");
    }
}
