//! Test cases from a seed: concurrent file-system calls, as SKI's adapted fsstress makes them.
//!
//! A small name space, so that calls meet: a handful of files in three folders. The set-up makes some of them, two
//! threads then do a few calls each on what is there. Errors are answers like any other; what fails a test is the
//! kernel's own words, a call that never returns, and, for a share of the tests, the file-system checker afterwards.
//! The same seed and number always give the same text.

pub mod columns;

use std::fmt::Write as _;

use raddle_stdx::Prng;

/// File systems that tests are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    Tmpfs,
    Ext4,
    Btrfs,
}

/// What to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    pub fs: FileSystem,
    pub seed: u64,
    pub threads: u64,
    /// Calls of each thread.
    pub calls: u64,
    /// Of 100 tests, how many end with the file-system checker.
    pub fsck_percent: u64,
}

impl FileSystem {
    pub const ALL: [Self; 3] = [Self::Tmpfs, Self::Ext4, Self::Btrfs];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::Ext4 => "ext4",
            Self::Btrfs => "btrfs",
        }
    }

    /// The options of `raddle kernel explore` that the tests need.
    pub fn options(self) -> &'static str {
        match self {
            Self::Tmpfs => "",
            Self::Ext4 => {
                "--module \"brd rd_nr=1 rd_size=8192\" --program /sbin/mke2fs --program /sbin/e2fsck"
            }
            Self::Btrfs => {
                "--module \"brd rd_nr=2 rd_size=131072\" --module btrfs --program /sbin/mkfs.btrfs --program /usr/bin/btrfs"
            }
        }
    }

    fn make(self) -> &'static str {
        match self {
            Self::Tmpfs => "    mount(\"none\", \"/mnt\", \"tmpfs\", 0, 0) == 0\n",
            Self::Ext4 => {
                "    run(\"/sbin/mke2fs\", \"-q\", \"-t\", \"ext4\", \"/dev/ram0\") == 0\n    mount(\"/dev/ram0\", \"/mnt\", \"ext4\", 0, 0) == 0\n"
            }
            Self::Btrfs => {
                "    run(\"/sbin/mkfs.btrfs\", \"-q\", \"/dev/ram0\") == 0\n    mount(\"/dev/ram0\", \"/mnt\", \"btrfs\", 0, 0) == 0\n"
            }
        }
    }

    fn check(self) -> &'static str {
        match self {
            Self::Tmpfs => "",
            Self::Ext4 => "    run(\"/sbin/e2fsck\", \"-fn\", \"/dev/ram0\") == 0\n",
            Self::Btrfs => {
                "    run(\"/usr/bin/btrfs\", \"check\", \"--readonly\", \"/dev/ram0\") == 0\n"
            }
        }
    }
}

/// Calls that need a name, most wanted ones several times. `{file}`, `{other}`, `{folder}`, `{offset}` and `{length}`
/// are filled in.
const CALLS: [&str; 24] = [
    "rename(\"{file}\", \"{other}\")",
    "rename(\"{file}\", \"{other}\")",
    "link(\"{file}\", \"{other}\")",
    "unlink(\"{file}\")",
    "unlink(\"{file}\")",
    "symlink(\"{file}\", \"{other}\")",
    "readlink(\"{file}\", page, 256)",
    "mkdir(\"{folder}\", 0755)",
    "rmdir(\"{folder}\")",
    "rename(\"{folder}\", \"{other}\")",
    "truncate(\"{file}\", {length})",
    "chmod(\"{file}\", 0600)",
    "lchown(\"{file}\", 1000, 1000)",
    "stat(\"{file}\", page)",
    "setxattr(\"{file}\", \"user.a\", page, {short}, 0)",
    "getxattr(\"{file}\", \"user.a\", page, 4096)",
    "removexattr(\"{file}\", \"user.a\")",
    "listxattr(\"{file}\", page, 4096)",
    "utimensat(AT_FDCWD, \"{file}\", 0, 0)",
    "statfs(\"/mnt\", page)",
    "sync()",
    "renameat2(AT_FDCWD, \"{file}\", AT_FDCWD, \"{other}\", 2)",
    "mknodat(AT_FDCWD, \"{file}\", 0010644, 0)",
    "getdents64(d, page, 4096)",
];

