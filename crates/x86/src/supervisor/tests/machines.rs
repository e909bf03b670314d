//! What the guests must see.

use raddle_mem::GuestAddr;

use super::guests::*;
use super::*;

/// Runs a processor until it halts; gives the steps.
fn run_to_halt(guest: &mut Guest, cpu: usize) -> u64 {
    let outcome = guest.run(cpu, 100_000);
    assert_eq!(outcome.exit, SystemExit::Halt, "{:#x}", guest.cpus[cpu].rip);
    outcome.steps
}

fn user_guest() -> Guest {
    let mut guest = Guest::new(&[enter_user()]);
    guest.put(0x10_0000, user_touches_missing_page());
    guest.put(0x1_4000, map_missing_page());
    guest.gate(14, 0x1_4000);
    guest.put_word(0x10_2010, 6);
    guest
}

#[test]
fn user_mode_faults_and_comes_back() {
    let mut guest = user_guest();
    let steps = run_to_halt(&mut guest, 0);
    assert_eq!(
        guest.reg(0, Reg::Rdi),
        7,
        "the load saw the page mapped by the handler"
    );
    assert_eq!(guest.word(DATA), 4, "error code: user, not present, read");
    assert_eq!(guest.word(DATA + 8), 0x20_2010, "CR2");
    assert_eq!(guest.word(0x10_1000), 41);
    // 16 to SYSRET, 1 store, 1 exception, 10 in the handler, 3 in user mode, 2 back in the kernel.
    assert_eq!(steps, 16 + 1 + 1 + 10 + 3 + 2);
    assert_eq!(guest.cpus[0].system.cpl, 0);
}

#[test]
fn accessed_and_dirty_bits_are_set_by_data_accesses() {
    let mut guest = user_guest();
    run_to_halt(&mut guest, 0);
    assert_eq!(guest.word(USER_TABLE + 8) & 0x60, 0x60, "the store");
    assert_eq!(guest.word(USER_TABLE + 16) & 0x60, 0x20, "the load");
}

#[test]
fn an_interrupt_is_taken_between_two_instructions() {
    let mut guest = Guest::new(&[count_with_interrupts()]);
    guest.put(0x1_4000, count_interrupt());
    guest.gate(0x40, 0x1_4000);
    guest.run(0, 10);
    for _ in 0..3 {
        let Guest {
            engine,
            cpus,
            frames,
            devices,
            ..
        } = &mut guest;
        engine
            .interrupt(0, &mut cpus[0], frames, devices, 0x40)
            .unwrap();
        assert_eq!(guest.cpus[0].rip, 0x1_4000);
        guest.run(0, 2 + 4);
    }
    assert_eq!(guest.word(DATA), 3);
    // STI, then increments and jumps in turn: 9 steps, then three times 4.
    assert_eq!(guest.reg(0, Reg::Rax), (9 + 12) / 2 + 1);
}

#[test]
fn a_window_opens_one_instruction_after_sti() {
    for steps_each in [1, 2, 100] {
        let mut guest = Guest::new(&[open_window()]);
        let mut made = 0;
        let exit = loop {
            let slice = SystemSlice {
                wants_window: true,
                ..guest.slice(steps_each)
            };
            let outcome = guest.run_slice(0, slice);
            made += outcome.steps;
            if outcome.exit != SystemExit::StepsDone {
                break outcome.exit;
            }
            assert!(made < 20);
        };
        assert_eq!(
            (exit, made),
            (SystemExit::Window, 5),
            "slices of {steps_each}"
        );
        assert_eq!(guest.reg(0, Reg::Rax), 3);
        assert!(!guest.cpus[0].system.interrupt_shadow);
    }
}

#[test]
fn a_slice_that_ends_behind_sti_leaves_the_shadow() {
    let mut guest = Guest::new(&[open_window()]);
    guest.run(0, 4);
    assert!(guest.cpus[0].system.interrupt_shadow);
    guest.run(0, 1);
    assert!(!guest.cpus[0].system.interrupt_shadow);
}

