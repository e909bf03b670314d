//! The x86-64 signal frame, byte for byte as Linux lays it out without XSAVE.
//!
//! ```text
//!   higher addresses
//!   ├ fxsave image, 512 bytes, 64-byte aligned
//!   ├ siginfo, 128 bytes
//!   ├ ucontext: flags 8, link 8, stack 24, sigcontext 256, mask 8
//!   └ return address (sa_restorer)      ◀ rsp, 8 below a 16-byte boundary
//! ```

use raddle_mem::GuestAddr;
use raddle_world::EventKind;
use raddle_x86::{Cpu, FxState, Reg, rflags};

use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::signal::{Action, AltStack, SIGINFO_SIZE, SigInfo, SignalSet, action_flags};
use crate::thread::{ExceptionInfo, Tid};

const FX_SIZE: usize = 512;
const UCONTEXT_SIZE: usize = 304;
const FRAME_SIZE: usize = 8 + UCONTEXT_SIZE + SIGINFO_SIZE;
/// Offset of the sigcontext inside the ucontext.
const SIGCONTEXT: usize = 40;
/// Offset of the signal mask inside the ucontext.
const MASK: usize = SIGCONTEXT + 256;
/// `UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS`.
const UC_FLAGS: u64 = 6;
const RED_ZONE: u64 = 128;

/// The general registers in the order of `struct sigcontext`.
const ORDER: [Reg; 16] = [
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
    Reg::Rdi,
    Reg::Rsi,
    Reg::Rbp,
    Reg::Rbx,
    Reg::Rdx,
    Reg::Rax,
    Reg::Rcx,
    Reg::Rsp,
];

/// Bits of RFLAGS that sigreturn takes from the frame.
const RESTORED_FLAGS: u64 = rflags::AC
    | rflags::OF
    | rflags::DF
    | rflags::TF
    | rflags::SF
    | rflags::ZF
    | rflags::AF
    | rflags::PF
    | rflags::CF
    | rflags::RF;

/// Builds the frame and makes the thread stand at the first instruction of the handler.
pub(super) fn push(
    kernel: &mut Kernel,
    tid: Tid,
    action: Action,
    info: &SigInfo,
    mask: SignalSet,
) -> Result<(), Errno> {
    if action.flags & action_flags::RESTORER == 0 {
        return Err(Errno::EFAULT);
    }
    let thread = kernel.thread(tid);
    let cpu = thread.cpu.clone();
    let alt = thread.alt_stack;
    let exception = thread.last_exception;
    let sp = cpu.reg(Reg::Rsp);
    let use_alt = action.flags & action_flags::ONSTACK != 0 && alt.size != 0 && !alt.contains(sp);
    let top = if use_alt {
        alt.start.wrapping_add(alt.size)
    } else {
        sp.wrapping_sub(RED_ZONE)
    };
    let fx_at = top.wrapping_sub(FX_SIZE as u64) & !63;
    let frame_at = (fx_at.wrapping_sub(FRAME_SIZE as u64) & !15).wrapping_sub(8);
    if use_alt && frame_at < alt.start {
        return Err(Errno::EFAULT);
    }
    let mut frame = [0; FRAME_SIZE];
    put(&mut frame, 0, action.restorer);
    fill_context(
        &mut frame[8..8 + UCONTEXT_SIZE],
        &cpu,
        Context {
            alt,
            alt_status: alt.status(sp),
            exception,
            fx_at,
            mask,
        },
    );
    frame[8 + UCONTEXT_SIZE..].copy_from_slice(&info.to_bytes());
    kernel.write_user(tid, GuestAddr(fx_at), &fx_image(&cpu))?;
    kernel.write_user(tid, GuestAddr(frame_at), &frame)?;
    let thread = kernel.thread_mut(tid);
    thread.last_exception = ExceptionInfo::default();
    if alt.flags & AltStack::AUTO_DISARM != 0 {
        thread.alt_stack = AltStack::NONE;
    }
    let cpu = &mut thread.cpu;
    cpu.set_reg(Reg::Rsp, frame_at);
    cpu.set_reg(Reg::Rdi, u64::from(info.number));
    cpu.set_reg(Reg::Rsi, frame_at + 8 + UCONTEXT_SIZE as u64);
    cpu.set_reg(Reg::Rdx, frame_at + 8);
    cpu.set_reg(Reg::Rax, 0);
    cpu.rip = action.handler;
    let flags = cpu.rflags() & !(rflags::DF | rflags::TF | rflags::RF);
    cpu.set_rflags(flags);
    cpu.fx = FxState::default();
    cpu.xmm = [[0; 16]; 16];
    Ok(())
}

