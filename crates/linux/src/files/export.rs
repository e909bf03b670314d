//! Writing what the guest changed out to a host directory at the end of a run.
//!
//! The guest chose every name, link and mode; the directory may hold what an earlier guest chose. Nothing outside of it
//! is ever written: each step goes from an open directory to an entry of it, and no symbolic link is followed.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use raddle_stdx::width::{to_u64, to_usize};
use rustix::fs::{FileType, Mode, mknodat};

use super::inode::{Entry, InodeId, Name, Node};
use crate::errno::Errno;
use crate::kernel::Kernel;

/// Permission bits without set-user-id, set-group-id and sticky.
const PLAIN_MODE: u32 = 0o777;

/// What an export wrote, and what it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exported {
    /// Files, directories and links.
    pub written: u64,
    /// FIFOs that the guest made: written only on request.
    pub fifos: u64,
    /// Files with a set-user-id, set-group-id or sticky bit: the bit is written only on request.
    pub special_modes: u64,
    /// Names of sockets, which mean nothing outside of the guest.
    pub sockets: u64,
}

/// Writes every file, directory and link that the guest made or changed below `directory`. FIFOs, and set-id and
/// sticky bits, only if they are asked for.
pub(crate) fn export(
    kernel: &mut Kernel,
    directory: &Path,
    with_special: bool,
) -> io::Result<Exported> {
    std::fs::create_dir_all(directory)?;
    let to = Dir::open_ambient_dir(directory, ambient_authority())?;
    let root = kernel.state.files.root;
    let mut export = Export {
        kernel,
        with_special,
        exported: Exported::default(),
        path: Vec::new(),
        open: vec![to],
    };
    export.entries(root, false)?;
    Ok(export.exported)
}

struct Export<'k> {
    kernel: &'k mut Kernel,
    with_special: bool,
    exported: Exported,
    /// Names from the export's directory to where we are.
    path: Vec<Name>,
    /// The directories on this path that were needed so far, the export's own first.
    open: Vec<Dir>,
}

impl Export<'_> {
    /// The entries of a directory. In one that was moved, everything is new.
    fn entries(&mut self, id: InodeId, is_moved: bool) -> io::Result<()> {
        let Some(directory) = self.kernel.state.files.inode(id).directory() else {
            return Ok(());
        };
        let entries: Vec<(Name, InodeId)> = directory
            .entries
            .iter()
            .filter_map(|(name, entry)| match entry {
                Entry::Present(inode) => Some((Name::clone(name), *inode)),
                Entry::Gone => None,
            })
            .collect();
        for (name, inode) in entries {
            self.entry(id, &name, inode, is_moved)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        directory: InodeId,
        name: &Name,
        id: InodeId,
        is_moved: bool,
    ) -> io::Result<()> {
        let inode = self.kernel.state.files.inode(id);
        let given = inode.given.as_ref();
        let is_new = is_moved || given.is_none_or(|given| !given.is_at(directory, name));
        let is_changed = is_new || given.is_some_and(|given| given.mode != inode.mode);
        let mode = inode.mode;
        match &inode.node {
            Node::Directory(_) => {
                self.path.push(Name::clone(name));
                if is_changed {
                    self.here()?;
                    self.exported.written += 1;
                }
                self.entries(id, is_new)?;
                if is_changed {
                    let mode = self.written_mode(mode);
                    self.here()?.set_permissions(".", mode)?;
                }
                self.path.pop();
                self.open.truncate(self.path.len() + 1);
                Ok(())
            }
            Node::File(_) => {
                if is_changed || self.is_written(id)? {
                    self.file(name, id)?;
                }
                Ok(())
            }
            Node::Symlink(target) if is_new => {
                let target = Name::clone(target);
                let here = free(self.here()?, name)?;
                here.symlink_contents(OsStr::from_bytes(&target), OsStr::from_bytes(name))?;
                self.exported.written += 1;
                Ok(())
            }
            Node::Pipe(_) if is_new => self.fifo(name, mode),
            Node::SocketName(_) if is_new => {
                self.exported.sockets += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether a file of the host has another content now.
    fn is_written(&mut self, id: InodeId) -> io::Result<bool> {
        let Some(content) = self.kernel.state.files.inode(id).content() else {
            return Ok(false);
        };
        content
            .is_changed(&mut self.kernel.frames, &mut self.kernel.host)
            .map_err(host_error)
    }

    fn file(&mut self, name: &Name, id: InodeId) -> io::Result<()> {
        let mode = self.kernel.state.files.inode(id).mode;
        let mode = self.written_mode(mode);
        let here = free(self.here()?, name)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.follow(FollowSymlinks::No);
        let mut file = here.open_with(OsStr::from_bytes(name), &options)?;
        self.exported.written += 1;
        let Some(content) = self.kernel.state.files.inode(id).content() else {
            return Ok(());
        };
        let mut offset = 0;
        while offset < content.size() {
            let mut chunk = vec![0; to_usize((content.size() - offset).min(1 << 20))];
            let read = content
                .read(
                    &mut self.kernel.frames,
                    &mut self.kernel.host,
                    offset,
                    &mut chunk,
                )
                .map_err(host_error)?;
            file.write_all(&chunk[..read])?;
            offset += to_u64(read);
        }
        file.set_permissions(mode)
    }

    fn fifo(&mut self, name: &Name, mode: u32) -> io::Result<()> {
        self.exported.fifos += 1;
        if !self.with_special {
            return Ok(());
        }
        let here = free(self.here()?, name)?;
        let mode = Mode::from_raw_mode(mode & PLAIN_MODE);
        mknodat(here, OsStr::from_bytes(name), FileType::Fifo, mode, 0)?;
        self.exported.written += 1;
        Ok(())
    }

    /// The permissions that a file gets: the guest's user 0 is not the host's.
    fn written_mode(&mut self, mode: u32) -> Permissions {
        let is_special = mode & !PLAIN_MODE != 0;
        self.exported.special_modes += u64::from(is_special);
        let mode = if self.with_special {
            mode
        } else {
            mode & PLAIN_MODE
        };
        Permissions::from_mode(mode)
    }

    /// The directory where we are; it is made if it is not there.
    fn here(&mut self) -> io::Result<&Dir> {
        while self.open.len() <= self.path.len() {
            let above = &self.open[self.open.len() - 1];
            let name = &self.path[self.open.len() - 1];
            let below = enter(above, OsStr::from_bytes(name))?;
            self.open.push(below);
        }
        Ok(&self.open[self.path.len()])
    }
}

fn host_error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(i32::from(errno.0))
}

/// A directory below an open one. Where something else stands, such as a link that an earlier guest left, it gives way.
fn enter(above: &Dir, name: &OsStr) -> io::Result<Dir> {
    let is_directory = match above.symlink_metadata(name) {
        Ok(metadata) => metadata.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    if !is_directory {
        free(above, name.as_bytes())?;
        above.create_dir(name)?;
    }
    above.open_dir_nofollow(name)
}

/// Removes what stands under a name, unless it is a directory: that is never thrown away.
fn free<'d>(directory: &'d Dir, name: &[u8]) -> io::Result<&'d Dir> {
    let name = OsStr::from_bytes(name);
    match directory.remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io::Error::new(
            error.kind(),
            format!("`{}` is in the way: {error}", name.display()),
        )),
        _ => Ok(directory),
    }
}