#[test]
fn devices_are_told_who_and_when_and_end_the_slice() {
    let mut guest = Guest::new(&[touch_devices()]);
    guest.tsc = 1000;
    let mut exits = Vec::new();
    loop {
        let outcome = guest.run(0, 1000);
        exits.push((outcome.exit.clone(), outcome.steps));
        if outcome.exit != SystemExit::Device {
            break;
        }
    }
    use SystemExit::{Device, Hypercall};
    assert_eq!(
        exits,
        [
            (Device, 2),
            (Device, 3),
            (Device, 1),
            (Device, 1),
            (Device, 2),
            (Hypercall, 4)
        ]
    );
    let expected = [
        (1001, "in 3f8 1"),
        (1004, "out 80 77 1"),
        (1005, "load fee00030 4"),
        (1006, "load fee00080 4"),
        (1006, "store fee00080 12345679 4"),
        (1008, "rdmsr 123"),
    ];
    let expected = expected.map(|(tsc, what)| (0, tsc, what.to_owned()));
    assert_eq!(guest.devices.accesses, expected);
    assert_eq!(guest.reg(0, Reg::Rbx), 0x5A);
    assert_eq!(guest.reg(0, Reg::R8), 0x1234_5678);
    assert_eq!(guest.reg(0, Reg::R9), 7);
    assert_eq!(
        guest.reg(0, Reg::Rcx),
        5,
        "a call leaves the registers alone"
    );
}

/// An instruction that is flagged and touches a device is stopped at once, and goes on the next time.
#[test]
fn points_at_device_accesses_are_passed() {
    for plain in [false, true] {
        let mut guest = Guest::new(&[touch_devices()]);
        guest.engine.set_plain(plain);
        // Up to the second port.
        guest.run(0, 1000);
        guest.run(0, 1000);
        let load = guest.cpus[0].rip;
        guest.engine.set_points([load].into());
        assert_eq!(guest.run(0, 1000).exit, SystemExit::Point(GuestAddr(load)));
        let slice = SystemSlice {
            skip_point: true,
            ..guest.slice(1000)
        };
        let outcome = guest.run_slice(0, slice);
        assert_eq!((outcome.exit, outcome.steps), (SystemExit::Device, 1));
        assert_eq!(guest.reg(0, Reg::R8), 0x1234_5678);
    }
}

/// Points are counted and passed as often as the slice says, and never those that are named.
#[test]
fn points_are_passed_as_often_as_allowed() {
    for plain in [false, true] {
        let mut guest = caller(give_one());
        guest.engine.set_plain(plain);
        guest.engine.set_points([0x1_4000].into());
        let slice = SystemSlice {
            pass_points: 10,
            ..guest.slice(1_000)
        };
        let outcome = guest.run_slice(0, slice);
        assert_eq!(outcome.exit, SystemExit::Point(GuestAddr(0x1_4000)));
        // Two instructions up to the first visit, six for each turn.
        assert_eq!((outcome.passed, outcome.steps), (10, 2 + 10 * 6));
        guest.engine.set_interest(&[0x1_4000]);
        let outcome = guest.run_slice(
            0,
            SystemSlice {
                skip_point: true,
                ..slice
            },
        );
        assert_eq!((outcome.passed, outcome.steps), (0, 6));
    }
}

fn caller(second: &[u8]) -> Guest {
    let mut guest = Guest::new(&[call_function(), second]);
    guest.put(0x1_4000, give_one());
    guest.put(0x1_5000, give_hundred());
    guest
}

#[test]
fn code_changed_by_another_processor_is_seen() {
    let mut guest = caller(patch_function());
    guest.run(0, 1 + 6 * 10);
    assert_eq!((guest.reg(0, Reg::R8), guest.reg(0, Reg::R9)), (10, 10));
    run_to_halt(&mut guest, 1);
    guest.run(0, 6 * 10);
    assert_eq!((guest.reg(0, Reg::R8), guest.reg(0, Reg::R9)), (60, 20));
}

#[test]
fn code_mapped_elsewhere_is_seen_at_once() {
    let mut guest = caller(remap_function());
    guest.run(0, 1 + 6 * 10);
    run_to_halt(&mut guest, 1);
    guest.run(0, 6 * 2);
    assert_eq!((guest.reg(0, Reg::R8), guest.reg(0, Reg::R9)), (210, 12));
}

#[test]
fn translations_of_data_last_until_they_are_flushed() {
    let mut guest = Guest::new(&[change_translation()]);
    for page in 0..3 {
        guest.put_word(DATA + 0x1000 * page, 10 + page);
    }
    run_to_halt(&mut guest, 0);
    let seen = [Reg::Rax, Reg::Rbx, Reg::Rdx, Reg::Rsi].map(|reg| guest.reg(0, reg));
    assert_eq!(seen, [10, 10, 11, 12]);
}

#[test]
fn write_protection_binds_the_kernel() {
    let mut guest = Guest::new(&[write_read_only()]);
    guest.put(0x1_4000, halt_on_fault());
    guest.gate(14, 0x1_4000);
    run_to_halt(&mut guest, 0);
    assert_eq!(guest.reg(0, Reg::Rdi), 3, "error code: present, write");
    assert_eq!(guest.cpus[0].system.cr2, 0x20_3000);
    let mut guest = Guest::new(&[write_read_only()]);
    guest.cpus[0].system.cr0 &= !crate::system::cr0::WP;
    run_to_halt(&mut guest, 0);
    assert_eq!(guest.word(0x10_3000), 1);
}

