//! Tests of the file calls through their handlers: what a program would see.

use raddle_calls::number;
use raddle_mem::GuestAddr;
use raddle_stdx::width::{as_u64, to_u64, to_usize};

use super::lookup;
use raddle_world::EventKind;

use crate::call::{Call, SysResult, Trouble};
use crate::errno::Errno;
use crate::files::flags;
use crate::files::testkit::{MEMORY, TID, kernel};
use crate::kernel::Kernel;
use crate::setup::Mapping;
use crate::thread::Tid;

pub(super) const READ: u32 = number("read");
pub(super) const WRITE: u32 = number("write");
pub(super) const OPEN: u32 = number("open");
pub(super) const CLOSE: u32 = number("close");
pub(super) const STAT: u32 = number("stat");
const LSTAT: u32 = number("lstat");
const LSEEK: u32 = number("lseek");
const PREAD: u32 = number("pread64");
const PWRITE: u32 = number("pwrite64");
const PIPE: u32 = number("pipe");
const DUP: u32 = number("dup");
const DUP2: u32 = number("dup2");
const FCNTL: u32 = number("fcntl");
const FLOCK: u32 = number("flock");
const TRUNCATE: u32 = number("truncate");
const GETCWD: u32 = number("getcwd");
const CHDIR: u32 = number("chdir");
const RENAME: u32 = number("rename");
const MKDIR: u32 = number("mkdir");
const RMDIR: u32 = number("rmdir");
const LINK: u32 = number("link");
const UNLINK: u32 = number("unlink");
const SYMLINK: u32 = number("symlink");
const READLINK: u32 = number("readlink");
const MKNOD: u32 = number("mknod");
const GETDENTS64: u32 = number("getdents64");
const RENAMEAT2: u32 = number("renameat2");
const MEMFD: u32 = number("memfd_create");

pub(super) const BUFFER: u64 = MEMORY + 0x8000;

/// A kernel and shorthand for calls.
pub(super) struct World {
    pub(super) kernel: Kernel,
}

impl World {
    pub(super) fn new() -> Self {
        let mut world = Self {
            kernel: kernel(Vec::new(), b"standard input\n"),
        };
        world.ok_path(MKDIR, "/t", &[0o755]);
        world.ok_path(CHDIR, "/t", &[]);
        world
    }

    pub(super) fn call_as(
        &mut self,
        tid: Tid,
        number: u32,
        args: &[u64],
        retry: bool,
    ) -> SysResult {
        let entry = lookup(number).unwrap_or_else(|| panic!("call {number} is in the table"));
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        (entry.handler)(&mut Call {
            kernel: &mut self.kernel,
            tid,
            args: all,
            deadline: None,
            is_retry: retry,
        })
    }

    pub(super) fn call(&mut self, number: u32, args: &[u64]) -> SysResult {
        self.call_as(TID, number, args, false)
    }

    pub(super) fn ok(&mut self, number: u32, args: &[u64]) -> u64 {
        match self.call(number, args) {
            Ok(value) => value,
            Err(trouble) => panic!("call {number} with {args:?}: {trouble:?}"),
        }
    }

    pub(super) fn errno(&mut self, number: u32, args: &[u64]) -> Errno {
        match self.call(number, args) {
            Err(Trouble::Errno(errno)) => errno,
            other => panic!("call {number} with {args:?}: {other:?}"),
        }
    }

    pub(super) fn blocks(&mut self, number: u32, args: &[u64]) -> bool {
        matches!(self.call(number, args), Err(Trouble::Block(_)))
    }

    /// Stores a string at a place of its own and gives its address.
    pub(super) fn text(&mut self, place: u64, text: &str) -> u64 {
        let addr = MEMORY + place * 0x1100;
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.kernel
            .write_user(TID, GuestAddr(addr), &bytes)
            .unwrap();
        addr
    }

    pub(super) fn ok_path(&mut self, number: u32, path: &str, rest: &[u64]) -> u64 {
        let args = self.path_args(path, rest);
        self.ok(number, &args)
    }

