//! World no. 1: Linux processes. A personality of the Linux kernel whose whole state is ours, deterministic
//! and snapshot-able. Nothing here knows who schedules, or why.
//!
//! ```text
//!   LinuxWorld (world.rs) ── runs threads on x86::Engine, dispatches system calls
//!      └── Kernel (kernel.rs)
//!            ├── frames        guest memory (undo log)
//!            ├── state         everything else the guest can see: plain data, Clone
//!            │     ├── processes, threads, address spaces, sleepers, futexes, timers
//!            │     └── files: inodes, open files, pipes, sockets, epoll, ...
//!            └── host          host files pinned at first use: not guest-visible state, survives restores
//! ```
//!
//! Reading order: `kernel` and `thread`/`process` (the state), `world` (the loop), `call` and `syscall` (what
//! a program can ask for), then one file per topic: `elf`, `load`, `exec`, `clone`, `life`, `wait`, `futex`,
//! `signal`, `mm`, `time`.

mod call;
mod clone;
mod credentials;
mod elf;
mod errno;
mod exec;
mod execution_timer;
mod files;
mod futex;
mod heap;
mod hooks;
mod images;
mod inspect;
mod ipc;
mod kernel;
mod life;
mod load;
mod marks;
mod mm;
mod observe;
mod peers;
mod process;
mod serve;
mod setup;
mod signal;
mod syscall;
mod thread;
mod time;
mod user;
mod wait;
mod world;

pub use files::{Catalogue, ContentId, Elsewhere, Exported, NotText, PinnedFile};
pub use heap::{Block, HeapError, HeapErrorKind, HeapWatch, Origin};
pub use inspect::PendingCall;
pub use marks::marked_places;
pub use peers::Act;
pub use raddle_config::hooks::Effect;
pub use raddle_x86::Observe;
pub use setup::{Mapping, Setup, StartError};
pub use signal::signal_name;
pub use syscall::{Support, SyscallInfo, syscall_table};
pub use world::{Halt, LinuxWorld, Statistics, Watch, describe_status};