/// Calls on a descriptor that the thread opens before and closes after.
const FILE_CALLS: [&str; 12] = [
    "pwrite64({fd}, page, {length}, {offset})",
    "pwrite64({fd}, page, {length}, {offset})",
    "pread64({fd}, page, {length}, {offset})",
    "ftruncate({fd}, {offset})",
    "fallocate({fd}, 0, {offset}, {length})",
    "fallocate({fd}, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, {offset}, {length})",
    "fallocate({fd}, FALLOC_FL_ZERO_RANGE, {offset}, {length})",
    "fsync({fd})",
    "fdatasync({fd})",
    "fchmod({fd}, 0644)",
    "lseek({fd}, {offset}, 4)",
    "sync_file_range({fd}, 0, 0, 7)",
];

/// Operations of btrfs alone: subvolumes, snapshots, devices, clones, defragmentation, quotas.
const BTRFS_CALLS: [&str; 10] = [
    // BTRFS_IOC_SUBVOL_CREATE
    "ioctl(d, 0x5000940e, {i64 0, \"{name}\", zero 4084})",
    // BTRFS_IOC_SNAP_CREATE
    "ioctl(d, 0x50009401, {i64 d, \"{name}\", zero 4084})",
    "ioctl(d, 0x50009401, {i64 d, \"{name}\", zero 4084})",
    // BTRFS_IOC_SNAP_DESTROY
    "ioctl(d, 0x5000940f, {i64 0, \"{name}\", zero 4084})",
    // BTRFS_IOC_ADD_DEV, BTRFS_IOC_RM_DEV
    "ioctl(d, 0x5000940a, {i64 0, \"/dev/ram1\", zero 4079})",
    "ioctl(d, 0x5000940b, {i64 0, \"/dev/ram1\", zero 4079})",
    // BTRFS_IOC_DEFRAG, BTRFS_IOC_SYNC
    "ioctl(d, 0x50009402, 0)",
    "ioctl(d, 0x9408, 0)",
    // BTRFS_IOC_QUOTA_CTL
    "ioctl(d, 0xc0109428, {u64 1, u64 0})",
    // FICLONE of one open file into another
    "ioctl(b, 0x40049409, a)",
];

const FOLDERS: [&str; 3] = ["/mnt", "/mnt/d0", "/mnt/d1"];
const FILES: [&str; 3] = ["f0", "f1", "f2"];
const SUBVOLUMES: [&str; 2] = ["sub0", "sub1"];
const OFFSETS: [u64; 6] = [0, 1, 1000, 4096, 8192, 65_536];
const LENGTHS: [u64; 5] = [1, 512, 4095, 4096, 10_000];
/// Bytes of the buffer that all calls share.
const PAGE: u64 = 16_384;

/// The test with this number.
pub fn generate(recipe: Recipe, number: u64) -> String {
    let mut maker = Maker {
        prng: Prng::new(Prng::derive_seed(recipe.seed, number)),
        fs: recipe.fs,
        opened: 0,
    };
    let has_fsck = maker.prng.below(100) < recipe.fsck_percent;
    let mut text = format!(
        "# Generated: {} of seed {}, number {number}.\n",
        recipe.fs.name(),
        recipe.seed
    );
    if !recipe.fs.options().is_empty() {
        text.push_str(&format!("#\n# Run with {}\n", recipe.fs.options()));
    }
    text.push_str(&maker.setup());
    for thread in 0..recipe.threads {
        text.push_str(&format!("\nthread t{thread}:\n"));
        for _ in 0..recipe.calls {
            text.push_str(&maker.statement(thread));
        }
    }
    text.push_str(
        "\ncheck:\n    close(a) == 0\n    close(b) == 0\n    close(d) == 0\n    umount2(\"/mnt\", 0) == 0\n",
    );
    if has_fsck {
        text.push_str(recipe.fs.check());
    }
    text
}

struct Maker {
    prng: Prng,
    fs: FileSystem,
    /// Descriptors opened by threads so far, for their names.
    opened: u64,
}

