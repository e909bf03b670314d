//! Test cases: a short text with set-up calls, one section of system calls per thread, and checks.
//!
//! ```text
//! # Two writers on one pipe.
//! setup:
//!     buffer p 8
//!     pipe2(p, O_NONBLOCK) == 0
//! thread writer:
//!     n = write(p.i32[1], "hello", 5) in {5, -EPIPE}
//! thread closer:
//!     close(p.i32[0]) == 0
//! check:
//!     assert n == 5 || n == -EPIPE
//! ```
//!
//! Names are shared by all sections; a call's result is negative for errors, as the kernel returns it.

pub mod constant;
mod data;
mod error;
mod expression;
mod parse;
pub mod template;
mod token;

pub use error::TestCaseError;

use crate::program::{Code, Operation, Program};

/// A test that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCase {
    /// Where it was read from.
    pub path: String,
    pub text: String,
    pub threads: Vec<String>,
    /// All statements that do something, by their numbers.
    pub statements: Vec<Statement>,
    /// Content of the modules that it loads.
    pub modules: Vec<Vec<u8>>,
    pub program: Program,
    pub buffers: Vec<Buffer>,
}

/// A buffer that the test names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    pub name: String,
    /// In the data area.
    pub offset: usize,
    pub size: usize,
}

/// A statement, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// As it is written.
    pub text: String,
    /// One-based.
    pub line: usize,
    pub section: Section,
}

/// Where a statement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Setup,
    Thread(usize),
    Check,
}

/// Finds the content of a kernel module that a test names; the error says what was tried.
pub type ModuleLoader<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, String>;

impl TestCase {
    /// Reads a test case.
    pub fn parse(path: &str, text: &str, modules: ModuleLoader<'_>) -> Result<Self, TestCaseError> {
        parse::parse(text, modules)
            .map(|parsed| Self {
                path: path.to_owned(),
                text: text.to_owned(),
                ..parsed
            })
            .map_err(|mistake| mistake.locate(path, text))
    }

    /// For each thread the numbers and texts of its calls, in their order.
    pub fn calls(&self) -> Vec<Vec<(usize, String)>> {
        let of_thread = |operations: &Vec<Operation>| {
            let calls = operations
                .iter()
                .filter(|one| matches!(one.code, Code::Call(_) | Code::Run));
            let numbers = calls.map(|call| call.statement);
            numbers
                .map(|number| (number, self.statements[number].text.clone()))
                .collect()
        };
        self.program.threads.iter().map(of_thread).collect()
    }

    /// The comment at the top, as one line.
    pub fn description(&self) -> String {
        self.text
            .lines()
            .take_while(|line| line.starts_with('#'))
            .map(|line| line.trim_start_matches('#').trim())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// A returned value as people read it: `-EAGAIN` or a number.
    pub fn show_result(value: i64) -> String {
        match constant::error_name(-value) {
            Some(name) if value < 0 => format!("-{name}"),
            _ => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