    pub(super) fn errno_path(&mut self, number: u32, path: &str, rest: &[u64]) -> Errno {
        let args = self.path_args(path, rest);
        self.errno(number, &args)
    }

    fn path_args(&mut self, path: &str, rest: &[u64]) -> Vec<u64> {
        let mut args = vec![self.text(0, path)];
        args.extend_from_slice(rest);
        args
    }

    fn two(&mut self, number: u32, from: &str, to: &str) -> SysResult {
        let args = [self.text(0, from), self.text(1, to)];
        self.call(number, &args)
    }

    pub(super) fn open(&mut self, path: &str, open_flags: u32) -> u64 {
        self.ok_path(OPEN, path, &[u64::from(open_flags), 0o644])
    }

    pub(super) fn put(&mut self, addr: u64, bytes: &[u8]) {
        self.kernel.write_user(TID, GuestAddr(addr), bytes).unwrap();
    }

    pub(super) fn get(&mut self, addr: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; to_usize(len)];
        self.kernel
            .read_user(TID, GuestAddr(addr), &mut bytes)
            .unwrap();
        bytes
    }

    pub(super) fn write(&mut self, fd: u64, bytes: &[u8]) -> u64 {
        self.put(BUFFER, bytes);
        self.ok(WRITE, &[fd, BUFFER, to_u64(bytes.len())])
    }

    pub(super) fn read(&mut self, fd: u64, len: u64) -> Vec<u8> {
        let count = self.ok(READ, &[fd, BUFFER, len]);
        self.get(BUFFER, count)
    }

    fn content(&mut self, path: &str) -> Vec<u8> {
        let fd = self.open(path, 0);
        let bytes = self.read(fd, 0x4000);
        self.ok(CLOSE, &[fd]);
        bytes
    }

    fn make(&mut self, path: &str, bytes: &[u8]) {
        let fd = self.open(path, flags::O_CREAT | flags::O_TRUNC | flags::O_WRONLY);
        self.write(fd, bytes);
        self.ok(CLOSE, &[fd]);
    }

    fn stat(&mut self, number: u32, path: &str) -> (u64, u32, u64) {
        self.ok_path(number, path, &[BUFFER]);
        let bytes = self.get(BUFFER, 144);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let mode = u32::from_le_bytes(bytes[24..28].try_into().unwrap());
        (word(16), mode, word(48))
    }

    fn names(&mut self, path: &str) -> Vec<String> {
        let fd = self.open(path, flags::O_DIRECTORY);
        let mut names = Vec::new();
        loop {
            // A small buffer, so that listings need several calls.
            let count = self.ok(GETDENTS64, &[fd, BUFFER, 100]);
            if count == 0 {
                break;
            }
            let bytes = self.get(BUFFER, count);
            let mut at = 0;
            while at < bytes.len() {
                let len = usize::from(u16::from_le_bytes([bytes[at + 16], bytes[at + 17]]));
                let name = &bytes[at + 19..at + len];
                let end = name.iter().position(|byte| *byte == 0).unwrap();
                names.push(String::from_utf8(name[..end].to_vec()).unwrap());
                at += len;
            }
        }
        self.ok(CLOSE, &[fd]);
        names
    }
}

#[test]
fn what_is_written_is_read_and_positions_are_shared_by_dup() {
    let mut world = World::new();
    let fd = world.open("a", flags::O_CREAT | flags::O_RDWR);
    assert_eq!(world.write(fd, b"hello world"), 11);
    let twin = world.ok(DUP, &[fd]);
    world.ok(LSEEK, &[twin, 6, 0]);
    assert_eq!(world.read(fd, 100), b"world");
    assert_eq!(world.read(fd, 100), b"");
    world.put(BUFFER, b"HE");
    world.ok(PWRITE, &[fd, BUFFER, 2, 0]);
    world.ok(PREAD, &[fd, BUFFER, 4, 0]);
    assert_eq!(world.get(BUFFER, 4), b"HEll");
    assert_eq!(world.ok(LSEEK, &[fd, 0, 1]), 11);
    assert_eq!(world.errno(LSEEK, &[fd, as_u64(-1), 0]), Errno::EINVAL);
    assert_eq!(world.errno(READ, &[99, BUFFER, 1]), Errno::EBADF);
    assert_eq!(world.errno(PREAD, &[fd, 0x10, 1, 0]), Errno::EFAULT);
}

