//! The programs that are measured: where they come from, how they are built and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::Place;
use super::workload::Workload;

/// One program.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    origin: Origin,
    /// `cc` or `c++`.
    pub(super) driver: &'static str,
    pub(super) flags: &'static [&'static str],
    pub(super) sources: &'static [&'static str],
    pub(super) libraries: &'static [&'static str],
    pub(super) workload: Workload,
}

#[derive(Debug)]
enum Origin {
    /// A Debian source package, and shell commands that prepare it.
    Debian(&'static str, &'static str),
    /// A source of ours.
    Own(&'static str),
}

pub(super) const ALL: &[Program] = &[
    Program {
        name: "chase",
        origin: Origin::Own(CHASE),
        driver: "cc",
        flags: &["-O2"],
        sources: &["program.c"],
        libraries: &[],
        workload: Workload::Run {
            long: &["40"],
            short: &["1"],
            has_threads: false,
        },
    },
    Program {
        name: "sqlite3",
        // The package's own build makes the amalgamation; its speed test is the workload.
        origin: Origin::Debian(
            "sqlite3",
            "./configure --disable-tcl >/dev/null && make sqlite3.c >/dev/null && cp test/speedtest1.c .",
        ),
        driver: "cc",
        flags: &[
            "-O2",
            "-DSQLITE_THREADSAFE=1",
            "-DSQLITE_OMIT_LOAD_EXTENSION",
            "-I.",
        ],
        sources: &["speedtest1.c", "sqlite3.c"],
        libraries: &["-lm", "-lpthread"],
        workload: Workload::Run {
            long: &["--memdb", "--size", "40"],
            short: &["--memdb", "--size", "5"],
            has_threads: false,
        },
    },
    Program {
        name: "pbzip2",
        origin: Origin::Debian("pbzip2", "head -c 3000000 /dev/urandom | od > input"),
        driver: "c++",
        flags: &[
            "-O2",
            "-pthread",
            "-D_LARGEFILE64_SOURCE=1",
            "-D_FILE_OFFSET_BITS=64",
            "-DUSE_STACKSIZE_CUSTOMIZATION",
            "-Wno-reserved-user-defined-literal",
            "-w",
        ],
        sources: &["pbzip2.cpp", "BZ2StreamScanner.cpp", "ErrorContext.cpp"],
        libraries: &["-lbz2"],
        workload: Workload::Run {
            long: &["-k", "-f", "-p2", "-c", "input"],
            short: &["-k", "-f", "-p1", "-1", "-c", "pbzip2.cpp"],
            has_threads: true,
        },
    },
    Program {
        name: "memcached",
        origin: Origin::Debian(
            "memcached",
            "./configure CC=clang-22 --disable-docs >/dev/null",
        ),
        driver: "cc",
        flags: &[
            "-O2",
            "-DHAVE_CONFIG_H",
            "-DNDEBUG",
            "-I.",
            "-pthread",
            "-w",
        ],
        sources: MEMCACHED,
        libraries: &["-levent"],
        workload: Workload::Memcached {
            requests: 100_000,
            short: 40_000,
        },
    },
];

const MEMCACHED: &[&str] = &[
    "memcached.c",
    "hash.c",
    "jenkins_hash.c",
    "murmur3_hash.c",
    "slabs.c",
    "items.c",
    "assoc.c",
    "thread.c",
    "daemon.c",
    "stats_prefix.c",
    "util.c",
    "cache.c",
    "bipbuffer.c",
    "base64.c",
    "logger.c",
    "crawler.c",
    "itoa_ljust.c",
    "slab_automove.c",
    "authfile.c",
    "restart.c",
    "proto_text.c",
    "proto_bin.c",
    "extstore.c",
    "crc32c.c",
    "storage.c",
    "slab_automove_extstore.c",
];

/// A list whose order is random: each step reads a pointer from shared memory and uses it at once, the worst case for
/// a check per pointer.
const CHASE: &str = "#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long value; };
static struct node nodes[4096];
struct node *volatile_head;
__attribute__((noinline)) static long chase(long steps)
{
    long sum = 0;
    struct node *at = volatile_head;
    for (long i = 0; i < steps; i++) {
        sum += at->value;
        at = at->next;
    }
    return sum;
}
int main(int count, char **words)
{
    unsigned order[4096];
    for (unsigned i = 0; i < 4096; i++)
        order[i] = i;
    unsigned long random = 7;
    for (unsigned i = 4095; i > 0; i--) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned other = (random >> 33) % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (unsigned i = 0; i < 4096; i++) {
        nodes[order[i]].next = &nodes[order[(i + 1) % 4096]];
        nodes[order[i]].value = i;
    }
    volatile_head = &nodes[0];
    printf(\"%ld\\n\", chase((count > 1 ? atol(words[1]) : 1) * 4000000));
    return 0;
}
";

impl Program {
    /// Where the sources are; fetches and prepares them once.
    pub(super) fn fetch(&self, place: &Place) -> anyhow::Result<PathBuf> {
        let folder = place.work.join(self.name);
        match self.origin {
            Origin::Own(source) => {
                fs::create_dir_all(&folder)?;
                fs::write(folder.join("program.c"), source)?;
            }
            Origin::Debian(package, prepare) => {
                if !folder.join("prepared").exists() {
                    fetch_debian(place, package, &folder)?;
                    shell(&folder, prepare)?;
                    fs::write(folder.join("prepared"), "")?;
                }
            }
        }
        Ok(folder)
    }

    pub(super) fn plain_compiler(&self) -> &'static str {
        match self.driver {
            "c++" => "clang++-22",
            _ => "clang-22",
        }
    }

    /// Thousands of lines that are not blank.
    pub(super) fn kloc(&self, folder: &Path) -> anyhow::Result<f64> {
        let mut lines = 0_u32;
        for source in self.sources {
            let text = fs::read(folder.join(source))?;
            let filled = text
                .split(|&byte| byte == b'\n')
                .filter(|line| !line.trim_ascii().is_empty());
            lines += u32::try_from(filled.count())?;
        }
        Ok(f64::from(lines) / 1000.0)
    }
}

pub(super) fn shell(folder: &Path, commands: &str) -> anyhow::Result<()> {
    let status = Command::new("sh")
        .args(["-ec", commands])
        .current_dir(folder)
        .stdin(Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "`{commands}` ended with {status}");
    Ok(())
}

/// `apt-get source` with lists of its own below the work folder.
pub(super) fn fetch_debian(place: &Place, package: &str, folder: &Path) -> anyhow::Result<()> {
    let apt = place.work.join("apt");
    fs::create_dir_all(apt.join("lists/partial"))?;
    fs::create_dir_all(apt.join("cache/archives/partial"))?;
    let sources = apt.join("sources.list");
    fs::write(
        &sources,
        "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n",
    )?;
    let options = [
        format!("Dir::Etc::SourceList={}", sources.display()),
        "Dir::Etc::SourceParts=/dev/null".into(),
        format!("Dir::State::Lists={}", apt.join("lists").display()),
        format!("Dir::Cache={}", apt.join("cache").display()),
    ];
    let options = options.map(|option| format!("-o {option}")).join(" ");
    let fetched = place.work.join(format!("{package}-source"));
    fs::create_dir_all(&fetched)?;
    shell(
        &fetched,
        &format!("apt-get {options} -q update && apt-get {options} -q source {package}"),
    )
    .with_context(|| {
        format!(
            "cannot fetch the source of {package}: this needs apt-get, the package dpkg-dev and a way to \
             deb.debian.org; or unpack the source yourself to {}",
            folder.display()
        )
    })?;
    let unpacked = fs::read_dir(&fetched)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.is_dir())
        .context("apt-get unpacked no folder")?;
    fs::rename(unpacked, folder)?;
    Ok(())
}
