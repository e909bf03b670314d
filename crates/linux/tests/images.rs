//! Several programs in one world: position-independent programs lie at the same addresses, and a point belongs to one of
//! them.

use std::collections::BTreeSet;

use raddle_testkit::{compile_text, scratch, world};
use raddle_world::{ContextId, ImageId, Site, Stop, Until, World};

/// Replaces itself by another program, whose path is its first argument.
const FIRST: &str = "#include <unistd.h>\nint main(int argc, char **argv) {\n    (void)argc;\n    execv(argv[1], argv + 1);\n    return 1;\n}\n";

/// Has a loop at about the same addresses.
const SECOND: &str =
    "int main(void) {\n    volatile int n = 0;\n    while (n < 100) n++;\n    return 0;\n}\n";

const STOPS_MAX: usize = 100_000;

#[test]
fn a_point_stops_only_the_program_that_it_belongs_to() {
    let first = compile_text(
        &scratch(),
        "replaces-itself.c",
        FIRST,
        &["-w", "-pthread", "-O0"],
    );
    let second = compile_text(
        &scratch(),
        "replacement.c",
        SECOND,
        &["-w", "-pthread", "-O0"],
    );
    let start = || world(&first, &[second.to_str().unwrap()], 1);
    let replacement = run(&mut start(), &[]).images.last().copied().unwrap();
    assert_ne!(replacement, ImageId::FIRST);
    let world = &mut start();
    let main = run_to_replacement(world, replacement);
    // The same addresses in the program that is gone, in the one that runs, and in both.
    let of = |image| -> Vec<Site> { main.clone().map(|pc| Site::new(image, pc)).collect() };
    let stops = |points: &[Site]| run(&mut start(), points).stops;
    let in_second = stops(&of(replacement));
    assert!(in_second.iter().all(|site| site.image() == replacement));
    assert!(in_second.len() > 100, "{} stops", in_second.len());
    let both = stops(&[of(ImageId::FIRST), of(replacement)].concat());
    let of_second: Vec<Site> = both
        .iter()
        .copied()
        .filter(|site| site.image() == replacement)
        .collect();
    assert_eq!(of_second, in_second);
    let in_first = stops(&of(ImageId::FIRST));
    assert!(in_first.iter().all(|site| site.image() == ImageId::FIRST));
    assert_eq!(in_first.len() + in_second.len(), both.len());
}

struct Ran {
    /// Points that were met, in their order.
    stops: Vec<Site>,
    /// Programs that were executed.
    images: BTreeSet<ImageId>,
}

fn run(world: &mut raddle_linux::LinuxWorld, points: &[Site]) -> Ran {
    points.iter().for_each(|site| world.add_point(*site));
    let mut ran = Ran {
        stops: Vec::new(),
        images: BTreeSet::new(),
    };
    for _ in 0..STOPS_MAX {
        ran.images.insert(world.image(ContextId(0)));
        match world.run(ContextId(0), Until::Sync { steps_max: 10_000 }) {
            Stop::WorldDone { status } => {
                assert_eq!(status, 0);
                return ran;
            }
            Stop::Point { site } => ran.stops.push(site),
            _ => {}
        }
    }
    panic!("it does not end");
}

/// The code of `main` of the second program.
fn run_to_replacement(
    world: &mut raddle_linux::LinuxWorld,
    replacement: ImageId,
) -> std::ops::Range<u64> {
    for _ in 0..STOPS_MAX {
        world.run(ContextId(0), Until::Sync { steps_max: 10_000 });
        let symbols = world.symbols(ContextId(0)).unwrap_or_default();
        let code = symbols.ranges_of_function("main");
        if let (true, Some(code)) = (world.image(ContextId(0)) == replacement, code.first()) {
            return code.clone();
        }
    }
    panic!("the first program does not replace itself");
}