#[test]
fn a_fault_without_a_table_stops_the_processor() {
    let mut guest = Guest::new(&[write_read_only()]);
    assert_eq!(guest.run(0, 100).exit, SystemExit::Shutdown);
}

#[test]
fn a_processor_comes_up_from_real_mode() {
    let mut guest = Guest::new(&[call_function(), start_up()]);
    guest.put(0x1_8000, start_up());
    // A 32-bit code segment, and the image that LGDT reads.
    guest.put_word(GDT + 0x18, 0x00CF_9B00_0000_FFFF);
    guest.put(0x9000, &[0x3F, 0, 0, 0x10, 0, 0]);
    let mut cpu = Cpu::default();
    *cpu.system = SystemState::startup(0x18);
    cpu.system_flags = rflags::FIXED;
    guest.cpus[1] = cpu;
    run_to_halt(&mut guest, 1);
    assert_eq!(guest.word(DATA), 0x1122_3344_5566_7788);
    assert_eq!(guest.cpus[1].system.code_bits(), 64);
}

#[test]
fn a_jump_to_the_firmware_asks_for_a_restart() {
    // Two ways to the same place: kernels differ in the segment.
    for jump in [
        [0xEA, 0xF0, 0xFF, 0x00, 0xF0],
        [0xEA, 0x00, 0x00, 0xFF, 0xFF],
    ] {
        for length in [1, 100] {
            let mut guest = Guest::new(&[call_function()]);
            guest.put(0x1_8000, &jump);
            *guest.cpus[0].system = SystemState::startup(0x18);
            guest.cpus[0].rip = 0;
            let mut steps = 0;
            let exit = loop {
                let outcome = guest.run(0, length);
                steps += outcome.steps;
                if outcome.exit != SystemExit::StepsDone {
                    break outcome.exit;
                }
            };
            assert_eq!((exit, steps), (SystemExit::Firmware, 1));
        }
    }
}

/// Registers and the pages that `mixed_work` writes.
fn result_of(guest: &Guest) -> (Cpu, Vec<u64>) {
    let words = (0..0x2_000_u64 / 8).map(|index| guest.word(DATA + 8 * index));
    (guest.cpus[0].clone(), words.collect())
}

#[test]
fn slices_of_any_length_and_the_plain_interpreter_agree() {
    let mut whole = Guest::new(&[mixed_work()]);
    let steps = run_to_halt(&mut whole, 0);
    let expected = result_of(&whole);
    for length in [1, 2, 3, 5, 17, 64] {
        let mut guest = Guest::new(&[mixed_work()]);
        let mut made = 0;
        loop {
            let outcome = guest.run(0, length);
            made += outcome.steps;
            match outcome.exit {
                SystemExit::StepsDone => assert_eq!(outcome.steps, length),
                exit => {
                    assert_eq!(exit, SystemExit::Halt);
                    break;
                }
            }
        }
        assert_eq!(made, steps, "slices of {length}");
        assert_eq!(result_of(&guest), expected, "slices of {length}");
    }
    let mut plain = Guest::new(&[mixed_work()]);
    plain.engine.set_plain(true);
    assert_eq!(run_to_halt(&mut plain, 0), steps);
    assert_eq!(result_of(&plain), expected);
}

#[test]
fn a_restored_machine_runs_as_before() {
    let mut guest = user_guest();
    guest.run(0, 5);
    let depth = guest.frames.snapshot();
    let cpu = guest.cpus[0].clone();
    let mut results = Vec::new();
    for _ in 0..3 {
        let steps = run_to_halt(&mut guest, 0);
        results.push((steps, guest.word(DATA + 8), result_of(&guest)));
        guest.frames.restore(depth);
        guest.cpus[0].clone_from(&cpu);
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    assert_eq!(
        guest.word(USER_TABLE + 16),
        0,
        "the handler's mapping is gone"
    );
}

#[test]
fn accesses_are_logged_with_their_step_in_both_modes() {
    let log = |plain: bool| {
        let mut guest = user_guest();
        guest.engine.set_plain(plain);
        guest.engine.set_observe(crate::engine::Observe::AddrValue);
        run_to_halt(&mut guest, 0);
        let mut records = Vec::new();
        guest.engine.log().for_each(|record| records.push(*record));
        records
    };
    let records = log(false);
    assert_eq!(records, log(true));
    let load = records
        .iter()
        .find(|record| record.addr == 0x20_2010)
        .unwrap();
    assert_eq!((load.step, load.value), (16 + 1 + 1 + 10, Some(6)));
}