/// `rt_sigreturn`: comes back from a handler. The stack pointer stands behind the return address.
pub(crate) fn return_from_handler(kernel: &mut Kernel, tid: Tid) -> Result<(), Errno> {
    let context_at = kernel.thread(tid).cpu.reg(Reg::Rsp);
    let mut context = [0; UCONTEXT_SIZE];
    kernel.read_user(tid, GuestAddr(context_at), &mut context)?;
    let fx_at = get(&context, SIGCONTEXT + 184);
    let mut cpu = kernel.thread(tid).cpu.clone();
    if fx_at == 0 {
        cpu.fx = FxState::default();
        cpu.xmm = [[0; 16]; 16];
    } else {
        let mut image = [0; FX_SIZE];
        kernel.read_user(tid, GuestAddr(fx_at), &mut image)?;
        restore_fx(&mut cpu, &image)?;
    }
    for (index, reg) in ORDER.into_iter().enumerate() {
        cpu.set_reg(reg, get(&context, SIGCONTEXT + index * 8));
    }
    cpu.rip = get(&context, SIGCONTEXT + 128);
    let flags = get(&context, SIGCONTEXT + 136) & RESTORED_FLAGS;
    let kept = cpu.rflags() & !RESTORED_FLAGS;
    cpu.set_rflags(flags | kept);
    let mask = SignalSet(get(&context, MASK));
    let stack = AltStack {
        start: get(&context, 16),
        flags: raddle_stdx::width::low_u32(get(&context, 24)),
        size: get(&context, 32),
    };
    let thread = kernel.thread_mut(tid);
    thread.cpu = cpu;
    thread.alt_stack = AltStack {
        flags: stack.flags & !AltStack::ON_STACK,
        ..stack
    };
    kernel.set_mask(tid, mask);
    kernel.emit(tid, EventKind::SignalLeave);
    Ok(())
}

/// What goes into a ucontext besides the registers.
struct Context {
    alt: AltStack,
    alt_status: u32,
    exception: ExceptionInfo,
    fx_at: u64,
    mask: SignalSet,
}

fn fill_context(out: &mut [u8], cpu: &Cpu, context: Context) {
    put(out, 0, UC_FLAGS);
    put(out, 16, context.alt.start);
    put(out, 24, u64::from(context.alt_status));
    put(out, 32, context.alt.size);
    for (index, reg) in ORDER.into_iter().enumerate() {
        put(out, SIGCONTEXT + index * 8, cpu.reg(reg));
    }
    put(out, SIGCONTEXT + 128, cpu.rip);
    put(out, SIGCONTEXT + 136, cpu.rflags());
    // CS, GS, FS, SS.
    let segments = &cpu.system.segments;
    for (index, number) in [1, 5, 4, 2].into_iter().enumerate() {
        let at = SIGCONTEXT + 144 + index * 2;
        let selector = segments[number].selector;
        out[at..at + 2].copy_from_slice(&selector.to_le_bytes());
    }
    put(out, SIGCONTEXT + 152, context.exception.error_code);
    put(out, SIGCONTEXT + 160, context.exception.vector);
    put(out, SIGCONTEXT + 168, context.mask.0);
    put(out, SIGCONTEXT + 176, context.exception.addr);
    put(out, SIGCONTEXT + 184, context.fx_at);
    put(out, MASK, context.mask.0);
}

/// The FXSAVE image of a processor (SDM vol. 1, 10.5.1).
fn fx_image(cpu: &Cpu) -> [u8; FX_SIZE] {
    let mut image = [0; FX_SIZE];
    let fx = &cpu.fx;
    image[0..2].copy_from_slice(&fx.fcw.to_le_bytes());
    image[2..4].copy_from_slice(&fx.fsw.to_le_bytes());
    image[4] = fx.ftw;
    image[6..8].copy_from_slice(&fx.fop.to_le_bytes());
    image[8..16].copy_from_slice(&fx.fip.to_le_bytes());
    image[16..24].copy_from_slice(&fx.fdp.to_le_bytes());
    image[24..28].copy_from_slice(&fx.mxcsr.to_le_bytes());
    image[28..32].copy_from_slice(&fx.mxcsr_mask.to_le_bytes());
    for (index, register) in fx.st.iter().enumerate() {
        image[32 + index * 16..42 + index * 16].copy_from_slice(&register[..10]);
    }
    for (index, register) in cpu.xmm.iter().enumerate() {
        image[160 + index * 16..176 + index * 16].copy_from_slice(register);
    }
    image
}

/// Takes a FXSAVE image over; EFAULT (and so SIGSEGV) if MXCSR has reserved bits set.
fn restore_fx(cpu: &mut Cpu, image: &[u8; FX_SIZE]) -> Result<(), Errno> {
    let half = |at: usize| u16::from_le_bytes([image[at], image[at + 1]]);
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| image[at + index]));
    let mask = cpu.fx.mxcsr_mask;
    if word(24) & !mask != 0 {
        return Err(Errno::EFAULT);
    }
    cpu.fx = FxState {
        fcw: half(0),
        fsw: half(2),
        ftw: image[4],
        reserved: 0,
        fop: half(6),
        fip: get(image, 8),
        fdp: get(image, 16),
        mxcsr: word(24),
        mxcsr_mask: mask,
        st: std::array::from_fn(|register| {
            std::array::from_fn(|byte| {
                if byte < 10 {
                    image[32 + register * 16 + byte]
                } else {
                    0
                }
            })
        }),
    };
    cpu.xmm = std::array::from_fn(|register| {
        std::array::from_fn(|byte| image[160 + register * 16 + byte])
    });
    Ok(())
}

fn put(out: &mut [u8], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_has_the_size_of_the_kernels_structure() {
        assert_eq!(FRAME_SIZE, 440);
        assert_eq!(MASK + 8, UCONTEXT_SIZE);
    }

    #[test]
    fn fx_image_round_trips() {
        let mut cpu = Cpu::default();
        cpu.fx.fcw = 0x27F;
        cpu.fx.st[3][9] = 0x80;
        cpu.xmm[15][15] = 7;
        let image = fx_image(&cpu);
        let mut other = Cpu::default();
        restore_fx(&mut other, &image).unwrap();
        assert_eq!(other, cpu);
        assert_eq!(image[0..2], [0x7F, 2]);
        assert_eq!(image[160 + 255], 7);
    }
}
