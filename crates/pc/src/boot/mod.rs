//! From a kernel image file to a machine that stands before the kernel's first instruction.
//!
//! No firmware, no real-mode set-up code and no decompressor run in the guest: the kernel's ELF file is taken out
//! of the image on the host, copied to where it wants to be, and entered in 64-bit mode as the boot protocol says
//! (Documentation/x86/boot.rst, "64-bit BOOT PROTOCOL").

pub mod acpi;
mod image;
mod payload;
mod prepare;

pub use image::{ImageError, KernelImage};
pub use payload::Compression;
pub use prepare::{
    BootConfig, BootError, BootImage, DEFAULT_COMMAND_LINE, Entry, MEMORY_MAX, MEMORY_MIN, Write,
};
