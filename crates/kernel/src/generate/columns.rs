//! Columns of calls for tests whose threads are chosen by what they touch: each column is run alone from one boot
//! snapshot, and those that meet in memory become the threads of a test.
//!
//! All columns of a seed have the same set-up, so that an address means the same in each run. What the files are like
//! afterwards is asked in `check:`, so that the tests can be compared with serial orders.

use std::fmt::Write as _;

use raddle_stdx::Prng;

use super::{CALLS, FILE_CALLS, FILES, FOLDERS, FileSystem, Maker, PAGE};

/// What opens a file and closes it again.
const OPEN: &str = "open(\"{file}\", O_CREAT | O_RDWR | O_EXCL, 0644)";
const OPEN_TRUNC: &str = "open(\"{file}\", O_RDWR | O_TRUNC, 0)";
/// Bytes of a `struct stat`.
const STAT: u64 = 144;

/// Which columns to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRecipe {
    pub fs: FileSystem,
    pub seed: u64,
    /// Calls of each column.
    pub calls: u64,
    /// The names of the calls; all if there are none.
    pub only: Vec<String>,
}

/// The names of the calls that columns can be made of.
pub fn call_names() -> Vec<&'static str> {
    let all = CALLS.iter().chain(&FILE_CALLS).chain([&OPEN]);
    let mut names: Vec<&str> = all.filter_map(|call| call.split('(').next()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl ColumnRecipe {
    /// The test in which a column is alone.
    pub fn alone(&self, number: u64) -> String {
        self.test(&format!("column {number} alone"), &[number])
    }

    /// The test in which two columns meet.
    pub fn pair(&self, why: &str, columns: [u64; 2]) -> String {
        self.test(why, &columns)
    }

    /// The calls of a column, without the names of its thread: equal columns are equal tests.
    pub fn calls(&self, number: u64) -> String {
        self.column(number, 0)
    }

    fn test(&self, why: &str, columns: &[u64]) -> String {
        let mut text = format!(
            "# Generated: {} of seed {}: {why}.\n",
            self.fs.name(),
            self.seed
        );
        if !self.fs.options().is_empty() {
            writeln!(text, "#\n# Run with {}", self.fs.options())
                .expect("a string takes everything");
        }
        text.push_str(&self.maker(u64::MAX).setup());
        for buffer in 0..2 {
            writeln!(text, "    buffer page{buffer} {PAGE}").expect("a string takes everything");
        }
        for (buffer, _) in paths() {
            writeln!(text, "    buffer s{buffer} {STAT}").expect("a string takes everything");
        }
        for (column, thread) in columns.iter().zip(0..) {
            write!(
                text,
                "\nthread t{thread}:\n{}",
                self.column(*column, thread)
            )
            .expect("a string takes everything");
        }
        text.push_str("\ncheck:\n");
        for (buffer, path) in paths() {
            writeln!(text, "    lstat(\"{path}\", s{buffer})").expect("a string takes everything");
        }
        text.push_str("    close(a) == 0\n    close(b) == 0\n    close(d) == 0\n");
        text
    }

    fn column(&self, number: u64, thread: u64) -> String {
        let mut maker = self.maker(number);
        let candidates = self.candidates();
        let lines = (0..self.calls).map(|_| {
            let call = *maker.choice(&candidates);
            let opens = call.starts_with("open(");
            let needs_file = call.contains("{fd}");
            let name = format!("o{thread}_{}", maker.opened);
            maker.opened += u64::from(opens || needs_file);
            let fd = if needs_file { *maker.choice(&["a", "b", &name]) } else { "a" };
            let is_own = fd == name;
            let call = maker.filled(call, fd);
            if opens {
                format!("    {name} = {call}\n    close({name})\n")
            } else if is_own {
                let file = maker.file();
                format!(
                    "    {name} = open(\"{file}\", O_CREAT | O_RDWR, 0644)\n    {call}\n    close({name})\n"
                )
            } else {
                format!("    {call}\n")
            }
        });
        let text: String = lines.collect();
        text.replace("page", &format!("page{thread}"))
    }

    fn candidates(&self) -> Vec<&'static str> {
        let all = CALLS
            .into_iter()
            .chain(FILE_CALLS)
            .chain([OPEN, OPEN_TRUNC]);
        let is_wanted = |call: &&str| {
            let name = call.split('(').next().unwrap_or_default();
            // Calls for the whole system say nothing about two files.
            let is_of_files = !matches!(name, "sync" | "statfs" | "getdents64" | "utimensat");
            let is_named = self.only.iter().any(|wanted| wanted == name);
            is_named || self.only.is_empty() && is_of_files
        };
        all.filter(is_wanted).collect()
    }

    fn maker(&self, number: u64) -> Maker {
        Maker {
            prng: Prng::new(Prng::derive_seed(self.seed, number)),
            fs: self.fs,
            opened: 0,
        }
    }
}

/// All paths that calls may name, with numbers.
fn paths() -> impl Iterator<Item = (usize, String)> {
    let each = FOLDERS
        .iter()
        .flat_map(|folder| FILES.iter().map(move |file| (folder, file)));
    let files = each.map(|(folder, file)| format!("{folder}/{file}"));
    let folders = FOLDERS[1..].iter().map(|folder| (*folder).to_owned());
    (0..).zip(files.chain(folders))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_case::TestCase;

    fn recipe(only: &[&str]) -> ColumnRecipe {
        ColumnRecipe {
            fs: FileSystem::Tmpfs,
            seed: 3,
            calls: 2,
            only: only.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn all_columns_can_be_read_alone_and_in_pairs() {
        for fs in FileSystem::ALL {
            let recipe = ColumnRecipe { fs, ..recipe(&[]) };
            for number in 0..200 {
                for text in [
                    recipe.alone(number),
                    recipe.pair("why", [number, number + 1]),
                ] {
                    TestCase::parse("generated", &text, &mut |name| {
                        Err(format!("no module {name} is wanted"))
                    })
                    .unwrap_or_else(|error| panic!("{error}\n{text}"));
                }
            }
        }
    }

    #[test]
    fn a_column_is_the_same_alone_and_in_a_pair_and_has_wanted_calls_only() {
        let recipe = recipe(&["rename", "open"]);
        for number in 0..50 {
            let calls = recipe.calls(number);
            assert!(recipe.alone(number).contains(&calls));
            assert!(recipe.pair("why", [number, 9]).contains(&calls));
            for line in calls.lines() {
                let is_wanted = ["rename(", "open(", "close("]
                    .iter()
                    .any(|name| line.contains(name));
                assert!(is_wanted, "{line}");
            }
        }
    }

    #[test]
    fn the_calls_have_names() {
        let names = call_names();
        for name in ["rename", "link", "unlink", "open", "truncate"] {
            assert!(names.contains(&name), "{name}");
        }
    }
}
