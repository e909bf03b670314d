//! Fetching and decoding on a paged machine.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use raddle_mem::{Access, FrameId, GuestAddr, PAGE_BITS, PAGE_SIZE};

use super::memory::{self, Ram, frame_of, page_fault};
use crate::cache::GroupKey;
use crate::cpu::Cpu;
use crate::exit::Fault;
use crate::fetch::{Fetched, INSTRUCTION_BYTES_MAX};
use crate::paging::{self, Controls};
use crate::run::Run;

/// The frame of the code page with `addr`: known, or looked up now.
fn page(run: &mut Run, key: GroupKey, addr: u64) -> Result<FrameId, Fault> {
    let number = addr >> PAGE_BITS;
    // SAFETY: code is fetched during a run only.
    if let Some(frame) = unsafe { super::cache(run) }.code_page((key, number)) {
        return Ok(frame);
    }
    memory::prove(run, (key, number)).map_err(|fault| match fault {
        // The fault is at the byte that could not be fetched.
        Fault::Memory(mut fault) => {
            fault.addr = GuestAddr(addr);
            Fault::Memory(fault)
        }
        other => other,
    })
}

/// As `crate::fetch::instructions`, for a block of the group `key`.
pub(super) fn instructions(
    run: &mut Run,
    key: GroupKey,
    pc: u64,
    count_max: u8,
) -> Result<Fetched, Fault> {
    let frame = page(run, key, pc)?;
    let offset = GuestAddr(pc).page_offset();
    let mut fetched = Fetched {
        instructions: Vec::new(),
        frames: [Some(frame), None],
    };
    // SAFETY: as in `page`.
    let bytes = *unsafe { super::frames(run) }.bytes(frame);
    let mut decoder = Decoder::with_ip(64, &bytes[offset..], pc, DecoderOptions::NONE);
    let mut used = 0;
    while fetched.instructions.len() < usize::from(count_max) && decoder.can_decode() {
        let before = decoder.position();
        let mut instruction = decoder.decode();
        let crosses =
            instruction.is_invalid() && PAGE_SIZE - offset - before < INSTRUCTION_BYTES_MAX;
        if crosses {
            match across_pages(run, key, pc + before as u64, &bytes[offset + before..]) {
                Ok((found, second)) => {
                    instruction = found;
                    fetched.frames[1] = Some(second);
                    memory::mark_code(run, second, 0, INSTRUCTION_BYTES_MAX);
                }
                Err(fault) if fetched.instructions.is_empty() => return Err(fault),
                Err(_) => break,
            }
        }
        fetched.instructions.push(instruction);
        used = before + instruction.len();
        if crosses || instruction.flow_control() != FlowControl::Next || instruction.is_invalid() {
            break;
        }
    }
    memory::mark_code(run, frame, offset, used.min(PAGE_SIZE - offset));
    Ok(fetched)
}

/// An instruction that begins with `first` at the end of a page.
fn across_pages(
    run: &mut Run,
    key: GroupKey,
    pc: u64,
    first: &[u8],
) -> Result<(Instruction, FrameId), Fault> {
    let next_page = GuestAddr(pc).page().offset(1).start().0;
    let second = page(run, key, next_page)?;
    let mut bytes = first.to_vec();
    // SAFETY: as in `page`.
    let behind = unsafe { super::frames(run) }.bytes(second);
    bytes.extend_from_slice(&behind[..INSTRUCTION_BYTES_MAX]);
    Ok((
        Decoder::with_ip(64, &bytes, pc, DecoderOptions::NONE).decode(),
        second,
    ))
}

/// The bytes at RIP in 64-bit mode, if they all lie on one page or the next page is there too; zeros behind the end of
/// what is mapped.
pub(super) fn bytes(cpu: &Cpu, memory: &mut Ram<'_>) -> Option<[u8; INSTRUCTION_BYTES_MAX]> {
    let controls = Controls::from(&*cpu.system);
    let mut bytes = [0; INSTRUCTION_BYTES_MAX];
    let mut done = 0;
    while done < bytes.len() {
        let addr = cpu.rip.wrapping_add(done as u64);
        let found = paging::look_up(controls, addr, memory);
        let frame = found.and_then(|physical| frame_of(physical, memory.pages));
        let Some(frame) = frame else {
            return (done > 0).then_some(bytes);
        };
        let offset = GuestAddr(addr).page_offset();
        let count = (PAGE_SIZE - offset).min(bytes.len() - done);
        bytes[done..done + count]
            .copy_from_slice(&memory.frames.bytes(frame)[offset..offset + count]);
        done += count;
    }
    Some(bytes)
}

/// One instruction in any mode, straight from memory.
pub(super) fn single(cpu: &Cpu, memory: &mut Ram<'_>) -> Result<(Instruction, Vec<u8>), Fault> {
    let controls = Controls::from(&*cpu.system);
    let is_user = cpu.system.cpl == 3;
    let start = cpu.system.code_base().wrapping_add(cpu.rip);
    let bits = cpu.system.code_bits();
    let mut bytes = Vec::with_capacity(INSTRUCTION_BYTES_MAX);
    let mut fault = None;
    while bytes.len() < INSTRUCTION_BYTES_MAX {
        let addr = start.wrapping_add(bytes.len() as u64);
        let found = paging::peek(controls, addr, Access::Execute, is_user, memory)
            .map_err(|code| page_fault(addr, Access::Execute, code))
            .and_then(|(found, _)| {
                frame_of(found.physical, memory.pages)
                    .ok_or_else(|| page_fault(addr, Access::Execute, 1))
            });
        let frame = match found {
            Ok(frame) => frame,
            Err(found) => {
                fault = Some(found);
                break;
            }
        };
        let offset = GuestAddr(addr).page_offset();
        let count = (PAGE_SIZE - offset).min(INSTRUCTION_BYTES_MAX - bytes.len());
        bytes.extend_from_slice(&memory.frames.bytes(frame)[offset..offset + count]);
    }
    let instruction = Decoder::with_ip(bits, &bytes, cpu.rip, DecoderOptions::NONE).decode();
    match fault {
        Some(fault) if instruction.is_invalid() => Err(fault),
        _ => {
            bytes.truncate(instruction.len().max(1));
            Ok((instruction, bytes))
        }
    }
}
