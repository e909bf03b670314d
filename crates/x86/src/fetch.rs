//! Fetching and decoding the instructions of a block.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use raddle_mem::{Access, AddressSpace, FrameId, Frames, GuestAddr, PAGE_SIZE};

use crate::exit::{Fault, MemoryFault};

/// No instruction is longer (SDM vol. 2A, 2.3.11).
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 15;

/// Decoded instructions and the frames their bytes are in.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) frames: [Option<FrameId>; 2],
}

/// Decodes from `pc` to the end of the block: a branch, the end of the page, or `count_max` instructions. Only
/// an instruction that begins on the page may reach into the next one.
pub(crate) fn instructions(
    frames: &mut Frames,
    space: &mut AddressSpace,
    pc: u64,
    count_max: u8,
) -> Result<Fetched, Fault> {
    let frame = translate(frames, space, pc)?;
    let offset = GuestAddr(pc).page_offset();
    let mut fetched = Fetched {
        instructions: Vec::new(),
        frames: [Some(frame), None],
    };
    let page = *frames.bytes(frame);
    let mut decoder = Decoder::with_ip(64, &page[offset..], pc, DecoderOptions::NONE);
    let mut used = 0;
    while fetched.instructions.len() < usize::from(count_max) && decoder.can_decode() {
        let before = decoder.position();
        let mut instruction = decoder.decode();
        let crosses =
            instruction.is_invalid() && PAGE_SIZE - offset - before < INSTRUCTION_BYTES_MAX;
        if crosses {
            match across_pages(frames, space, pc + before as u64) {
                Ok((found, second)) => {
                    instruction = found;
                    fetched.frames[1] = Some(second);
                    frames.mark_code(second, 0, INSTRUCTION_BYTES_MAX);
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
    frames.mark_code(frame, offset, used.min(PAGE_SIZE - offset));
    Ok(fetched)
}

/// The bytes of the instruction at `pc`, as many as can be read.
pub(crate) fn bytes(frames: &mut Frames, space: &mut AddressSpace, pc: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in (pc..).take(INSTRUCTION_BYTES_MAX) {
        let Ok(frame) = translate(frames, space, at) else {
            break;
        };
        bytes.push(frames.bytes(frame)[GuestAddr(at).page_offset()]);
    }
    let length = Decoder::with_ip(64, &bytes, pc, DecoderOptions::NONE)
        .decode()
        .len();
    bytes.truncate(length.max(1));
    bytes
}

/// An instruction whose bytes lie in two pages.
fn across_pages(
    frames: &mut Frames,
    space: &mut AddressSpace,
    pc: u64,
) -> Result<(Instruction, FrameId), Fault> {
    let first = translate(frames, space, pc)?;
    let next_page = GuestAddr(pc).page().offset(1).start().0;
    let second = translate(frames, space, next_page)?;
    let mut bytes = frames.bytes(first)[GuestAddr(pc).page_offset()..].to_vec();
    bytes.extend_from_slice(&frames.bytes(second)[..INSTRUCTION_BYTES_MAX]);
    Ok((
        Decoder::with_ip(64, &bytes, pc, DecoderOptions::NONE).decode(),
        second,
    ))
}

fn translate(frames: &mut Frames, space: &mut AddressSpace, pc: u64) -> Result<FrameId, Fault> {
    let addr = GuestAddr(pc);
    space
        .translate(frames, addr.page(), Access::Execute)
        .map(|found| found.frame)
        .map_err(|cause| {
            Fault::Memory(MemoryFault {
                addr,
                access: Access::Execute,
                cause,
            })
        })
}
