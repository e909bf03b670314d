//! The host processor as an oracle.
//!
//! The trampoline loads all registers from a fixed page, jumps to the instruction, and stores everything on the way
//! out. Faults arrive as signals on a stack of their own; the handler saves the interrupted state and leaves through
//! the trampoline, too.
#![expect(
    unsafe_code,
    reason = "runs arbitrary instructions on the host and handles their faults"
)]

use std::io;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::case::{Case, CaseResult, Ending};
use super::layout::{CODE, CONTEXT, DATA, DATA_BYTES, PROGRAM_BYTES, TAKEN, WINDOW_BYTES, WINDOWS};
use super::subject::Subject;
use crate::cpu::FxState;

const PAGE: usize = 4096;
const CODE_PAGE: u64 = CODE & !0xFFF;
const SIGNALS: [i32; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
];
/// Values of `Context::way`.
const WAY_NEXT: u64 = 1;
const WAY_TAKEN: u64 = 2;
const WAY_FAULT: u64 = 3;

/// Only one native side can exist: its addresses and signal handlers are the process's.
static ONLY_ONE: Mutex<()> = Mutex::new(());

/// The page that the trampoline knows; offsets are written out in the assembly below.
#[repr(C, align(4096))]
struct Context {
    regs: [u64; 16],     // 0x000
    rflags: u64,         // 0x080
    entry: u64,          // 0x088
    host_rsp: u64,       // 0x090
    way: u64,            // 0x098
    host_mxcsr: u64,     // 0x0a0
    vector: u64,         // 0x0a8
    error: u64,          // 0x0b0
    fault_addr: u64,     // 0x0b8
    pad: [u64; 8],       // 0x0c0
    out_regs: [u64; 16], // 0x100
    out_rflags: u64,     // 0x180
    way_next: u64,       // 0x188
    way_taken: u64,      // 0x190
    uses_vectors: u64,   // 0x198
    pad2: [u64; 12],     // 0x1a0
    image: Image,        // 0x200
    out_image: Image,    // 0x400
}

/// An FXSAVE image.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Image {
    fx: FxState,
    xmm: [[u8; 16]; 16],
    rest: [u8; 96],
}

std::arch::global_asm!(
    ".globl raddle_fuzz_enter",
    "raddle_fuzz_enter:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov qword ptr [0x31000090], rsp",
    "stmxcsr dword ptr [0x310000a0]",
    "cmp qword ptr [0x31000198], 0",
    "je 2f",
    "fxrstor64 [0x31000200]",
    "2:",
    "push qword ptr [0x31000080]",
    "popfq",
    "mov rax, qword ptr [0x31000000]",
    "mov rcx, qword ptr [0x31000008]",
    "mov rdx, qword ptr [0x31000010]",
    "mov rbx, qword ptr [0x31000018]",
    "mov rsp, qword ptr [0x31000020]",
    "mov rbp, qword ptr [0x31000028]",
    "mov rsi, qword ptr [0x31000030]",
    "mov rdi, qword ptr [0x31000038]",
    "mov r8, qword ptr [0x31000040]",
    "mov r9, qword ptr [0x31000048]",
    "mov r10, qword ptr [0x31000050]",
    "mov r11, qword ptr [0x31000058]",
    "mov r12, qword ptr [0x31000060]",
    "mov r13, qword ptr [0x31000068]",
    "mov r14, qword ptr [0x31000070]",
    "mov r15, qword ptr [0x31000078]",
    "jmp qword ptr [0x31000088]",
    ".globl raddle_fuzz_next",
    "raddle_fuzz_next:",
    "mov qword ptr [0x31000098], 1",
    "jmp 3f",
    ".globl raddle_fuzz_taken",
    "raddle_fuzz_taken:",
    "mov qword ptr [0x31000098], 2",
    "3:",
    "mov qword ptr [0x31000100], rax",
    "mov qword ptr [0x31000108], rcx",
    "mov qword ptr [0x31000110], rdx",
    "mov qword ptr [0x31000118], rbx",
    "mov qword ptr [0x31000120], rsp",
    "mov qword ptr [0x31000128], rbp",
    "mov qword ptr [0x31000130], rsi",
    "mov qword ptr [0x31000138], rdi",
    "mov qword ptr [0x31000140], r8",
    "mov qword ptr [0x31000148], r9",
    "mov qword ptr [0x31000150], r10",
    "mov qword ptr [0x31000158], r11",
    "mov qword ptr [0x31000160], r12",
    "mov qword ptr [0x31000168], r13",
    "mov qword ptr [0x31000170], r14",
    "mov qword ptr [0x31000178], r15",
    "mov rsp, qword ptr [0x31000090]",
    "pushfq",
    "pop qword ptr [0x31000180]",
    "cmp qword ptr [0x31000198], 0",
    "je 4f",
    "fxsave64 [0x31000400]",
    ".globl raddle_fuzz_leave",
    "raddle_fuzz_leave:",
    "mov rsp, qword ptr [0x31000090]",
    "fninit",
    "ldmxcsr dword ptr [0x310000a0]",
    "4:",
    "push 0x202",
    "popfq",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
);

