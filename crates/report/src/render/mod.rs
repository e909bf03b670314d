//! One file per output form.

mod choice;
pub mod json;
pub mod junit;
pub mod sarif;
pub mod terminal;