#[test]
fn open_flags_mean_what_they_say() {
    let mut world = World::new();
    assert_eq!(world.errno_path(OPEN, "none", &[0]), Errno::ENOENT);
    world.make("f", b"12345");
    let exclusive = u64::from(flags::O_CREAT | flags::O_EXCL | flags::O_RDWR);
    assert_eq!(
        world.errno_path(OPEN, "f", &[exclusive, 0o600]),
        Errno::EEXIST
    );
    let fd = world.open("f", flags::O_WRONLY | flags::O_APPEND);
    world.ok(LSEEK, &[fd, 0, 0]);
    world.write(fd, b"6");
    assert_eq!(world.errno(READ, &[fd, BUFFER, 1]), Errno::EBADF);
    assert_eq!(world.content("f"), b"123456");
    let read_only = world.open("f", 0);
    assert_eq!(world.errno(WRITE, &[read_only, BUFFER, 1]), Errno::EBADF);
    world.open("f", flags::O_TRUNC | flags::O_WRONLY);
    assert_eq!(world.content("f"), b"");
    let directory = u64::from(flags::O_DIRECTORY);
    assert_eq!(world.errno_path(OPEN, "f", &[directory]), Errno::ENOTDIR);
    assert_eq!(world.errno_path(OPEN, "/t", &[1]), Errno::EISDIR);
    assert_eq!(world.errno_path(OPEN, "f/", &[0]), Errno::ENOTDIR);
    assert_eq!(world.errno_path(OPEN, "f/x", &[0]), Errno::ENOTDIR);
    assert_eq!(world.errno_path(OPEN, "", &[0]), Errno::ENOENT);
    let long = "n".repeat(256);
    assert_eq!(world.errno_path(OPEN, &long, &[0]), Errno::ENAMETOOLONG);
    let temporary = world.open("/t", flags::O_TMPFILE | flags::O_RDWR);
    world.write(temporary, b"x");
    assert_eq!(world.names("/t"), [".", "..", "f"]);
    let path_only = world.open("f", flags::O_PATH);
    assert_eq!(world.errno(READ, &[path_only, BUFFER, 1]), Errno::EBADF);
}

#[test]
fn an_unlinked_file_lives_as_long_as_it_is_open() {
    let mut world = World::new();
    world.make("f", b"still here");
    let before = world.kernel.frames.in_use();
    let fd = world.open("f", 0);
    world.ok_path(UNLINK, "f", &[]);
    assert_eq!(world.errno_path(STAT, "f", &[BUFFER]), Errno::ENOENT);
    world.make("f", b"new");
    assert_eq!(world.read(fd, 100), b"still here");
    world.ok(CLOSE, &[fd]);
    assert_eq!(world.kernel.frames.in_use(), before);
    assert_eq!(world.content("f"), b"new");
}

