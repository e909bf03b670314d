//! One file per output form.

pub mod json;
