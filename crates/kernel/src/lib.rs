//! `raddle kernel`: test cases of system calls, the agent that runs them in the guest, and what is made of a run.
//!
//! Reading order: `test_case` (what the user writes), [`program`] (what the agent gets), [`guest`] (agent and
//! initial file system), [`world`] (a booted guest, as schedulers see it).

pub mod campaign;
pub mod generate;
pub mod guest;
pub mod module;
pub mod program;
pub mod recording;
pub mod store;
pub mod symbols;
pub mod test_case;
pub mod world;
