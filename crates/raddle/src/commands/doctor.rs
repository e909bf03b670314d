//! `raddle doctor`: which optional parts are present, and how to get the others.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::exit::{Code, Failure};
use crate::message;

/// Say what of the optional parts is present, and how to get the rest. Exploring and replaying programs needs none of them.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  raddle doctor")]
pub(crate) struct Doctor {}

/// Something that a part of raddle needs.
struct Part {
    name: &'static str,
    for_what: &'static str,
    /// Commands of which one must be there, or patterns of files.
    any_of: &'static [Sign],
    /// How Debian gets it.
    get: &'static str,
}

/// What shows that something is there.
enum Sign {
    Command(&'static str),
    /// A file in a folder whose name begins so.
    File(&'static str, &'static str),
}

const PARTS: &[Part] = &[
    Part {
        name: "C compiler",
        for_what: "building programs to explore",
        any_of: &[
            Sign::Command("gcc"),
            Sign::Command("clang"),
            Sign::Command("cc"),
        ],
        get: "apt install gcc libc6-dev",
    },
    Part {
        name: "Rust",
        for_what: "cargo raddle test",
        any_of: &[Sign::Command("cargo")],
        get: "see https://rustup.rs",
    },
    Part {
        name: "names of the C library",
        for_what: "lines of libc in stories and stacks",
        any_of: &[Sign::File("/usr/lib/debug/.build-id", "")],
        get: "apt install libc6-dbg",
    },
    Part {
        name: "gdb",
        for_what: "raddle replay --gdb",
        any_of: &[Sign::Command("gdb")],
        get: "apt install gdb",
    },
    Part {
        name: "git",
        for_what: "--diff",
        any_of: &[Sign::Command("git")],
        get: "apt install git",
    },
    Part {
        name: "LLVM 22",
        for_what: "raddle cc, raddle c++, cargo harden",
        any_of: &[Sign::Command("clang-22")],
        get: "apt install --no-install-recommends clang-22 lld-22 llvm-22 llvm-22-dev",
    },
    Part {
        name: "NATS with JetStream",
        for_what: "raddle hub: schedules on several machines (needed on one of them)",
        any_of: &[Sign::Command("nats-server")],
        get: "apt install nats-server",
    },
    Part {
        name: "a kernel",
        for_what: "raddle kernel (or any image, by --kernel)",
        any_of: &[Sign::File("/boot", "vmlinuz")],
        get: "apt install linux-image-cloud-amd64",
    },
    Part {
        name: "file system tools",
        for_what: "kernel tests of ext4 and btrfs",
        any_of: &[Sign::Command("mke2fs")],
        get: "apt install e2fsprogs btrfs-progs",
    },
];

impl Doctor {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // System tools are not on the path of every user.
        let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
        message::result(&told(PARTS, &|sign| found(sign, &folders)))?;
        Ok(Code::Clean)
    }
}

/// The file that shows that something is there.
fn found(sign: &Sign, folders: &[PathBuf]) -> Option<PathBuf> {
    match sign {
        Sign::Command(name) => {
            let mut candidates = folders.iter().map(|folder| folder.join(name));
            candidates.find(|path| path.is_file())
        }
        Sign::File(folder, start) => {
            let entries = std::fs::read_dir(Path::new(folder)).ok()?;
            let names = entries.flatten().map(|entry| entry.path());
            let mut matching: Vec<PathBuf> = names
                .filter(|path| {
                    let name = path.file_name().and_then(|name| name.to_str());
                    name.is_some_and(|name| name.starts_with(start))
                })
                .collect();
            matching.sort();
            // Of a folder without a wanted name, the folder itself is what counts.
            match *start {
                "" => matching.first().map(|_| PathBuf::from(folder)),
                _ => matching.into_iter().next(),
            }
        }
    }
}

/// The parts as a table, those that are missing with how to get them.
fn told(parts: &[Part], found: &dyn Fn(&Sign) -> Option<PathBuf>) -> String {
    let width = parts.iter().map(|part| part.name.len()).max().unwrap_or(0);
    let mut text = String::from(
        "raddle explores, predicts and replays programs by itself. Optional parts:\n\n",
    );
    let mut missing = 0;
    for part in parts {
        let present = part.any_of.iter().find_map(found);
        let (mark, rest) = match &present {
            Some(path) => ("present", path.display().to_string()),
            None => ("missing", part.get.to_owned()),
        };
        missing += u32::from(present.is_none());
        text.push_str(&format!("  {mark}  {:width$}  {rest}\n", part.name));
        text.push_str(&format!(
            "           {:width$}  for {}\n",
            "", part.for_what
        ));
    }
    let closing = match missing {
        0 => String::from("\nnothing is missing\n"),
        1 => String::from("\n1 part is missing; the line beside it gets it\n"),
        count => format!("\n{count} parts are missing; the lines beside them get them\n"),
    };
    text + &closing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_the_way_to_get_it() {
        let text = told(PARTS, &|sign| match sign {
            Sign::Command("gdb") => None,
            Sign::Command(name) => Some(Path::new("/bin").join(name)),
            Sign::File(folder, name) => Some(Path::new(folder).join(name)),
        });
        assert!(
            text.contains("missing  gdb                     apt install gdb\n"),
            "{text}"
        );
        assert!(
            text.contains("present  git                     /bin/git\n"),
            "{text}"
        );
        assert!(
            text.ends_with("1 part is missing; the line beside it gets it\n"),
            "{text}"
        );
    }

    #[test]
    fn commands_and_files_are_found_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tool"), "").unwrap();
        let folders = [folder.path().to_path_buf()];
        let path = folder.path().join("tool");
        assert_eq!(found(&Sign::Command("tool"), &folders), Some(path));
        assert_eq!(found(&Sign::Command("other"), &folders), None);
        assert_eq!(found(&Sign::File("/no/such/folder", "x"), &[]), None);
    }
}