#[test]
fn renames_replace_refuse_and_exchange() {
    let mut world = World::new();
    world.make("a", b"A");
    world.make("b", b"B");
    let open_b = world.open("b", 0);
    world.two(RENAME, "a", "b").unwrap();
    assert_eq!(world.content("b"), b"A");
    assert_eq!(world.read(open_b, 9), b"B");
    assert_eq!(world.errno_path(STAT, "a", &[BUFFER]), Errno::ENOENT);
    world.ok_path(MKDIR, "d", &[0o755]);
    world.ok_path(MKDIR, "d/e", &[0o755]);
    assert_eq!(world.two(RENAME, "b", "d"), Err(Errno::EISDIR.into()));
    assert_eq!(world.two(RENAME, "d", "b"), Err(Errno::ENOTDIR.into()));
    assert_eq!(world.two(RENAME, "d", "d/e/f"), Err(Errno::EINVAL.into()));
    assert_eq!(world.two(RENAME, "d/e", "d"), Err(Errno::ENOTEMPTY.into()));
    world.two(RENAME, "d/e", "moved").unwrap();
    world.ok_path(CHDIR, "moved", &[]);
    let len = world.ok(GETCWD, &[BUFFER, 100]);
    assert_eq!(world.get(BUFFER, len), b"/t/moved\0");
    world.ok_path(CHDIR, "..", &[]);
    world.make("c", b"C");
    let args = |world: &mut World, flags| {
        let (from, to) = (world.text(0, "b"), world.text(1, "c"));
        [as_u64(-100), from, as_u64(-100), to, flags]
    };
    let no_replace = args(&mut world, 1);
    assert_eq!(world.errno(RENAMEAT2, &no_replace), Errno::EEXIST);
    let exchange = args(&mut world, 2);
    world.ok(RENAMEAT2, &exchange);
    assert_eq!(
        (world.content("b"), world.content("c")),
        (b"C".to_vec(), b"A".to_vec())
    );
}

#[test]
fn directories_links_and_their_counts() {
    let mut world = World::new();
    world.ok_path(MKDIR, "d", &[0o777]);
    assert_eq!(world.stat(STAT, "d").1, 0o040_755);
    assert_eq!(world.errno_path(MKDIR, "d", &[0o777]), Errno::EEXIST);
    world.ok_path(MKDIR, "d/x/", &[0o700]);
    assert_eq!(world.stat(STAT, "d").0, 3);
    assert_eq!(world.errno_path(RMDIR, "d", &[]), Errno::ENOTEMPTY);
    assert_eq!(world.errno_path(UNLINK, "d/x", &[]), Errno::EISDIR);
    assert_eq!(world.errno_path(RMDIR, "d/x/.", &[]), Errno::EINVAL);
    world.make("f", b"content");
    world.two(LINK, "f", "d/g").unwrap();
    assert_eq!(world.stat(STAT, "d/g"), (2, 0o100_644, 7));
    assert_eq!(world.two(LINK, "d", "h"), Err(Errno::EPERM.into()));
    world.two(SYMLINK, "../f", "d/s").unwrap();
    assert_eq!(world.content("d/s"), b"content");
    assert_eq!(world.stat(LSTAT, "d/s").1, 0o120_777);
    let len = world.ok_path(READLINK, "d/s", &[BUFFER, 3]);
    assert_eq!(world.get(BUFFER, len), b"../");
    world.two(SYMLINK, "loop", "loop").unwrap();
    assert_eq!(world.errno_path(OPEN, "loop", &[0]), Errno::ELOOP);
    world.two(SYMLINK, "made", "dangling").unwrap();
    world.make("dangling", b"through the link");
    assert_eq!(world.content("made"), b"through the link");
    let no_follow = u64::from(flags::O_NOFOLLOW);
    assert_eq!(
        world.errno_path(OPEN, "dangling", &[no_follow]),
        Errno::ELOOP
    );
    let names = world.names("/t");
    assert_eq!(names, [".", "..", "d", "dangling", "f", "loop", "made"]);
}

