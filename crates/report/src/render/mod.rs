//! One file per output form.

pub mod json;
pub mod junit;
pub mod sarif;
pub mod terminal;
