//! Model-specific registers that belong to the machine and not to the processor core.

pub(crate) const APIC_BASE: u32 = 0x1B;
pub(crate) const TSC_DEADLINE: u32 = 0x6E0;

const FEATURE_CONTROL: u32 = 0x3A;
const MICROCODE_REVISION: u32 = 0x8B;
const PLATFORM_INFO: u32 = 0xCE;
const MISC_FEATURES: u32 = 0x140;
const MISC_ENABLE: u32 = 0x1A0;
const SMI_COUNT: u32 = 0x34;

/// The value of a register that never changes; none if there is no such register.
pub(crate) fn read(number: u32) -> Option<u64> {
    match number {
        // Locked: no virtualisation inside.
        FEATURE_CONTROL => Some(1),
        MICROCODE_REVISION => Some(1 << 32),
        // Fast strings.
        MISC_ENABLE => Some(1),
        PLATFORM_INFO | MISC_FEATURES | SMI_COUNT => Some(0),
        _ => None,
    }
}

/// True if a write is taken, without effect.
pub(crate) fn is_writable(number: u32) -> bool {
    matches!(number, MICROCODE_REVISION | MISC_FEATURES | MISC_ENABLE)
}