#[test]
fn the_host_is_underneath_and_never_changes() {
    let directory = std::env::temp_dir().join(format!("raddle-files-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("sub")).unwrap();
    std::fs::write(directory.join("file"), b"host bytes").unwrap();
    std::fs::write(directory.join("gone"), b"").unwrap();
    let mut world = World {
        kernel: kernel(
            vec![Mapping {
                host: directory.clone(),
                guest: b"/mnt/in".to_vec(),
            }],
            b"",
        ),
    };
    assert_eq!(world.content("/mnt/in/file"), b"host bytes");
    let fd = world.open("/mnt/in/file", flags::O_RDWR);
    world.write(fd, b"HOST");
    assert_eq!(world.content("/mnt/in/file"), b"HOST bytes");
    world.ok_path(UNLINK, "/mnt/in/gone", &[]);
    assert_eq!(
        world.errno_path(STAT, "/mnt/in/gone", &[BUFFER]),
        Errno::ENOENT
    );
    world.make("/mnt/in/new", b"new");
    assert_eq!(world.names("/mnt/in"), [".", "..", "file", "new", "sub"]);
    world.two(RENAME, "/mnt/in/sub", "/mnt/in/sub2").unwrap();
    world.make("/mnt/in/sub2/x", b"x");
    assert_eq!(
        std::fs::read(directory.join("file")).unwrap(),
        b"host bytes"
    );
    assert!(directory.join("gone").exists() && !directory.join("new").exists());
    // What was seen once stays, whatever the host does.
    std::fs::write(directory.join("late"), b"late").unwrap();
    assert_eq!(world.names("/mnt/in"), [".", "..", "file", "new", "sub2"]);
    let out = directory.join("out");
    let exported = crate::files::export(&mut world.kernel, &out, false).unwrap();
    assert_eq!(
        std::fs::read(out.join("mnt/in/file")).unwrap(),
        b"HOST bytes"
    );
    assert_eq!(std::fs::read(out.join("mnt/in/sub2/x")).unwrap(), b"x");
    assert!(!out.join("mnt/in/late").exists());
    // The changed file, the new one, the moved directory and the file in it; nothing that was only there.
    assert_eq!(exported.written, 4);
    assert!(!out.join("dev").exists());
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn snapshots_cover_file_contents() {
    let mut world = World::new();
    world.make("f", b"before");
    let depth = world.kernel.frames.snapshot();
    let saved = world.kernel.state.clone();
    for _ in 0..3 {
        world.make("f", b"after, and longer");
        world.make("g", b"other");
        world.ok_path(UNLINK, "f", &[]);
        world.kernel.frames.restore(depth);
        world.kernel.state = saved.clone();
        assert_eq!(world.content("f"), b"before");
        assert_eq!(world.errno_path(STAT, "g", &[BUFFER]), Errno::ENOENT);
    }
}

#[test]
fn pipes_block_break_and_end() {
    let mut world = World::new();
    world.ok(PIPE, &[BUFFER]);
    let (reader, writer) = (3, 4);
    assert!(world.blocks(READ, &[reader, BUFFER, 10]));
    world.write(writer, b"abcdef");
    assert_eq!(world.read(reader, 4), b"abcd");
    assert_eq!(world.read(reader, 4), b"ef");
    let big = vec![7; 0x3000];
    for _ in 0..5 {
        assert_eq!(world.write(writer, &big), 0x3000);
    }
    // 4096 bytes are left: a larger write moves what fits, then sleeps with its progress kept.
    let args = [writer, BUFFER, 0x3000];
    assert!(world.blocks(WRITE, &args));
    assert_eq!(world.read(reader, 0x4000).len(), 0x4000);
    assert_eq!(world.call_as(TID, WRITE, &args, true), Ok(0x3000));
    // A write of at most PIPE_BUF bytes is all or nothing.
    world.ok(FCNTL, &[writer, 4, u64::from(flags::O_NONBLOCK)]);
    while world.call(WRITE, &[writer, BUFFER, 4096]).is_ok() {}
    world.read(reader, 100);
    assert_eq!(world.errno(WRITE, &[writer, BUFFER, 4096]), Errno::EAGAIN);
    world.ok(CLOSE, &[writer]);
    while !world.read(reader, 0x4000).is_empty() {}
    world.ok(PIPE, &[BUFFER]);
    world.ok(CLOSE, &[4]);
    assert_eq!(world.errno(WRITE, &[5, BUFFER, 1]), Errno::EPIPE);
}

#[test]
fn a_fifo_opens_when_both_ends_are_there() {
    let mut world = World::new();
    world.ok_path(MKNOD, "fifo", &[0o010_600, 0]);
    let path = world.text(0, "fifo");
    assert!(world.blocks(OPEN, &[path, 0]));
    let other = Tid(1001);
    let mut thread = world.kernel.state.threads[&TID].clone();
    thread.tid = other;
    world.kernel.state.threads.insert(other, thread);
    let writer = world.call_as(other, OPEN, &[path, 1], false).unwrap();
    // The writer may go on before the reader's open has returned.
    world.write(writer, b"through");
    let reader = world.call_as(TID, OPEN, &[path, 0], true).unwrap();
    assert_eq!(world.read(reader, 10), b"through");
    let write_now = u64::from(flags::O_WRONLY | flags::O_NONBLOCK);
    world.ok(CLOSE, &[reader]);
    assert_eq!(world.errno(OPEN, &[path, write_now]), Errno::ENXIO);
}

#[test]
fn descriptors_are_the_lowest_and_close_on_exec_is_kept() {
    let mut world = World::new();
    let fd = world.open("f", flags::O_CREAT | flags::O_CLOEXEC);
    assert_eq!(fd, 3);
    assert_eq!(world.ok(FCNTL, &[fd, 1, 0]), 1);
    assert_eq!(world.ok(DUP2, &[fd, 10]), 10);
    assert_eq!(world.ok(FCNTL, &[10, 1, 0]), 0);
    assert_eq!(world.ok(FCNTL, &[fd, 0, 10]), 11);
    assert_eq!(world.errno(FCNTL, &[fd, 0, 5000]), Errno::EINVAL);
    assert_eq!(world.errno(DUP2, &[fd, 5000]), Errno::EBADF);
    crate::files::close_on_exec(&mut world.kernel, crate::process::Pid(TID.0));
    assert_eq!(world.errno(CLOSE, &[fd]), Errno::EBADF);
    world.ok(CLOSE, &[10]);
    assert_eq!(world.ok(FCNTL, &[11, 3, 0]) & 3, 0);
}

#[test]
fn devices_and_standard_streams() {
    let mut world = World::new();
    assert_eq!(world.read(0, 100), b"standard input\n");
    world.write(1, b"out");
    world.write(2, b"err");
    let written: Vec<_> = std::mem::take(&mut world.kernel.events)
        .into_iter()
        .map(|event| event.kind)
        .collect();
    let output = |descriptor, bytes: &[u8]| EventKind::Output {
        descriptor,
        bytes: bytes.to_vec(),
    };
    assert_eq!(written, [output(1, b"out"), output(2, b"err")]);
    let null = world.open("/dev/null", flags::O_RDWR);
    assert_eq!(world.write(null, b"x"), 1);
    assert_eq!(world.read(null, 5), b"");
    let zero = world.open("/dev/zero", 0);
    assert_eq!(world.read(zero, 3), [0; 3]);
    let full = world.open("/dev/full", flags::O_WRONLY);
    assert_eq!(world.errno(WRITE, &[full, BUFFER, 1]), Errno::ENOSPC);
    assert_eq!(world.errno_path(OPEN, "/dev/tty", &[2]), Errno::ENXIO);
    let random = world.open("/dev/urandom", 0);
    assert_eq!(world.read(random, 16).len(), 16);
    world.make("/dev/shm/segment", b"shm");
    assert_eq!(world.content("/dev/shm/segment"), b"shm");
}

#[test]
fn proc_shows_this_world_and_not_the_host() {
    let mut world = World::new();
    let text = |world: &mut World, path: &str| String::from_utf8(world.content(path)).unwrap();
    assert!(text(&mut world, "/proc/self/status").contains("Pid:\t1000\n"));
    assert!(text(&mut world, "/proc/self/stat").starts_with("1000 (test) R 1 "));
    assert!(text(&mut world, "/proc/1000/task/1000/comm").starts_with("test\n"));
    assert!(text(&mut world, "/proc/self/maps").starts_with("00100000-00140000 rw-p 00000000"));
    assert_eq!(
        text(&mut world, "/proc/cpuinfo")
            .matches("processor\t")
            .count(),
        4
    );
    assert_eq!(text(&mut world, "/sys/devices/system/cpu/online"), "0-3\n");
    assert_eq!(world.names("/proc/self/task"), [".", "..", "1000"]);
    world.make("f", b"by descriptor");
    let fd = world.open("f", 0);
    assert_eq!(
        world.content(&format!("/proc/self/fd/{fd}")),
        b"by descriptor"
    );
    world.ok_path(UNLINK, "f", &[]);
    assert_eq!(world.content(&format!("/dev/fd/{fd}")), b"by descriptor");
    let len = world.ok_path(READLINK, &format!("/proc/self/fd/{fd}"), &[BUFFER, 100]);
    assert_eq!(world.get(BUFFER, len), b"/t/f (deleted)");
    assert_eq!(world.errno_path(STAT, "/proc/1", &[BUFFER]), Errno::ENOENT);
    assert_eq!(world.errno_path(MKDIR, "/proc/x", &[0o755]), Errno::EPERM);
    assert_eq!(
        world.errno_path(STAT, "/sys/fs/cgroup", &[BUFFER]),
        Errno::ENOENT
    );
}

#[test]
fn record_locks_and_flock_keep_others_out() {
    let mut world = World::new();
    let fd = world.open("f", flags::O_CREAT | flags::O_RDWR);
    let lock = |kind: u16, start: u64, len: u64| {
        let mut bytes = vec![0; 32];
        bytes[..2].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&start.to_le_bytes());
        bytes[16..24].copy_from_slice(&len.to_le_bytes());
        bytes
    };
    world.put(BUFFER, &lock(1, 10, 10));
    world.ok(FCNTL, &[fd, 6, BUFFER]);
    // An open file description lock of the same process is another owner.
    world.put(BUFFER, &lock(0, 15, 1));
    assert_eq!(world.errno(FCNTL, &[fd, 37, BUFFER]), Errno::EAGAIN);
    assert!(world.blocks(FCNTL, &[fd, 38, BUFFER]));
    world.ok(FCNTL, &[fd, 36, BUFFER]);
    let bytes = world.get(BUFFER, 32);
    assert_eq!(
        (
            bytes[0],
            bytes[8],
            bytes[16],
            u16::from_le_bytes([bytes[24], bytes[25]])
        ),
        (1, 10, 10, 1000)
    );
    world.put(BUFFER, &lock(2, 0, 0));
    world.ok(FCNTL, &[fd, 6, BUFFER]);
    world.put(BUFFER, &lock(0, 15, 1));
    world.ok(FCNTL, &[fd, 37, BUFFER]);
    let other = world.open("f", flags::O_RDWR);
    world.ok(FLOCK, &[fd, 2]);
    assert_eq!(world.errno(FLOCK, &[other, 1 | 4]), Errno::EAGAIN);
    assert!(world.blocks(FLOCK, &[other, 1]));
    world.ok(CLOSE, &[fd]);
    world.ok(FLOCK, &[other, 1]);
}

#[test]
fn truncation_holes_and_seals() {
    let mut world = World::new();
    world.make("f", b"0123456789");
    world.ok_path(TRUNCATE, "f", &[4]);
    world.ok_path(TRUNCATE, "f", &[6]);
    assert_eq!(world.content("f"), b"0123\0\0");
    let name = world.text(0, "m");
    let memory = world.ok(MEMFD, &[name, 2]);
    world.write(memory, b"sealed");
    world.ok(FCNTL, &[memory, 1033, 8]);
    assert_eq!(world.errno(WRITE, &[memory, BUFFER, 1]), Errno::EPERM);
    assert_eq!(world.ok(FCNTL, &[memory, 1034, 0]), 8);
}

#[test]
fn a_world_without_input_reads_nothing() {
    let mut world = World {
        kernel: kernel(Vec::new(), b""),
    };
    assert_eq!(world.read(0, 10), b"");
}
