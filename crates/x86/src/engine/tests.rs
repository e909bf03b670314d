//! Tests of the loop: exact slices, links, self-modifying code, observation, restores.

use raddle_mem::{Backing, GuestAddr, PageFault, PageNo, Perm, Vma};

use super::*;
use crate::cpu::Reg;
use crate::exit::MemoryFault;
use crate::op::LogKind;

const CODE: u64 = 0x40_0000;
const DATA: u64 = 0x50_0000;

struct Fixture {
    frames: Frames,
    space: AddressSpace,
    engine: Engine,
    cpu: Cpu,
}

impl Fixture {
    fn new(code: &[u8]) -> Self {
        let mut frames = Frames::new(64 << 20).unwrap();
        let mut space = AddressSpace::default();
        let mut map = |start: u64, pages: u64, perm| {
            let start = GuestAddr(start).page();
            let vma = Vma {
                start,
                end: start.offset(pages),
                perm,
                shared: false,
                backing: Backing::Anonymous,
                label: "".into(),
            };
            space.map(&mut frames, vma);
        };
        map(CODE, 2, Perm::RWX);
        map(DATA, 16, Perm::RW);
        space.write(&mut frames, GuestAddr(CODE), code).unwrap();
        let mut cpu = Cpu {
            rip: CODE,
            ..Cpu::default()
        };
        cpu.set_reg(Reg::Rsp, DATA + 0x8000);
        Self {
            frames,
            space,
            engine: Engine::default(),
            cpu,
        }
    }

    fn run(&mut self, steps: u64) -> Outcome {
        let memory = Memory {
            frames: &mut self.frames,
            space: &mut self.space,
        };
        self.engine.run(
            &mut self.cpu,
            memory,
            Slice {
                steps,
                tsc: 0,
                skip_point: false,
            },
        )
    }
}

/// mov ecx, 1000 / xor eax, eax / loop: add rax, rcx / dec ecx / jnz loop / hlt
const SUM: &[u8] = &[
    0xB9, 0xE8, 3, 0, 0, 0x31, 0xC0, 0x48, 0x01, 0xC8, 0xFF, 0xC9, 0x75, 0xF9, 0x90, 0xEB, 0xFE,
];

#[test]
fn a_loop_runs_to_its_end() {
    let mut fixture = Fixture::new(SUM);
    let outcome = fixture.run(2 + 3 * 1000 + 10);
    assert_eq!(
        outcome,
        Outcome {
            exit: Exit::StepsDone,
            steps: 3012
        }
    );
    assert_eq!(fixture.cpu.reg(Reg::Rax), 500_500);
    assert_eq!(fixture.cpu.rip, CODE + 15);
}

#[test]
fn slices_end_at_exactly_the_requested_step() {
    let mut whole = Fixture::new(SUM);
    whole.run(2000);
    for piece in [1, 2, 3, 7, 64, 999] {
        let mut fixture = Fixture::new(SUM);
        let mut done = 0;
        while done < 2000 {
            let steps = piece.min(2000 - done);
            assert_eq!(
                fixture.run(steps),
                Outcome {
                    exit: Exit::StepsDone,
                    steps
                }
            );
            done += steps;
        }
        assert_eq!(fixture.cpu, whole.cpu, "in pieces of {piece}");
    }
}

/// push rax / mov [DATA], rax / add qword [DATA], 5 / pop rbx / jmp self
const ACCESSES: &[u8] = &[
    0x50, 0x48, 0x89, 0x04, 0x25, 0, 0, 0x50, 0, 0x48, 0x83, 0x04, 0x25, 0, 0, 0x50, 0, 5, 0x5B,
    0xEB, 0xFE,
];

#[test]
fn accesses_are_logged_with_step_and_value() {
    let mut fixture = Fixture::new(ACCESSES);
    fixture.cpu.set_reg(Reg::Rax, 37);
    fixture.engine.set_observe(Observe::AddrValue);
    fixture.run(4);
    let mut seen = Vec::new();
    fixture.engine.log().for_each(|record| {
        seen.push((
            record.step,
            record.addr,
            record.size,
            record.kind,
            record.value,
        ));
    });
    let stack = DATA + 0x8000 - 8;
    assert_eq!(
        seen,
        [
            (0, stack, 8, LogKind::Write, Some(37)),
            (1, DATA, 8, LogKind::Write, Some(37)),
            (2, DATA, 8, LogKind::Update, Some(37)),
            (3, stack, 8, LogKind::Read, Some(37)),
        ]
    );
    assert_eq!(fixture.cpu.reg(Reg::Rbx), 37);
}

