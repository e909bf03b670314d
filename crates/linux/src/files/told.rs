//! Files as state: what the guest has made of some files, told as probes at the end of a run.

use raddle_stdx::width::to_u64;
use raddle_stdx::{Digest, glob_matches};
use raddle_world::{ContextId, Event, EventKind, Mark, Site, Value};

use super::inode::{Entry, InodeId, Name, Node};
use crate::kernel::Kernel;

/// Bytes of a file that are told as they are; of a longer one, and of one that is no text, the digest.
const TEXT_MAX: u64 = 64 << 10;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Which files are told at the end of a run.
#[derive(Debug, Default)]
pub(crate) struct ToldFiles {
    /// Paths in which `*` stands for anything; one that is not absolute begins in the folder of the first process.
    patterns: Vec<String>,
    /// That folder, with a slash at its end.
    folder: Vec<u8>,
}

/// Chooses the files that are told; before anything runs.
pub(crate) fn tell_files(kernel: &mut Kernel, patterns: Vec<String>) {
    let first = kernel.process(kernel.state.first).fs;
    let mut folder = kernel
        .state
        .files
        .directory_path(kernel.state.files.context(first).cwd);
    if !folder.ends_with(b"/") {
        folder.push(b'/');
    }
    kernel.told = ToldFiles { patterns, folder };
}

/// Tells of the files: for each pattern which there are, and then of each one what stands in it.
pub(crate) fn tell_at_end(kernel: &mut Kernel) {
    let patterns = kernel.told.patterns.clone();
    if patterns.is_empty() {
        return;
    }
    let mut found = Vec::new();
    let root = kernel.state.files.root;
    find(kernel, root, false, &mut found);
    let folder = kernel.told.folder.clone();
    for pattern in patterns {
        let is_absolute = pattern.starts_with('/');
        let whole = match is_absolute {
            true => pattern.clone().into_bytes(),
            false => [&folder, pattern.as_bytes()].concat(),
        };
        let fitting = found.iter().filter(|(path, _)| glob_matches(&whole, path));
        let mut named: Vec<(String, InodeId)> = fitting
            .map(|(path, inode)| {
                let shown = if is_absolute {
                    &path[..]
                } else {
                    &path[folder.len()..]
                };
                (String::from_utf8_lossy(shown).into_owned(), *inode)
            })
            .collect();
        named.sort();
        let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        let list = names.join("\n");
        tell(kernel, format!("files {pattern}"), list.into_bytes());
        for (name, inode) in named {
            let content = content(kernel, inode);
            tell(kernel, format!("file {name}"), content);
        }
    }
}

/// A probe of the first context: its program has no more to say.
fn tell(kernel: &mut Kernel, name: String, result: Vec<u8>) {
    let is_probe = true;
    let marks = [
        Mark::Begin { name, is_probe },
        Mark::Result(Value::Text(result)),
        Mark::End,
    ];
    let context = ContextId(0);
    let step = kernel.state.contexts.get(context).steps;
    let events = marks.map(|mark| Event {
        context,
        step,
        site: Site::NOWHERE,
        kind: EventKind::Mark(Box::new(mark)),
    });
    kernel.events.extend(events);
}

/// Every file, directory and link below one that the guest has made or changed, with its path.
fn find(kernel: &mut Kernel, id: InodeId, is_moved: bool, found: &mut Vec<(Vec<u8>, InodeId)>) {
    let Some(directory) = kernel.state.files.inode(id).directory() else {
        return;
    };
    let present = directory
        .entries
        .iter()
        .filter_map(|(name, entry)| match entry {
            Entry::Present(inode) => Some((Name::clone(name), *inode)),
            Entry::Gone => None,
        });
    let present: Vec<(Name, InodeId)> = present.collect();
    for (name, inode) in present {
        let given = kernel.state.files.inode(inode).given.as_ref();
        let is_new = is_moved || given.is_none_or(|given| !given.is_at(id, &name));
        let is_own = is_new || is_written(kernel, inode);
        let is_file = matches!(
            kernel.state.files.inode(inode).node,
            Node::File(_) | Node::Directory(_) | Node::Symlink(_)
        );
        if is_own && is_file {
            found.push((kernel.state.files.path_in(id, &name), inode));
        }
        find(kernel, inode, is_new, found);
    }
}

/// Whether a file of the host has another content now.
fn is_written(kernel: &mut Kernel, id: InodeId) -> bool {
    let content = kernel.state.files.inode(id).content();
    let changed = content.map(|content| content.is_changed(&mut kernel.frames, &mut kernel.host));
    changed.is_some_and(|changed| changed.unwrap_or(true))
}

/// What stands in a file, where a link leads, or that it is a directory.
fn content(kernel: &mut Kernel, id: InodeId) -> Vec<u8> {
    match &kernel.state.files.inode(id).node {
        Node::Symlink(target) => return [b"a link to ", &target[..]].concat(),
        Node::Directory(_) => return b"a directory".to_vec(),
        _ => {}
    }
    let Some(content) = kernel.state.files.inode(id).content() else {
        return Vec::new();
    };
    let size = content.size();
    let mut digest = Digest::default();
    let mut text = Vec::new();
    let mut offset = 0;
    let mut chunk = vec![0; CHUNK];
    while offset < size {
        let read = content.read(&mut kernel.frames, &mut kernel.host, offset, &mut chunk);
        let read = match read {
            Ok(read) if read > 0 => read,
            Ok(_) => break,
            Err(errno) => return format!("cannot be read (error {})", errno.0).into_bytes(),
        };
        digest.bytes(&chunk[..read]);
        if size <= TEXT_MAX {
            text.extend_from_slice(&chunk[..read]);
        }
        offset += to_u64(read);
    }
    let is_plain = |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\n' | b'\r' | b'\t');
    if size <= TEXT_MAX && text.iter().all(is_plain) && std::str::from_utf8(&text).is_ok() {
        return text;
    }
    format!("{size} bytes, digest {:016x}", digest.value()).into_bytes()
}
