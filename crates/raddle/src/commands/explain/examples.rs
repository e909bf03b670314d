//! Small programs that show each kind of finding.

use crate::commands::{explore, linearize};

/// A program, and how to see the finding in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    text: String,
    /// For a shell, in a folder that the user may write to. The first one writes the program.
    commands: Vec<String>,
}

impl Example {
    /// Of a kind; nothing of those for which a kernel with a bug is needed.
    pub(super) fn of(kind: &str) -> Option<Self> {
        let is_one_of =
            |kinds: &[super::kind::Kind]| kinds.iter().any(|(name, _, _)| *name == kind);
        let (text, steps) = if is_one_of(&explore::kinds::KINDS) {
            (program(kind)?.to_owned(), explored(kind))
        } else if is_one_of(&linearize::KINDS) {
            (program(kind)?.to_owned(), compared(kind))
        } else {
            let text = raddle_scan::shipped_example(kind)?;
            (
                without_marks(text),
                vec![format!("raddle scan --all {kind}.c")],
            )
        };
        let writes = format!("raddle explain --example {kind} > {kind}.c");
        Some(Self {
            text,
            commands: std::iter::once(writes).chain(steps).collect(),
        })
    }

    /// The program, with the commands on top.
    pub(super) fn program(&self) -> String {
        let commands = self.commands.join("\n * ");
        format!("/* {commands} */\n{}", self.text)
    }

    /// The commands, a line each.
    pub(super) fn how_to_run(&self) -> String {
        let commands = self.commands.join("\n  ");
        format!("An example that can be run:\n  {commands}")
    }
}

/// Without the marks that say what is to be found in which line.
fn without_marks(text: &str) -> String {
    let unmarked = |line: &str| {
        line.split("//~")
            .next()
            .map(str::trim_end)
            .map(str::to_owned)
    };
    let lines: Vec<String> = text.lines().filter_map(unmarked).collect();
    lines.join("\n") + "\n"
}

fn explored(kind: &str) -> Vec<String> {
    let build = format!("gcc -g -pthread {kind}.c -o {kind}");
    let explore = |options: &str| format!("raddle explore --until-found {options}-- ./{kind}");
    match kind {
        "wrong-output" => vec![
            build,
            "printf 'first\\nsecond\\n' > right.txt".to_owned(),
            explore("--expect-output right.txt "),
        ],
        "data-race" => vec![
            build,
            format!("raddle explore --races --schedules 100 -- ./{kind}"),
        ],
        "heap-overflow" => vec![build, explore("--red-zones ")],
        _ => vec![build, explore("")],
    }
}

fn compared(kind: &str) -> Vec<String> {
    let header = "raddle kernel new-test --template raddle.h raddle.h".to_owned();
    let build = format!("gcc -g -pthread -I. {kind}.c -o {kind}");
    let compare = |options: &str| format!("raddle linearize {options}-- ./{kind}");
    match kind {
        "slow-operation" => vec![
            header,
            build,
            "echo 'slower-than = 20' > rules.toml".to_owned(),
            compare("--rules rules.toml "),
        ],
        _ => vec![header, build, compare("")],
    }
}

macro_rules! programs {
    ($($kind:literal)*) => {
        fn program(kind: &str) -> Option<&'static str> {
            match kind {
                $($kind => Some(include_str!(concat!("examples/", $kind, ".c"))),)*
                _ => None,
            }
        }
    };
}

programs! {
    "crash"
    "assertion"
    "wrong-exit"
    "wrong-output"
    "use-after-free"
    "double-free"
    "invalid-free"
    "heap-overflow"
    "deadlock"
    "hang"
    "data-race"
    "not-linearizable"
    "unexpected-error"
    "latent-error"
    "slow-operation"
}
