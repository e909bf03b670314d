//! The instructions: NOPs whose unused displacement reads `RDL` and a letter, with operands in rdi, rsi and rdx.

#![expect(
    unsafe_code,
    reason = "an instruction with operands in given registers needs inline assembly"
)]

/// The letters, for a comparison with the header.
#[cfg(test)]
pub(crate) const LETTERS: [char; 5] = ['B', 'Q', 'A', 'R', 'E'];

const TEXT: usize = 1;
const ERROR: usize = 2;

macro_rules! mark {
    ($letter:literal, $first:expr, $second:expr, $third:expr) => {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a NOP reads and writes nothing; the bytes that its operands name are alive while it is executed.
        unsafe {
            std::arch::asm!(
                concat!(".byte 0x0f, 0x1f, 0x84, 0x00, 0x52, 0x44, 0x4c, ", $letter),
                in("rdi") $first,
                in("rsi") $second,
                in("rdx") $third,
                options(nostack, preserves_flags),
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _unused = ($first, $second, $third);
    };
}

pub(crate) fn begin(name: &str) {
    mark!("0x42", name.as_ptr(), name.len(), 0_usize);
}

pub(crate) fn probe(name: &str) {
    mark!("0x51", name.as_ptr(), name.len(), 0_usize);
}

pub(crate) fn argument(text: &str) {
    mark!("0x41", TEXT, text.as_ptr(), text.len());
}

pub(crate) fn result(text: &str) {
    mark!("0x52", TEXT, text.as_ptr(), text.len());
}

pub(crate) fn error(text: &str) {
    mark!("0x52", ERROR, text.as_ptr(), text.len());
}

pub(crate) fn end() {
    mark!("0x45", 0_usize, 0_usize, 0_usize);
}
