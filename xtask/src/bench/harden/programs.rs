//! The programs that are measured: where they come from, how they are built and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::Place;

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
    run: &'static [&'static str],
    pub(super) short_run: &'static [&'static str],
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
        run: &["40"],
        short_run: &["1"],
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
        run: &["--memdb", "--size", "80"],
        short_run: &["--memdb", "--size", "1"],
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
            "-w",
        ],
        sources: &["pbzip2.cpp", "BZ2StreamScanner.cpp", "ErrorContext.cpp"],
        libraries: &["-lbz2"],
        run: &["-k", "-f", "-p2", "-c", "input"],
        short_run: &["-k", "-f", "-p1", "-1", "-c", "pbzip2.cpp"],
    },
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

    fn command(&self, binary: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary);
        command
            .args(arguments)
            .current_dir(binary.parent().unwrap_or(Path::new(".")))
            .env("RADDLE_HARDEN_LOG", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Processor time of one run of the workload: unlike wall time, it does not count what others do meanwhile.
    pub(super) fn seconds(&self, binary: &Path) -> anyhow::Result<f64> {
        let before = children_seconds()?;
        let status = self.command(binary, self.run).status()?;
        anyhow::ensure!(status.success(), "{} ended with {status}", binary.display());
        Ok(children_seconds()? - before)
    }

    /// The line in which a counting build says how many points it passed.
    pub(super) fn points(&self, binary: &Path) -> anyhow::Result<String> {
        let output = self
            .command(binary, self.run)
            .env("RADDLE_HARDEN_SUMMARY", "1")
            .env("RADDLE_HARDEN_LOG", "stderr")
            .stderr(Stdio::piped())
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text
            .lines()
            .find(|line| line.starts_with("raddle-harden: summary"))
            .context("the counting build printed no summary")?;
        Ok(line
            .trim_start_matches("raddle-harden: summary: ")
            .to_owned())
    }
}

/// User and system time of all finished children, from proc(5): fields 16 and 17 of `stat`, in hundredths.
fn children_seconds() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let after_name = text.rsplit_once(") ").context("no name in stat")?.1;
    let ticks = after_name
        .split(' ')
        .skip(13)
        .take(2)
        .map(str::parse::<u32>)
        .sum::<Result<u32, _>>()?;
    Ok(f64::from(ticks) / 100.0)
}

fn shell(folder: &Path, commands: &str) -> anyhow::Result<()> {
    let status = Command::new("sh")
        .args(["-ec", commands])
        .current_dir(folder)
        .stdin(Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "`{commands}` ended with {status}");
    Ok(())
}

/// `apt-get source` with lists of its own below the work folder.
fn fetch_debian(place: &Place, package: &str, folder: &Path) -> anyhow::Result<()> {
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
    )?;
    let unpacked = fs::read_dir(&fetched)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.is_dir())
        .context("apt-get unpacked no folder")?;
    fs::rename(unpacked, folder)?;
    Ok(())
}