// SAFETY: defined above.
unsafe extern "C" {
    fn raddle_fuzz_enter();
    fn raddle_fuzz_next();
    fn raddle_fuzz_taken();
    fn raddle_fuzz_leave();
}

/// The host processor.
#[derive(Debug)]
pub struct Native {
    old_handlers: Vec<(i32, libc::sigaction)>,
    alternate_stack: Box<[u8]>,
    mappings: Vec<(*mut u8, usize)>,
    /// The writable view of the code page.
    code: *mut u8,
    current: (u64, Vec<u8>),
    _only: MutexGuard<'static, ()>,
}

impl Native {
    /// Maps the fixed addresses and takes over the signals of faults.
    ///
    /// # Errors
    /// If the host refuses either.
    pub fn new() -> io::Result<Self> {
        let guard = ONLY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut native = Self {
            old_handlers: Vec::new(),
            alternate_stack: vec![0; 1 << 16].into_boxed_slice(),
            mappings: Vec::new(),
            code: ptr::null_mut(),
            current: (0, Vec::new()),
            _only: guard,
        };
        native.map_code()?;
        native.map_fixed(CONTEXT, PAGE)?;
        native.map_fixed(DATA, DATA_BYTES)?;
        let context = context();
        // SAFETY: the context page has just been mapped, and no other code knows it.
        unsafe {
            (*context).entry = CODE;
            (*context).way_next = raddle_fuzz_next as *const () as u64;
            (*context).way_taken = raddle_fuzz_taken as *const () as u64;
        }
        native.install_handlers()?;
        Ok(native)
    }

