//! What a Linux system call is: its number, its name, and what it means for others than its caller.
//!
//! The table is data and stands once ([`of`], [`all`]). Code that wants to know whether a call creates a context or hands
//! bytes to a file asks for the property of its row and keeps no list of numbers. This crate knows no machine, no
//! personality and no schedule: how a call is *served* is the business of the world that serves it.
//!
//! Reading order: [`call`] (the properties), `table` (the rows), [`lookup`] (by number and by name).

pub mod call;
pub mod lookup;
mod table;

pub use call::{Call, Interrupts, Learns, MemoryChange, Unnoticed};
pub use lookup::{all, find, name, number, of};
