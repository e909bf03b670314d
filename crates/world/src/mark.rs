//! What a program says of its own operations, or what a world knows of those of a client.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where an operation begins and ends, what it was given and what it gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// An operation begins; a probe asks for the state when all others are over.
    Begin {
        name: String,
        is_probe: bool,
    },
    Argument(Value),
    Result(Value),
    End,
}

/// An argument or a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Value {
    Number(i64),
    Text(Vec<u8>),
    /// The operation itself says that it failed.
    Error(Vec<u8>),
}

impl Value {
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(bytes) => f.write_str(&words(bytes)),
            Self::Error(bytes) => write!(f, "error {}", words(bytes)),
        }
    }
}

fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.escape_debug().to_string()
}