#[test]
fn a_fault_leaves_the_state_before_the_instruction() {
    // mov rbx, 7 / mov rax, [0x10]
    let mut fixture = Fixture::new(&[
        0x48, 0xC7, 0xC3, 7, 0, 0, 0, 0x48, 0x8B, 0x04, 0x25, 0x10, 0, 0, 0,
    ]);
    let outcome = fixture.run(10);
    let fault = MemoryFault {
        addr: GuestAddr(0x10),
        access: raddle_mem::Access::Read,
        cause: PageFault::NotMapped,
    };
    assert_eq!(
        outcome,
        Outcome {
            exit: Exit::Fault(Fault::Memory(fault)),
            steps: 1
        }
    );
    assert_eq!((fixture.cpu.rip, fixture.cpu.reg(Reg::Rbx)), (CODE + 7, 7));
}

#[test]
fn code_that_changes_itself_is_decoded_again() {
    // again: mov byte [rip + 1], 9 (the immediate below) / mov al, 0 / jmp self
    let mut fixture = Fixture::new(&[0xC6, 0x05, 1, 0, 0, 0, 9, 0xB0, 0, 0xEB, 0xFE]);
    let outcome = fixture.run(3);
    assert_eq!(outcome.steps, 3);
    assert_eq!(fixture.cpu.reg(Reg::Rax), 9);
}

#[test]
fn restored_code_runs_as_it_was() {
    let mut fixture = Fixture::new(&[0xB0, 1, 0xEB, 0xFE]);
    let (depth, cpu) = (fixture.frames.snapshot(), fixture.cpu.clone());
    for value in [2, 3] {
        fixture
            .space
            .write(&mut fixture.frames, GuestAddr(CODE + 1), &[value])
            .unwrap();
        fixture.run(2);
        assert_eq!(fixture.cpu.reg(Reg::Rax), u64::from(value));
        fixture.frames.restore(depth);
        fixture.cpu.clone_from(&cpu);
        fixture.run(2);
        assert_eq!(fixture.cpu.reg(Reg::Rax), 1);
        fixture.cpu.clone_from(&cpu);
    }
}

#[test]
fn points_stop_before_the_instruction() {
    let mut fixture = Fixture::new(SUM);
    fixture.engine.add_point(CODE + 10);
    let outcome = fixture.run(100);
    assert_eq!(
        outcome,
        Outcome {
            exit: Exit::Point(GuestAddr(CODE + 10)),
            steps: 3
        }
    );
    let memory = Memory {
        frames: &mut fixture.frames,
        space: &mut fixture.space,
    };
    let again = fixture.engine.run(
        &mut fixture.cpu,
        memory,
        Slice {
            steps: 100,
            tsc: 0,
            skip_point: true,
        },
    );
    assert_eq!(
        again,
        Outcome {
            exit: Exit::Point(GuestAddr(CODE + 10)),
            steps: 3
        }
    );
    fixture.engine.remove_point(CODE + 10);
    assert_eq!(fixture.run(5).exit, Exit::StepsDone);
}

#[test]
fn instructions_may_cross_pages_but_not_into_nothing() {
    let mut fixture = Fixture::new(&[]);
    // mov eax, 0x01020304 with its last two bytes on the next page
    let at = CODE + 0x1000 - 3;
    fixture
        .space
        .write(
            &mut fixture.frames,
            GuestAddr(at),
            &[0xB8, 4, 3, 2, 1, 0xEB, 0xFE],
        )
        .unwrap();
    fixture.cpu.rip = at;
    fixture.run(1);
    assert_eq!(fixture.cpu.reg(Reg::Rax), 0x0102_0304);
    let last = PageNo(GuestAddr(CODE).page().0 + 1);
    fixture
        .space
        .unmap(&mut fixture.frames, last, last.offset(1));
    fixture.cpu.rip = at;
    let fault = MemoryFault {
        addr: GuestAddr(CODE + 0x1000),
        access: raddle_mem::Access::Execute,
        cause: PageFault::NotMapped,
    };
    assert_eq!(fixture.run(1).exit, Exit::Fault(Fault::Memory(fault)));
}

