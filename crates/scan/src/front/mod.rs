//! The C front end: from the bytes of a file to its functions as flat lists of events.

pub(crate) mod ast;
mod conditional;
mod define;
pub(crate) mod event;
pub(crate) mod lex;
pub(crate) mod lower;
pub(crate) mod parse;
pub(crate) mod unit;
pub(crate) mod words;
