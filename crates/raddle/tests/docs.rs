//! The manual tells the truth: blocks of its pages that are marked `run` are executed and compared.
//!
//! - ` ```console run ` is executed: each line that begins with `$ ` by the shell, in a folder of the page that has
//!   `corpus` and `crates` of the checkout. What follows it is what it prints.
//! - ` ```c file=bank.c ` is also written to that file of the page's folder.
//! - ` ```console shown-because="REASON" ` is not executed. `cargo xtask tidy` accepts no block without one of the two.
//!
//! Standard error counts where a block shows it (`raddle: ...`) or where there is nothing else. A line `...` stands for
//! any lines, and `...` at the end of a line for its rest. Rates, times and addresses of the machine are compared as
//! [`raddle_testkit::snapshot::normalise`] says. `SNAPSHOTS=overwrite` writes outputs without `...` anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use raddle_testkit::{raddle_path, root, run, snapshot, temporary};

fn main() {
    let arguments = Arguments::from_args();
    let mut pages = vec![root().join("README.md")];
    pages.extend(markdown(&root().join("docs/src")));
    let mut trials = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("the page can be read");
        if parse(&text).iter().any(|block| block.info.is_run()) {
            let name = page.strip_prefix(root()).unwrap_or(&page);
            let name = name.to_string_lossy().into_owned();
            trials.push(Trial::test(name, move || check(&page, &text)));
        }
    }
    trials.push(Trial::test("what a line stands for", matching));
    libtest_mimic::run(&arguments, trials).exit();
}

/// All pages of a folder, in order.
fn markdown(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the manual is there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(markdown(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found
}

/// What stands behind the three backquotes.
struct Info<'t>(&'t str);

impl Info<'_> {
    fn is_run(&self) -> bool {
        self.0 == "console run"
    }

    fn file(&self) -> Option<&str> {
        let mut words = self.0.split(' ');
        words.find_map(|word| word.strip_prefix("file="))
    }
}

struct Block<'t> {
    info: Info<'t>,
    /// The number of the first line of the content, from zero.
    line: usize,
    lines: Vec<&'t str>,
}

fn parse(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), is_open) {
            (Some(info), false) => blocks.push(Block {
                info: Info(info),
                line: number + 1,
                lines: Vec::new(),
            }),
            (Some(_), true) => {}
            (None, true) => {
                if let Some(block) = blocks.last_mut() {
                    block.lines.push(line);
                }
                continue;
            }
            (None, false) => continue,
        }
        is_open = !is_open;
    }
    blocks
}

/// Executes the blocks of a page in order.
fn check(page: &Path, text: &str) -> Result<(), Failed> {
    let folder = temporary();
    for name in ["corpus", "crates"] {
        std::os::unix::fs::symlink(root().join(name), folder.path().join(name))?;
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut complaints = String::new();
    // From the end, so that new lines do not move those that are still to come.
    let mut changes: Vec<(std::ops::Range<usize>, Vec<String>)> = Vec::new();
    for block in parse(text) {
        if let Some(file) = block.info.file() {
            std::fs::write(folder.path().join(file), block.lines.join("\n") + "\n")?;
        }
        if !block.info.is_run() {
            continue;
        }
        let starts = block.lines.iter().enumerate();
        let starts = starts.filter(|(_, line)| line.starts_with("$ "));
        let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
        for (index, start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(block.lines.len());
            let expected = &block.lines[start + 1..end];
            let actual = execute(&block.lines[*start][2..], expected, folder.path());
            if matches(expected, &actual, folder.path()) {
                continue;
            }
            if is_blessing() && !expected.iter().any(|line| line.ends_with("...")) {
                changes.push((block.line + start + 1..block.line + end, actual));
                continue;
            }
            writeln!(
                complaints,
                "{}:{}: `{}` does not print\n{}\nbut\n{}\n",
                page.display(),
                block.line + start + 1,
                &block.lines[*start][2..],
                expected.join("\n"),
                actual.join("\n")
            )?;
        }
    }
    for (range, actual) in changes.into_iter().rev() {
        lines.splice(range, actual);
        std::fs::write(page, lines.join("\n") + "\n")?;
    }
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.into()),
    }
}

fn is_blessing() -> bool {
    std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite")
}

/// What a command prints, as lines.
fn execute(command: &str, expected: &[&str], folder: &Path) -> Vec<String> {
    let programs = raddle_path().parent().map(Path::to_path_buf);
    let others = std::env::var_os("PATH").unwrap_or_default();
    let paths = programs.into_iter().chain(std::env::split_paths(&others));
    let ran = run(Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("COLUMNS", "110")
        .env("PATH", std::env::join_paths(paths).expect("a path"))
        .env("HOME", folder));
    let mut text = ran.stdout;
    if text.is_empty() || expected.iter().any(|line| line.starts_with("raddle: ")) {
        text += &ran.stderr;
    }
    // Readers are spared the name of a folder that is gone.
    let text = text.replace(&*folder.to_string_lossy(), "/tmp");
    text.lines().map(str::to_owned).collect()
}

fn matches(expected: &[&str], actual: &[String], folder: &Path) -> bool {
    let plain = |text: String| -> Vec<String> {
        let text = snapshot::normalise(&text, folder);
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    };
    is_like(&plain(expected.join("\n")), &plain(actual.join("\n")))
}

/// Whether lines are as a pattern says, in which `...` stands for what is left out.
fn is_like(pattern: &[String], lines: &[String]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return lines.is_empty();
    };
    if first.trim() == "..." {
        return (0..=lines.len()).any(|skipped| is_like(rest, &lines[skipped..]));
    }
    let Some((line, others)) = lines.split_first() else {
        return false;
    };
    let is_same = match first.strip_suffix("...") {
        Some(start) => line.starts_with(start),
        None => line == first,
    };
    is_same && is_like(rest, others)
}

fn matching() -> Result<(), Failed> {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    for (pattern, text, expected) in [
        ("a\nb", "a\nb", true),
        ("a\nb", "a\nc", false),
        ("a", "a\nb", false),
        ("...\nb", "a\na\nb", true),
        ("a\n...\nd", "a\nb\nc", false),
        ("a\n...", "a", true),
        ("begins ...", "begins here", true),
        ("begins ...", "ends here", false),
    ] {
        if is_like(&lines(pattern), &lines(text)) != expected {
            return Err(format!("{pattern:?} and {text:?}").into());
        }
    }
    Ok(())
}
