//! The file layer: inodes, descriptors, pipes, sockets, readiness.
//!
//! ```text
//!   process ─▶ TableId ─▶ FdTable ─▶ OpenId ─▶ OpenFile ─▶ InodeId ─▶ Inode ─▶ Node: File, Pipe, Socket, ...
//!           ─▶ FsId ────▶ FsContext (cwd, umask)   walk: path ─▶ InodeId
//! ```
//! Everything is plain data in cheap-to-clone arenas ([`slab`]); bytes live in guest frames ([`content`],
//! [`queue`]). Host files shine through from underneath ([`host`]); changes stay in the overlay.
//! Reading order: [`inode`], [`state`], [`open`], [`walk`], [`tree`], [`io`], [`ready`].

mod catalogue;
mod content;
mod core;
pub(crate) mod device;
pub(crate) mod epoll;
pub(crate) mod event;
mod export;
pub(crate) mod flags;
mod host;
pub(crate) mod inode;
pub(crate) mod inotify;
pub(crate) mod io;
mod listing;
pub(crate) mod lock;
mod object;
pub(crate) mod open;
pub(crate) mod permission;
pub(crate) mod pipe;
pub(crate) mod posix_queue;
pub(crate) mod procfs;
mod queue;
pub(crate) mod ready;
mod seal;
mod slab;
pub(crate) mod socket;
pub(crate) mod stat;
mod state;
pub(crate) mod table;
mod told;
pub(crate) mod tree;
pub(crate) mod walk;

#[cfg(test)]
pub(crate) mod testkit;

pub use catalogue::{Catalogue, ContentId, Elsewhere, NotText};
pub(crate) use core::{set_temporary_mask, signal as send_signal};
pub(crate) use event::{next_deadline, timers_expired};
pub use export::Exported;
pub(crate) use export::export;
pub(crate) use host::HostFiles;
pub use host::PinnedFile;
pub(crate) use inode::InodeId;
pub(crate) use object::{
    anonymous_object, close_on_exec, first_process, map_target, new_state, object_page,
    object_size, open_for_exec, read_object, release_process, take_progress,
};
pub(crate) use open::collect_orphans;
pub(crate) use socket::{PeerBytes, is_listening, peer_connects, peer_receives, peer_sends};
pub(crate) use state::State;
pub(crate) use table::{FsId, TableId, fork_context, fork_table, set_limit};
pub(crate) use told::{ToldFiles, tell_at_end, tell_files};
