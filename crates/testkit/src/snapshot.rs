//! Whole outputs of commands, compared with files of `crates/raddle/tests/snapshots`.
//!
//! `SNAPSHOTS=overwrite cargo nextest run -p raddle --test NAME` writes the files anew.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use snapbox::{Assert, Data};

use crate::command::{Ran, raddle_in, run};
use crate::folders::root;

/// What differs from run to run or from machine to machine, and what stands for it.
static UNSTABLE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        // How far a campaign is, told now and then.
        (
            r"(?m)^raddle: (running (to|once) |explaining failure |[0-9]+ schedules).*\n",
            "",
        ),
        (r"\b[0-9]+(\.[0-9]+)?/s", "N/s"),
        (r"\b[0-9]+(\.[0-9]+)? (s|ms|us)\b", "T s"),
        (r"\b[0-9]+(\.[0-9]+)? MIPS", "N MIPS"),
        // A digest covers the start of the program, whose length depends on what the loader's cache lists.
        (r"\bdigest [0-9a-f]{16}\b", "digest D"),
        // Where the libraries of the machine and its stack lie, and their lines.
        (r"0x7ff[0-9a-f]{9}\b", "0x7ff…"),
        (
            r"\b(malloc|abort|pthread_[a-z_]*|[a-z_]*-?start|libc_start_call_main)\.[chS]:[0-9]+",
            "$1.c:N",
        ),
    ];
    let compiled =
        |(pattern, instead)| (Regex::new(pattern).expect("a regular expression"), instead);
    rules.map(compiled).into()
});

/// Output without what differs from run to run. `folder` is where the command ran.
pub fn normalise(text: &str, folder: &Path) -> String {
    let mut text = text.replace(&*folder.to_string_lossy(), "FOLDER");
    if let Ok(real) = folder.canonicalize() {
        text = text.replace(&*real.to_string_lossy(), "FOLDER");
    }
    text = text.replace(&*root().to_string_lossy(), "ROOT");
    text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    for (pattern, instead) in UNSTABLE.iter() {
        text = pattern.replace_all(&text, *instead).into_owned();
    }
    text
}

/// Output without the counts of a campaign, for subjects that differ a little from machine to machine.
pub fn without_counts(text: &str) -> String {
    let counted = "schedules|distinct|failing|communication|decisions|thousand|with|halted|paused|looping|starving";
    let numbers = format!(r"\b[0-9]+ ({counted})\b");
    let numbers = Regex::new(&numbers).expect("a regular expression");
    let text = numbers.replace_all(text, "N $1");
    let which = Regex::new(r"schedule [0-9]+").expect("a regular expression");
    which.replace_all(&text, "schedule N").into_owned()
}

/// Runs raddle in a folder and compares everything that it wrote, and its exit status, with the file of this name.
#[track_caller]
pub fn check(name: &str, folder: &Path, arguments: &[&str]) -> Ran {
    let ran = run(raddle_in(folder, arguments)
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1"));
    compare(name, folder, arguments, &ran);
    ran
}

/// Compares what a command did with the file of this name.
#[track_caller]
pub fn compare(name: &str, folder: &Path, arguments: &[&str], ran: &Ran) {
    let quoted = |word: &&str| match word.contains([' ', '`', '\'']) {
        true => format!("{word:?}"),
        false => (*word).to_owned(),
    };
    let words: Vec<String> = arguments.iter().map(quoted).collect();
    let code = ran.code.map_or("none".to_owned(), |code| code.to_string());
    let told = format!(
        "$ raddle {}\n{}{}exit status {code}\n",
        words.join(" "),
        part("standard error", &ran.stderr),
        part("standard output", &ran.stdout),
    );
    let path = root().join(format!("crates/raddle/tests/snapshots/{name}.txt"));
    Assert::new()
        .action_env(snapbox::assert::DEFAULT_ACTION_ENV)
        .eq(normalise(&told, folder), Data::read_from(&path, None).raw());
}

/// A part of the output under its title, if there is any.
fn part(title: &str, text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("--- {title}\n{}\n", text.trim_end_matches('\n')) + "---\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_campaign_are_taken_out() {
        let text = "explored 289 schedules (256 distinct), 2 failing; found in schedule 245, 2 of 2 replays";
        assert_eq!(
            without_counts(text),
            "explored N schedules (N distinct), N failing; found in schedule N, 2 of 2 replays"
        );
    }

    #[test]
    fn rates_times_paths_and_progress_are_taken_out() {
        let folder = Path::new("/tmp/here");
        let text = "raddle: 5153 schedules, 2572/s, eta 2 s\nexplored 10 schedules (3037/s) in 0.014 s of /tmp/here/a\n";
        assert_eq!(
            normalise(text, folder),
            "explored 10 schedules (N/s) in T s of FOLDER/a\n"
        );
        assert_eq!(
            normalise("reads 0x5555555592a0 at 0x7ffff7ed538f", folder),
            "reads 0x5555555592a0 at 0x7ff…"
        );
    }
}
