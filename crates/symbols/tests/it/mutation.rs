//! Truncated and corrupted files must give errors or less information, never a panic or a hang.

use crate::fixture::compile;
use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_symbols::dwarf::LocalQuestion;
use raddle_symbols::unwind::Machine;
use raddle_symbols::{LinkAddr, Module, Registers};

const SEED: u64 = 0x5EED_0001;

/// Asks every kind of question; returns how many symbols there were, so that the work is not for nothing.
fn interrogate(bytes: Vec<u8>, prng: &mut Prng) -> usize {
    let Ok(module) = Module::parse_alone(bytes) else {
        return 0;
    };
    let symbols: Vec<LinkAddr> = module.symbols().iter().map(|s| s.address).collect();
    let mut addresses = vec![LinkAddr(0), LinkAddr(u64::MAX), module.entry()];
    for _ in 0..12 {
        if !symbols.is_empty() {
            let at = to_usize(prng.below(to_u64(symbols.len())));
            addresses.push(symbols[at].plus(prng.below(64)));
        }
    }
    for &at in &addresses {
        module.place_of(at);
        module.bytes_at(at, 64);
        let mut registers = Registers::default();
        (0..17).for_each(|number| registers.set(number, Some(prng.next_u64())));
        let mut read = |address: u64| Some(address ^ 0x55);
        let machine = Machine {
            registers,
            cfa: Some(0x7fff_0000),
            read: &mut read,
        };
        if let Some(debug) = module.debug_info() {
            debug.locals(&mut LocalQuestion {
                at,
                bias: 0,
                machine,
            });
        }
        let mut read = |address: u64| Some(address ^ 0xAA);
        let mut machine = Machine {
            registers,
            cfa: None,
            read: &mut read,
        };
        module.call_frames().step(at, 0, &mut machine);
    }
    if let Some(debug) = module.debug_info() {
        for variable in debug.variables().iter().take(50) {
            for offset in [0, 1, 16, 1 << 40] {
                variable.field_at(debug, offset);
            }
        }
        debug.addresses_of_line("program.c", 40);
        debug.inlined_calls("square");
        debug.incomplete();
    }
    module.symbols().by_path("main");
    symbols.len()
}

fn mutate(good: &[u8], prng: &mut Prng) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let len = to_u64(bytes.len());
    if prng.chance(1, 8) {
        bytes.truncate(to_usize(prng.below(len)));
        return bytes;
    }
    for _ in 0..=prng.below(16) {
        let at = to_usize(prng.below(len));
        let values = [0, 0xFF, 0x7F, 0x80, 1];
        let value = match prng.below(3) {
            0 => values[to_usize(prng.below(5))],
            1 => bytes[at] ^ (1 << prng.below(8)),
            _ => raddle_stdx::width::low_u8(prng.next_u64()),
        };
        // A run of equal bytes breaks offsets and lengths as a whole.
        let run = if prng.chance(1, 4) { 8 } else { 1 };
        let end = (at + run).min(bytes.len());
        bytes[at..end].fill(value);
    }
    bytes
}

fn torture(good: &[u8], rounds: u64, family: u64) {
    let mut parsed = 0;
    for round in 0..rounds {
        let mut prng = Prng::new(Prng::derive_seed(SEED ^ family, round));
        let bytes = mutate(good, &mut prng);
        parsed += usize::from(interrogate(bytes, &mut prng) > 0);
    }
    // Most mutations must reach the code behind the header, or the test tests nothing.
    assert!(to_u64(parsed) > rounds / 2, "{parsed} of {rounds}");
}

#[test]
fn mutated_c_programs_with_debug_information_do_no_harm() {
    torture(&compile("program.c", &["-g", "-O2"]).bytes(), 6000, 1);
    torture(
        &compile("program.c", &["-gdwarf-4", "-O0"]).bytes(),
        2000,
        2,
    );
}

#[test]
fn mutated_cpp_programs_do_no_harm() {
    torture(&compile("program.cpp", &["-g", "-O2"]).bytes(), 2000, 3);
}

#[test]
fn mutated_compressed_debug_information_does_no_harm() {
    torture(
        &compile("program.c", &["-g", "-gz=zlib", "-O2"]).bytes(),
        1500,
        4,
    );
}

#[test]
fn mutated_system_programs_do_no_harm() {
    torture(&std::fs::read("/bin/bash").unwrap(), 150, 5);
    torture(
        &std::fs::read("/lib/x86_64-linux-gnu/libc.so.6").unwrap(),
        60,
        6,
    );
}

#[test]
fn every_truncation_of_a_small_program_does_no_harm() {
    let good = compile("program.c", &["-g", "-O1"]).bytes();
    let mut prng = Prng::new(SEED);
    for len in (0..good.len()).step_by(37) {
        interrogate(good[..len].to_vec(), &mut prng);
    }
}

/// A unit whose entries have thousands of attributes that take no space would need time quadratic in the file's size.
#[test]
fn entries_with_countless_empty_attributes_are_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let assembly = folder.path().join("bomb.s");
    let attributes: String = (0..4000)
        .map(|_| ".uleb128 0x2001, 0x19\n") // A vendor attribute as DW_FORM_flag_present.
        .collect();
    let entries = ".byte 2\n".repeat(20_000);
    let text = format!(
        ".text\n.globl _start\n_start: ret\n.Lend:\n\
         .section .debug_abbrev,\"\",@progbits\n.uleb128 1, 0x11\n.byte 1\n\
         .uleb128 0x11, 1, 0x12, 7, 0, 0\n.uleb128 2, 0x2e\n.byte 0\n{attributes}.byte 0, 0, 0\n\
         .section .debug_info,\"\",@progbits\n.long 2f-1f\n1: .value 4\n.long 0\n.byte 8\n\
         .uleb128 1\n.quad _start\n.quad .Lend-_start\n{entries}.byte 0\n2:\n"
    );
    std::fs::write(&assembly, text).unwrap();
    let path = folder.path().join("bomb");
    raddle_testkit::succeed(
        std::process::Command::new("gcc")
            .args(["-nostdlib", "-static", "-o"])
            .args([&path, &assembly]),
    );
    let module = Module::parse_alone(std::fs::read(&path).unwrap()).unwrap();
    let debug = module.debug_info().unwrap();
    assert_eq!(debug.scopes_at(module.entry()), []);
    assert_eq!(debug.variables(), []);
    let reasons: Vec<String> = debug.incomplete().iter().map(ToString::to_string).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(
        reasons[0].contains("steps of work for its size"),
        "{reasons:?}"
    );
}