    fn map(
        &mut self,
        addr: u64,
        len: usize,
        prot: i32,
        flags: i32,
        fd: i32,
    ) -> io::Result<*mut u8> {
        let hint = ptr::without_provenance_mut(raddle_stdx::width::to_usize(addr));
        // SAFETY: a new mapping; NOREPLACE keeps it off existing ones where the address is fixed.
        let at = unsafe { libc::mmap(hint, len, prot, flags, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.mappings.push((at.cast(), len));
        if addr != 0 && at != hint {
            return Err(io::Error::from(io::ErrorKind::AddrInUse));
        }
        Ok(at.cast())
    }

    fn map_fixed(&mut self, addr: u64, len: usize) -> io::Result<*mut u8> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        self.map(addr, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1)
    }

    /// Maps one page twice: executable at its fixed address, writable elsewhere.
    fn map_code(&mut self) -> io::Result<()> {
        // SAFETY: a plain system call with a constant name.
        let file = unsafe { libc::memfd_create(c"fuzz-code".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is ours; a failure shows in the mappings below.
        unsafe { libc::ftruncate(file, 4096) };
        let fixed = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
        let execute = libc::PROT_READ | libc::PROT_EXEC;
        let result = self
            .map(CODE_PAGE, PAGE, execute, fixed, file)
            .and_then(|_| {
                let write = libc::PROT_READ | libc::PROT_WRITE;
                self.map(0, PAGE, write, libc::MAP_SHARED, file)
            });
        // SAFETY: the descriptor is ours and no longer needed.
        unsafe { libc::close(file) };
        self.code = result?;
        // SAFETY: the page is mapped writable, and both places are inside it.
        unsafe {
            ptr::write_bytes(self.code, 0xCC, PAGE);
            self.write_jump(TAKEN, 0x190);
        }
        Ok(())
    }

    /// Writes `jmp qword ptr [CONTEXT + slot]` at an address of the code page.
    ///
    /// # Safety
    /// The code page must be mapped, and `addr` at least seven bytes before its end.
    unsafe fn write_jump(&mut self, addr: u64, slot: u32) {
        let mut jump = [0xFF, 0x24, 0x25, 0, 0, 0, 0];
        let target = u32::try_from(CONTEXT).unwrap_or(0) + slot;
        jump[3..].copy_from_slice(&target.to_le_bytes());
        let offset = raddle_stdx::width::to_usize(addr - CODE_PAGE);
        // SAFETY: as the caller promises.
        unsafe { ptr::copy_nonoverlapping(jump.as_ptr(), self.code.add(offset), jump.len()) };
    }

    fn install_handlers(&mut self) -> io::Result<()> {
        let stack = libc::stack_t {
            ss_sp: self.alternate_stack.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: self.alternate_stack.len(),
        };
        // SAFETY: the stack lives as long as `self`, which uninstalls the handlers first.
        if unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        for signal in SIGNALS {
            // SAFETY: all-zero is a valid sigaction.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            // SAFETY: all-zero is a valid sigaction.
            let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: the handler only touches the interrupted context and our own page.
            if unsafe { libc::sigaction(signal, &raw const action, &raw mut old) } != 0 {
                return Err(io::Error::last_os_error());
            }
            self.old_handlers.push((signal, old));
        }
        Ok(())
    }

    fn write_code(&mut self, case: &Case) {
        if self.current.0 == case.entry && self.current.1 == case.code {
            return;
        }
        self.current = (case.entry, case.code.clone());
        let offset = raddle_stdx::width::to_usize(case.entry - CODE_PAGE);
        let room = if case.entry == CODE {
            raddle_stdx::width::to_usize(TAKEN - CODE)
        } else {
            PROGRAM_BYTES
        };
        assert!(case.code.len() + 7 <= room, "the code of a case fits");
        // SAFETY: code and jump are inside the page, as just asserted; the entry is in the mapped context.
        unsafe {
            ptr::copy_nonoverlapping(case.code.as_ptr(), self.code.add(offset), case.code.len());
            self.write_jump(case.end(), 0x188);
            (*context()).entry = case.entry;
        }
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        for (signal, old) in &self.old_handlers {
            // SAFETY: puts back what was there.
            unsafe { libc::sigaction(*signal, &raw const *old, ptr::null_mut()) };
        }
        let stack = libc::stack_t {
            ss_sp: ptr::null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: 0,
        };
        // SAFETY: the alternate stack is not in use: no handler of ours is left.
        unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
        for (at, len) in &self.mappings {
            // SAFETY: these mappings are ours.
            unsafe { libc::munmap(at.cast(), *len) };
        }
    }
}

fn context() -> *mut Context {
    ptr::without_provenance_mut(raddle_stdx::width::to_usize(CONTEXT))
}

fn data() -> *mut u8 {
    ptr::without_provenance_mut(raddle_stdx::width::to_usize(DATA))
}

/// Saves the interrupted state and continues at the trampoline's exit; a fault elsewhere is a bug of ours.
extern "C" fn handle(
    signal: i32,
    _info: *mut libc::siginfo_t,
    context_of_signal: *mut libc::c_void,
) {
    const ORDER: [i32; 16] = [
        libc::REG_RAX,
        libc::REG_RCX,
        libc::REG_RDX,
        libc::REG_RBX,
        libc::REG_RSP,
        libc::REG_RBP,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];
    // SAFETY: the kernel passes a valid ucontext to a SA_SIGINFO handler.
    let machine = unsafe { &mut (*context_of_signal.cast::<libc::ucontext_t>()).uc_mcontext };
    let register = |machine: &libc::mcontext_t, number: i32| -> u64 {
        machine.gregs[usize::try_from(number).unwrap_or(0)].cast_unsigned()
    };
    let rip = register(machine, libc::REG_RIP);
    if !(CODE_PAGE..CODE_PAGE + PAGE as u64).contains(&rip) {
        // SAFETY: restores the default action, so that the fault ends the process when it recurs.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    // SAFETY: the page is mapped while the handler is installed, and the interrupted code is not using it.
    let context = unsafe { &mut *context() };
    context.way = WAY_FAULT;
    for (to, number) in context.out_regs.iter_mut().zip(ORDER) {
        *to = register(machine, number);
    }
    context.out_rflags = register(machine, libc::REG_EFL);
    context.vector = register(machine, libc::REG_TRAPNO);
    context.error = register(machine, libc::REG_ERR);
    context.fault_addr = register(machine, libc::REG_CR2);
    // SAFETY: the frame of a 64-bit process holds an FXSAVE image, at least 512 bytes long.
    context.out_image = unsafe { ptr::read_unaligned(machine.fpregs.cast::<Image>()) };
    machine.gregs[usize::try_from(libc::REG_RIP).unwrap_or(0)] =
        (raddle_fuzz_leave as *const () as u64).cast_signed();
    machine.gregs[usize::try_from(libc::REG_EFL).unwrap_or(0)] = 0x202;
}

impl Subject for Native {
    fn execute(&mut self, case: &Case, result: &mut CaseResult) {
        self.write_code(case);
        // SAFETY: context and data are mapped as long as `self` lives; the trampoline restores the host's registers,
        // and every fault of the instruction comes back through the handler.
        unsafe {
            for (offset, window) in WINDOWS.iter().zip(case.memory.iter()) {
                ptr::copy_nonoverlapping(window.as_ptr(), data().add(*offset), WINDOW_BYTES);
            }
            let context = context();
            (*context).regs = case.regs;
            (*context).rflags = case.rflags;
            (*context).uses_vectors = u64::from(case.uses_vectors);
            if case.uses_vectors {
                (*context).image.fx = case.fx;
                (*context).image.xmm = case.xmm;
            }
            raddle_fuzz_enter();
            let context = &*context;
            result.regs = context.out_regs;
            result.rflags = context.out_rflags;
            result.ending = ending(context, case);
            if case.uses_vectors {
                result.fx = context.out_image.fx;
                result.xmm = context.out_image.xmm;
            }
            for (offset, window) in WINDOWS.iter().zip(result.memory.iter_mut()) {
                ptr::copy_nonoverlapping(data().add(*offset), window.as_mut_ptr(), WINDOW_BYTES);
            }
        }
    }
}

fn ending(context: &Context, case: &Case) -> Ending {
    match context.way {
        WAY_NEXT => Ending::At(case.end()),
        WAY_TAKEN => Ending::At(TAKEN),
        _ => {
            let is_page_fault = context.vector == 14;
            Ending::Fault {
                vector: u8::try_from(context.vector).unwrap_or(u8::MAX),
                addr: if is_page_fault { context.fault_addr } else { 0 },
                is_write: is_page_fault && context.error & 2 != 0,
            }
        }
    }
}