#[test]
fn blocks_whose_points_change_lead_to_their_successors() {
    // dec ecx
    const COUNTING: u64 = CODE + 10;
    let mut fixture = Fixture::new(SUM);
    let mut stops = 0;
    let mut is_flagged = false;
    // More changes than blocks may have successors before links are put right.
    for _ in 0..300 {
        is_flagged = !is_flagged;
        if is_flagged {
            fixture.engine.add_point(COUNTING);
        } else {
            fixture.engine.remove_point(COUNTING);
        }
        let outcome = fixture.run(7);
        stops += u64::from(matches!(outcome.exit, Exit::Point(_)));
    }
    fixture.engine.remove_point(COUNTING);
    fixture.run(2 + 3 * 1000 + 10);
    assert!(stops > 100, "{stops}");
    assert_eq!(fixture.cpu.reg(Reg::Rax), 1000 * 1001 / 2);
}

/// A block of 40 instructions at each of two addresses that jump to each other.
#[test]
fn code_that_is_mostly_stale_is_forgotten() {
    let mut code = [0x90; 4096];
    code[..3].copy_from_slice(&[0x48, 0xFF, 0xC0]);
    code[40..42].copy_from_slice(&[0xEB, 0xD6]);
    let mut fixture = Fixture::new(&code);
    for round in 0..400 {
        fixture.engine.add_point(CODE + 3 + round % 30);
        fixture.run(200);
        fixture.engine.remove_point(CODE + 3 + round % 30);
        fixture.run(200);
    }
    let rounds = fixture.cpu.reg(Reg::Rax);
    fixture.run(39 * 10);
    assert_eq!(fixture.cpu.reg(Reg::Rax), rounds + 10);
}

#[test]
fn a_jump_to_the_last_address_is_a_fault_and_nothing_else() {
    // mov rax, -1 / push rax / ret
    let mut fixture = Fixture::new(&[0x48, 0xC7, 0xC0, 0xFF, 0xFF, 0xFF, 0xFF, 0x50, 0xC3]);
    let outcome = fixture.run(10);
    assert_eq!(outcome.steps, 3);
    assert!(matches!(outcome.exit, Exit::Fault(_)), "{outcome:?}");
    assert_eq!(fixture.cpu.rip, u64::MAX);
}

/// call f / jmp $ / f: push rbx / push 7 / push rsp / push rcx / push rdx / pop rsi / pop rdi / pop r8 / pop r9 / pop rbx /
/// ret
const STACK: &[u8] = &[
    0xE8, 2, 0, 0, 0, 0xEB, 0xFE, 0x53, 0x6A, 7, 0x54, 0x51, 0x52, 0x5E, 0x5F, 0x41, 0x58, 0x41,
    0x59, 0x5B, 0xC3,
];
const STACK_STEPS: u64 = 12;

/// Registers and accesses after so many steps in slices of a length, again and again until all blocks are linked.
fn run_stack(rsp: u64, slice: u64) -> (Vec<u64>, Vec<(u64, u64, LogKind)>) {
    let mut fixture = Fixture::new(STACK);
    fixture.engine.set_observe(Observe::Addr);
    let mut accesses = Vec::new();
    for round in 0..3 {
        fixture.cpu.rip = CODE;
        fixture.cpu.set_reg(Reg::Rsp, rsp);
        for (reg, value) in [(Reg::Rbx, 3), (Reg::Rcx, 5), (Reg::Rdx, round)] {
            fixture.cpu.set_reg(reg, value);
        }
        let mut left = STACK_STEPS;
        while left > 0 {
            let outcome = fixture.run(slice.min(left));
            assert_eq!(outcome.exit, Exit::StepsDone);
            left -= outcome.steps;
        }
        assert_eq!(fixture.cpu.rip, CODE + 5, "round {round}");
        let log = fixture.engine.log();
        log.for_each(|record| accesses.push((record.pc, record.addr, record.kind)));
        fixture.engine.clear_log();
    }
    let registers = [
        Reg::Rbx,
        Reg::Rsp,
        Reg::Rsi,
        Reg::Rdi,
        Reg::R8,
        Reg::R9,
        Reg::Rdx,
    ];
    let registers = registers.map(|reg| fixture.cpu.reg(reg));
    (registers.to_vec(), accesses)
}

#[test]
fn pushes_and_pops_together_are_as_one_by_one() {
    let page = DATA + 0x8000;
    for rsp in (page - 64..=page + 64).step_by(4) {
        let (registers, accesses) = run_stack(rsp, STACK_STEPS);
        assert_eq!(registers[..2], [3, rsp]);
        assert_eq!(registers[4], rsp - 24, "PUSH RSP pushes it as it was");
        assert_eq!((registers.clone(), accesses), run_stack(rsp, 1), "{rsp:x}");
    }
}
