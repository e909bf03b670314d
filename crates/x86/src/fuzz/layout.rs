//! Where the code and data of a case are, on both sides. All below 2 GiB, so that 32-bit addresses reach them.
//!
//! ```text
//!   DATA - 4096   nothing          CODE            the instruction, then a jump to the way out
//!   DATA          two pages        TAKEN           where branches go: another way out
//!   DATA + 8192   nothing          CONTEXT         registers in and out
//! ```

/// First byte of the two data pages.
pub const DATA: u64 = 0x2000_0000;
/// Size of the data pages.
pub const DATA_BYTES: usize = 0x2000;
/// Address of the instruction under test.
pub const CODE: u64 = 0x3000_0800;
/// Target of taken branches; in reach of an 8-bit displacement.
pub const TAKEN: u64 = 0x3000_0840;
/// Page of registers and pointers that the trampoline uses.
pub(super) const CONTEXT: u64 = 0x3100_0000;

/// Bytes of each window.
pub const WINDOW_BYTES: usize = 640;
/// Offsets into the data of the parts that operands lie in and that are compared: beginning, page crossing, end.
pub const WINDOWS: [usize; 3] = [0, 4096 - WINDOW_BYTES / 2, DATA_BYTES - WINDOW_BYTES];

/// Address of a program: several instructions with branches among them.
pub const PROGRAM: u64 = 0x3000_0100;
/// Room for a program.
pub(super) const PROGRAM_BYTES: usize = 0x600;
