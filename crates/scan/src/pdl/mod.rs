//! The pattern description language: from text to [`ast::Pattern`]. The grammar is in the manual.

pub(crate) mod ast;
pub(crate) mod error;
mod parse;
pub(crate) mod print;
mod token;

pub(crate) use parse::{parse, parse_counted};
