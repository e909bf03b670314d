//! Why a run of the engine ended: plain values, never errors of ours.

use raddle_mem::{Access, GuestAddr, PageFault};

/// Exception vectors (SDM vol. 3, 6.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Vector {
    Divide = 0,
    Debug = 1,
    Breakpoint = 3,
    Overflow = 4,
    InvalidOpcode = 6,
    DeviceNotAvailable = 7,
    DoubleFault = 8,
    InvalidTss = 10,
    SegmentNotPresent = 11,
    StackFault = 12,
    GeneralProtection = 13,
    PageFault = 14,
    X87 = 16,
    AlignmentCheck = 17,
    Simd = 19,
}

/// What was wrong with a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFault {
    pub addr: GuestAddr,
    pub access: Access,
    pub cause: PageFault,
}

/// An exception that an instruction raised; the instruction has had no effect, except that a repeated string
/// instruction has completed its earlier iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A page is missing or forbids the access. The world may mend it and run on.
    Memory(MemoryFault),
    /// Any other exception, with its error code where it has one.
    Exception { vector: Vector, error_code: u32 },
}

/// Why a run ended. RIP is the next instruction to execute, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// As many steps as asked for were made.
    StepsDone,
    /// A SYSCALL instruction was executed; RIP is behind it; RCX and R11 are set.
    Syscall,
    /// An INT n or INT3 instruction was executed in user mode; RIP is behind it.
    SoftwareInterrupt(u8),
    /// RIP is at the instruction that faulted.
    Fault(Fault),
    /// RIP stands at a flagged program point that has not been executed yet.
    Point(GuestAddr),
    /// RIP is at an instruction we do not implement.
    Unsupported { bytes: Vec<u8> },
    /// HLT was executed.
    Halt,
    /// The observation log is full: drain it and run on.
    LogFull,
}
