//! A whole machine with a small guest: timers, start-up, interrupts between processors, snapshots.

mod guest;

use raddle_x86::{Observe, Reg};

use super::*;
use crate::boot::{Entry, Write};

const MEMORY: u64 = 32 << 20;
const TICKS: u64 = 0x100_2000;

/// The guest on page tables that map four gibibytes one to one.
fn machine() -> Machine {
    let mut tables = vec![0_u64; 512 * 6];
    tables[0] = 0xA003;
    for gib in 0..4 {
        tables[512 + gib] = 0xB003 + 0x1000 * gib as u64;
    }
    for (index, entry) in tables[1024..].iter_mut().enumerate() {
        *entry = (index as u64) << 21 | 0x83;
    }
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let write = |physical, bytes| Write { physical, bytes };
    let image = BootImage {
        writes: vec![
            write(
                0x1000,
                words(&[0, 0, 0x00AF_9B00_0000_FFFF, 0x00CF_9300_0000_FFFF]),
            ),
            write(0x9000, words(&tables)),
            write(0x100_0000, guest::FIRST.to_vec()),
            write(0x8000, guest::SECOND.to_vec()),
        ],
        entry: Entry {
            rip: 0x100_0000,
            rsp: 0x100_8000,
            rsi: 0,
            cr3: 0x9000,
            gdt_base: 0x1000,
            gdt_limit: 31,
            code_selector: 0x10,
            data_selector: 0x18,
        },
    };
    Machine::new(&image, 2, MEMORY).unwrap()
}

fn ticks(machine: &Machine) -> u32 {
    let mut word = [0; 4];
    machine.read_physical(TICKS, &mut word);
    u32::from_le_bytes(word)
}

#[test]
fn timers_start_up_and_interrupts_between_processors() {
    let mut machine = machine();
    assert_eq!(
        (machine.power(0), machine.power(1)),
        (Power::Running, Power::Off)
    );
    let (who, stop) = machine.run_all(0, 10_000_000);
    assert_eq!((who, stop), (0, MachineStop::Hypercall));
    assert_eq!(machine.cpu(0).reg(Reg::Rcx), 3, "ticks");
    let mut flags = [0; 2];
    machine.read_physical(0x500, &mut flags);
    assert_eq!(flags, [7, 9]);
    assert_eq!(machine.power(1), Power::Halted);
}

#[test]
fn time_jumps_while_everybody_waits() {
    let mut machine = machine();
    machine.run_all(0, 10_000_000);
    let steps = machine.steps(0) + machine.steps(1);
    assert!(steps < 100_000, "nobody worked much: {steps}");
    assert!(
        machine.now() > 3_000_000,
        "three ticks of a millisecond: {}",
        machine.now()
    );
}

#[test]
fn a_held_interrupt_is_taken_when_the_caller_says_so() {
    let mut machine = machine();
    let bounds = Bounds {
        interrupts: Interrupts::Hold,
        ..Bounds::steps(1_000_000)
    };
    assert_eq!(machine.run(0, bounds).stop, MachineStop::Idle);
    assert_eq!(machine.dispatchable(0), None);
    assert!(machine.skip_to_timer());
    assert_eq!(machine.dispatchable(0), Some(0x40));
    assert_eq!(
        machine.run(0, bounds).stop,
        MachineStop::Idle,
        "still waiting"
    );
    assert_eq!(machine.dispatch(0), Some(0x40));
    let frames: Vec<u8> = machine
        .interrupts(0)
        .iter()
        .map(|active| active.vector)
        .collect();
    assert_eq!(frames, [0x40]);
    assert_eq!(machine.run(0, bounds).stop, MachineStop::InterruptDone);
    assert!(machine.interrupts(0).is_empty());
    assert_eq!(ticks(&machine), 1);
}

#[test]
fn the_cut_into_turns_changes_no_result_of_one_processor() {
    const STEPS: u64 = 90;
    let run = |turn: u64| {
        let mut machine = machine();
        while machine.steps(0) < STEPS {
            let steps = turn.min(STEPS - machine.steps(0));
            if machine.run(0, Bounds::steps(steps)).stop == MachineStop::Idle {
                assert!(machine.skip_to_timer());
            }
        }
        assert_eq!(ticks(&machine), 3);
        machine.digest()
    };
    let whole = run(1_000_000);
    for turn in [1, 2, 7] {
        assert_eq!(run(turn), whole, "turns of {turn}");
    }
}

#[test]
fn a_restored_machine_repeats_itself_exactly() {
    let mut machine = machine();
    machine.run(0, Bounds::steps(30));
    let outer = machine.snapshot();
    let before = machine.digest();
    let mut ends = Vec::new();
    for _ in 0..3 {
        machine.run_all(0, 10_000_000);
        ends.push(machine.digest());
        machine.restore(outer);
        assert_eq!(machine.digest(), before);
    }
    assert!(ends.iter().all(|end| *end == ends[0]));
    assert_ne!(ends[0], before);
}

#[test]
fn accesses_carry_processor_step_and_physical_address() {
    let mut machine = machine();
    machine.set_observe(Observe::AddrValue, Keep::All);
    machine.run_all(0, 10_000_000);
    let accesses = machine.take_accesses();
    let start = accesses
        .iter()
        .find(|access| access.cpu == 1 && access.physical == 0x500)
        .expect("the second processor reports");
    assert_eq!((start.value, start.step), (Some(7), 7));
    let ticks: Vec<_> = accesses
        .iter()
        .filter(|access| access.addr == TICKS && access.kind == raddle_x86::LogKind::Update)
        .map(|access| (access.cpu, access.value))
        .collect();
    assert_eq!(ticks, [(0, Some(0)), (0, Some(1)), (0, Some(2))]);
    machine.set_observe(Observe::Addr, Keep::Kernel);
    machine.run(1, Bounds::steps(10));
    assert!(
        machine.take_accesses().is_empty(),
        "nothing runs in the upper half"
    );
}
