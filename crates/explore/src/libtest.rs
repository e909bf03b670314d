//! Rust test binaries: which tests there are, and how to run one of them alone.

use raddle_campaign::{Cancel, Leave};
use raddle_linux::LinuxWorld;
use raddle_sched::{End, Plain, Reaction};
use raddle_stdx::Digest;
use raddle_trace::Inputs;
use raddle_world::{ContextId, EventKind};

use crate::session::{StartFailure, setup};

/// Instructions that listing tests may take.
const LIST_STEPS_MAX: u64 = 10_000_000_000;

/// The tests of a program that was built by `cargo test` or `rustc --test`; none if it is not such a program.
pub fn tests(inputs: &Inputs, cancel: &Cancel) -> Result<Option<Vec<String>>, StartFailure> {
    let leave = Leave::to_explore(cancel);
    let world = LinuxWorld::new(setup(inputs))?;
    if !is_test_program(world) {
        return Ok(None);
    }
    let listing = with_arguments(inputs, &["--list", "--format", "terse"]);
    let mut world = LinuxWorld::new(setup(&listing))?;
    let mut output = Vec::new();
    let end = Plain::default().run(&mut world, LIST_STEPS_MAX, &mut |_, events| {
        for event in events {
            if let EventKind::Output {
                descriptor: 1,
                bytes,
            } = &event.kind
            {
                output.extend_from_slice(bytes);
            }
        }
        if leave.is_over() {
            Reaction::Stop
        } else {
            Reaction::GoOn
        }
    });
    match end {
        End::Abandoned => Err(StartFailure::Cancelled),
        End::Exited { status: 0 } => Ok(Some(parse(&String::from_utf8_lossy(&output)))),
        End::Unsupported(what) => Err(StartFailure::Unsupported(what)),
        // It has a harness of its own that takes other arguments.
        _ => Ok(None),
    }
}

/// What runs one test on the program's first thread.
#[must_use]
pub fn alone(inputs: &Inputs, test: &str) -> Inputs {
    let mut arguments = vec![test];
    arguments.extend(ALONE);
    with_arguments(inputs, &arguments)
}

/// What runs the test before it on the program's first thread.
const ALONE: [&str; 3] = ["--exact", "--nocapture", "--test-threads=1"];

/// The name of a bug of a program: two tests of one program that fail in one function have two.
pub(crate) fn named(arguments: &[String], fingerprint: String) -> String {
    match arguments {
        [_, test, rest @ ..] if rest == ALONE => {
            let mut digest = Digest::default();
            digest.bytes(fingerprint.as_bytes());
            digest.bytes(test.as_bytes());
            format!("{:016x}", digest.value())
        }
        _ => fingerprint,
    }
}

fn with_arguments(inputs: &Inputs, more: &[&str]) -> Inputs {
    let mut inputs = inputs.clone();
    inputs.arguments.truncate(1);
    inputs
        .arguments
        .extend(more.iter().map(|text| (*text).to_owned()));
    inputs
}

fn is_test_program(mut world: LinuxWorld) -> bool {
    let symbols = world.symbols(ContextId(0));
    symbols.is_some_and(|symbols| {
        ["test::test_main_static", "test::test_main_static_abort"]
            .iter()
            .any(|function| !symbols.addresses_of_path(function).is_empty())
    })
}

fn parse(listing: &str) -> Vec<String> {
    listing
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_of_two_tests_have_two_names() {
        let arguments = |test: &str| {
            let all = ["tests", test].into_iter().chain(ALONE);
            all.map(str::to_owned).collect::<Vec<String>>()
        };
        let name = |arguments: &[String]| named(arguments, "17".into());
        assert_eq!(name(&["tests".into(), "one".into()]), "17");
        assert_eq!(name(&arguments("one")), name(&arguments("one")));
        assert_ne!(name(&arguments("one")), name(&arguments("two")));
    }

    #[test]
    fn benchmarks_are_no_tests() {
        assert_eq!(parse("a::b: test\nc: benchmark\nd: test\n"), ["a::b", "d"]);
    }
}
