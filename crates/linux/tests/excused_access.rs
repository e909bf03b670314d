//! The C library may touch freed memory; a program point at the instruction that does must not keep it from going on.

use raddle_linux::{HeapWatch, Watch};
use raddle_testkit::{compile_text, scratch, world};
use raddle_world::{ContextId, Site, Stop, Until, World};

/// `swab` reads memory without being one of the functions that do so on behalf of their caller.
const SOURCE: &str = "#define _XOPEN_SOURCE 700\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) {\n    static char into[8];\n    char *from = malloc(8);\n    free(from);\n    swab(from, into, 8);\n    return 0;\n}\n";

const STOPS_MAX: usize = 10_000;

#[test]
fn a_point_at_an_excused_access_is_passed() {
    let program = compile_text(&scratch(), "excused.c", SOURCE, &["-w", "-pthread", "-O0"]);
    let mut world = world(&program, &[], 1);
    world.set_hooks(raddle_config::hooks::with_standard(&[]));
    world.set_watch(Watch {
        heap: HeapWatch {
            is_on: true,
            red_zones: false,
            stacks: false,
        },
        cycles: false,
    });
    world.arm();
    let first = ContextId(0);
    let code = loop {
        let stop = world.run(first, Until::Steps(10_000));
        assert_eq!(stop, Stop::Steps, "the program has not begun yet");
        let symbols = world.symbols(first).expect("the program runs");
        if let Some(code) = symbols.ranges_of_function("swab").first() {
            break code.clone();
        }
    };
    code.clone().for_each(|pc| world.add_point(Site::first(pc)));
    let mut points = 0;
    for _ in 0..STOPS_MAX {
        match world.run(first, Until::Sync { steps_max: 10_000 }) {
            Stop::WorldDone { status } => {
                assert_eq!(status, 0);
                assert!(points > 8, "only {points} points were met in swab");
                return;
            }
            Stop::Point { site } => points += u32::from(code.contains(&site.pc())),
            _ => {}
        }
    }
    panic!("it does not get past an instruction: {points} points were met");
}
