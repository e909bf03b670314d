//! Damaged program files: the loader gives an error or a program that runs or crashes; it never panics.

use std::os::unix::fs::PermissionsExt;

use raddle_sched::{End, Plain, Reaction};
use raddle_stdx::Prng;
use raddle_testkit::{compile_text, scratch, try_world, world};

const PROGRAM: &str = "int main(void) { return 3; }";

/// Bytes at the start of the file that hold the header and the program headers.
const HEADERS: u64 = 0x300;

#[test]
fn damaged_programs_are_refused_or_run() {
    let whole = compile_text(
        &scratch(),
        "fuzz-elf.c",
        PROGRAM,
        &["-w", "-pthread", "-O1", "-static"],
    );
    let end = Plain::default().run(&mut world(&whole, &[], 0), u64::MAX, &mut |_, _| {
        Reaction::GoOn
    });
    assert_eq!(end, End::Exited { status: 3 << 8 });
    let good = std::fs::read(&whole).unwrap();
    let path = scratch().join("fuzz-elf-damaged");
    let mut prng = Prng::new(11);
    let (mut refused, mut ran) = (0, 0);
    for round in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..=prng.below(4) {
            let at = usize::try_from(prng.below(HEADERS)).unwrap();
            bytes[at] = match prng.below(3) {
                0 => 0,
                1 => 0xFF,
                _ => raddle_stdx::width::low_u8(prng.next_u64()),
            };
        }
        if prng.chance(1, 8) {
            let length = prng.below(raddle_stdx::width::to_u64(bytes.len()));
            bytes.truncate(usize::try_from(length).unwrap());
        }
        std::fs::write(&path, &bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        match try_world(&path, &[], round) {
            Err(_) => refused += 1,
            Ok(mut world) => {
                ran += 1;
                Plain::default().run(&mut world, 200_000, &mut |_, _| Reaction::GoOn);
            }
        }
    }
    assert!(refused > 50, "only {refused} were refused");
    assert!(ran > 50, "only {ran} ran");
}
