//! World no. 1: Linux processes. A personality of the Linux kernel whose whole state is ours, deterministic
//! and snapshot-able. Nothing here knows who schedules, or why.
//!
//! ```text
//!   LinuxWorld (world.rs) ── runs threads on x86::Engine, dispatches system calls
//!      └── Kernel (kernel.rs)
//!            ├── frames        guest memory (undo log)
//!            ├── state         everything else the guest can see: plain data, Clone
//!            │     ├── processes, threads, futexes, signals, time
//!            │     └── files: inodes, open files, pipes, sockets, epoll, ...
//!            └── host          host files pinned at first use: not guest-visible state, survives restores
//! ```

mod call;
mod errno;
mod files;
mod kernel;
mod process;
mod syscall;
mod thread;
mod user;