impl Maker {
    fn setup(&mut self) -> String {
        let mut text = format!("setup:\n    buffer page {PAGE}\n    mkdir(\"/mnt\", 0755)\n");
        text.push_str(self.fs.make());
        text.push_str("    mkdir(\"/mnt/d0\", 0755) == 0\n");
        text.push_str("    a = open(\"/mnt/f0\", O_CREAT | O_RDWR, 0644)\n");
        text.push_str("    b = open(\"/mnt/d0/f1\", O_CREAT | O_RDWR, 0644)\n");
        text.push_str("    d = open(\"/mnt\", O_RDONLY | O_DIRECTORY, 0)\n");
        text.push_str("    assert a >= 0 && b >= 0 && d >= 0\n");
        if self.fs == FileSystem::Btrfs {
            text.push_str("    ioctl(d, 0x5000940e, {i64 0, \"sub0\", zero 4084}) == 0\n");
        }
        for _ in 0..self.prng.below(4) {
            let call = *self.choice(&CALLS[..19]);
            let call = self.filled(call, "a");
            writeln!(text, "    {call}").expect("a string takes everything");
        }
        text
    }

    fn statement(&mut self, thread: u64) -> String {
        if self.fs == FileSystem::Btrfs && self.prng.chance(1, 3) {
            let call = *self.choice(&BTRFS_CALLS);
            return format!("    {}\n", self.filled(call, "a"));
        }
        if self.prng.chance(1, 2) {
            let call = *self.choice(&CALLS);
            return format!("    {}\n", self.filled(call, "a"));
        }
        let call = *self.choice(&FILE_CALLS);
        // Half of these work on a file that is open since the set-up, so that both threads have it.
        if self.prng.chance(1, 2) {
            let fd = *self.choice(&["a", "b"]);
            return format!("    {}\n", self.filled(call, fd));
        }
        let name = format!("o{thread}_{}", self.opened);
        self.opened += 1;
        let file = self.file();
        let call = self.filled(call, &name);
        format!(
            "    {name} = open(\"{file}\", O_CREAT | O_RDWR, 0644)\n    {call}\n    close({name})\n"
        )
    }

    /// A call with its places filled in.
    fn filled(&mut self, call: &str, fd: &str) -> String {
        let folder = format!("/mnt/d{}", self.prng.below(2));
        let offset = self.choice(&OFFSETS).to_string();
        let length = self.choice(&LENGTHS).to_string();
        let short = self.choice(&[1_u64, 100, 2000]).to_string();
        let name = *self.choice(&SUBVOLUMES);
        call.replace("{file}", &self.file())
            .replace("{other}", &self.file())
            .replace("{folder}", &folder)
            .replace("{offset}", &offset)
            .replace("{length}", &length)
            .replace("{short}", &short)
            .replace("{name}", name)
            .replace("{fd}", fd)
    }

    fn file(&mut self) -> String {
        let folder = *self.choice(&FOLDERS);
        let file = *self.choice(&FILES);
        format!("{folder}/{file}")
    }

    fn choice<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let count = raddle_stdx::width::to_u64(of.len());
        &of[raddle_stdx::width::to_usize(self.prng.below(count))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_case::TestCase;

    fn recipe(fs: FileSystem) -> Recipe {
        Recipe {
            fs,
            seed: 7,
            threads: 2,
            calls: 4,
            fsck_percent: 50,
        }
    }

    #[test]
    fn all_tests_can_be_read() {
        for fs in FileSystem::ALL {
            for number in 0..300 {
                let text = generate(recipe(fs), number);
                TestCase::parse("generated", &text, &mut |name| {
                    Err(format!("no module {name} is wanted"))
                })
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_text_and_another_one_another() {
        let first = generate(recipe(FileSystem::Btrfs), 3);
        assert_eq!(first, generate(recipe(FileSystem::Btrfs), 3));
        assert_ne!(first, generate(recipe(FileSystem::Btrfs), 4));
    }

    #[test]
    fn a_share_is_checked() {
        let checked = (0..200)
            .filter(|number| {
                generate(recipe(FileSystem::Ext4), *number).contains("e2fsck\", \"-fn")
            })
            .count();
        assert!((60..140).contains(&checked), "{checked}");
        let none = Recipe {
            fsck_percent: 0,
            ..recipe(FileSystem::Ext4)
        };
        assert!((0..50).all(|number| !generate(none, number).contains("e2fsck\", \"-fn")));
    }
}
