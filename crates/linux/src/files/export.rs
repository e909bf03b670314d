//! Writing the overlay out to a host directory at the end of a run.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use raddle_stdx::width::{to_u64, to_usize};

use super::host;
use super::inode::{Entry, InodeId, Node, Source};
use crate::kernel::Kernel;

/// Writes every file, directory and link that the guest made or changed below `directory`.
pub(crate) fn export(kernel: &mut Kernel, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let root = kernel.state.files.root;
    export_directory(kernel, root, directory)
}

fn export_directory(kernel: &mut Kernel, id: InodeId, to: &Path) -> io::Result<()> {
    let Some(directory) = kernel.state.files.inode(id).directory() else {
        return Ok(());
    };
    let source = match &directory.source {
        Source::Nothing => None,
        Source::Host(path) => Some(path.to_path_buf()),
        Source::Proc(_) => return Ok(()),
    };
    let is_root = id == kernel.state.files.root;
    let entries: Vec<(Vec<u8>, InodeId)> = directory
        .entries
        .iter()
        .filter_map(|(name, entry)| match entry {
            Entry::Present(inode) => Some((name.to_vec(), *inode)),
            Entry::Gone => None,
        })
        .filter(|(name, _)| !(is_root && matches!(&name[..], b"proc" | b"sys")))
        .collect();
    for (name, inode) in entries {
        let below = source.as_deref().map(|path| host::join(path, &name));
        export_entry(kernel, inode, &host::join(to, &name), below)?;
    }
    Ok(())
}

/// `below` is the host path that shows through here if the guest changed nothing.
fn export_entry(
    kernel: &mut Kernel,
    id: InodeId,
    to: &Path,
    below: Option<PathBuf>,
) -> io::Result<()> {
    let inode = kernel.state.files.inode(id);
    match &inode.node {
        Node::Directory(directory) => {
            let is_own = !matches!(&directory.source, Source::Host(path) if Some(&**path) == below.as_deref());
            if is_own && below.as_ref().is_none_or(|path| !path.is_dir()) {
                fs::create_dir_all(to)?;
            }
            export_directory(kernel, id, to)
        }
        Node::File(content) => {
            // A host file that was moved here is as new as one that was written.
            let is_changed = content.is_changed() || below.is_none_or(|path| !path.is_file());
            if is_changed {
                export_file(kernel, id, to)?;
            }
            Ok(())
        }
        Node::Symlink(target) => {
            if below.is_none_or(|path| path.symlink_metadata().is_err()) {
                make_parent(to)?;
                remove_old(to)?;
                symlink(std::ffi::OsStr::from_bytes(target), to)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn make_parent(to: &Path) -> io::Result<()> {
    to.parent().map_or(Ok(()), fs::create_dir_all)
}

fn remove_old(to: &Path) -> io::Result<()> {
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn export_file(kernel: &mut Kernel, id: InodeId, to: &Path) -> io::Result<()> {
    make_parent(to)?;
    let mode = kernel.state.files.inode(id).mode;
    let mut file = File::create(to)?;
    let Some(content) = kernel.state.files.inode(id).content() else {
        return Ok(());
    };
    let mut offset = 0;
    while offset < content.size() {
        let mut chunk = vec![0; to_usize((content.size() - offset).min(1 << 20))];
        let read = content
            .read(&mut kernel.frames, &mut kernel.host, offset, &mut chunk)
            .map_err(|errno| io::Error::from_raw_os_error(i32::from(errno.0)))?;
        file.write_all(&chunk[..read])?;
        offset += to_u64(read);
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}
