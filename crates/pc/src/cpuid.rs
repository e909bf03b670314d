//! What CPUID tells a kernel: an Intel processor of family 6 whose clocks are known, so that nothing is
//! calibrated, and with few features, so that the kernel runs the code that the engine executes best.
//!
//! Deliberately absent: XSAVE, SMEP, SMAP, FSGSBASE, PCID, RDRAND, ERMS, AVX, x2APIC, 1 GiB pages, MTRR, MCA,
//! performance counters. The hypervisor signature is our own, which no kernel has special code for.

use raddle_x86::CpuidResult;

/// The leaf that is a call of the machine: unprivileged, and harmless on a real processor. RBX is the number of the
/// call, RCX, RDX, RSI and RDI are its arguments, RAX is the answer.
pub use raddle_x86::HYPERCALL_LEAF;

/// Frequency of the time stamp counter: one tick is one nanosecond.
pub const TSC_HZ: u64 = 1_000_000_000;
/// Frequency of the crystal, which the counting modes of the interrupt timer use.
const CRYSTAL_HZ: u32 = 100_000_000;
/// Ratio of the two.
pub(crate) const TICKS_PER_CRYSTAL_TICK: u64 = 10;

const MAX_LEAF: u32 = 0x16;
/// FPU, DE, PSE, TSC, MSR, PAE, CX8, APIC, PGE, CMOV, PAT, CLFLUSH, MMX, FXSR, SSE, SSE2.
const FEATURES_EDX: u32 = (1 << 0)
    | (1 << 2)
    | (1 << 3)
    | (1 << 4)
    | (1 << 5)
    | (1 << 6)
    | (1 << 8)
    | (1 << 9)
    | (1 << 13)
    | (1 << 15)
    | (1 << 16)
    | (1 << 19)
    | (1 << 23)
    | (1 << 24)
    | (1 << 25)
    | (1 << 26);
/// CX16, deadline timer, hypervisor.
const FEATURES_ECX: u32 = (1 << 13) | (1 << 24) | (1 << 31);
/// The interrupt timer runs in every power state.
const ALWAYS_RUNNING_TIMER: u32 = 1 << 2;

/// Answer of the processor with this interrupt controller identity.
pub fn cpuid(leaf: u32, subleaf: u32, apic_id: u8) -> CpuidResult {
    let user = raddle_x86::cpuid(leaf, subleaf, apic_id);
    match leaf {
        0 => CpuidResult {
            eax: MAX_LEAF,
            ..user
        },
        1 => CpuidResult {
            ecx: FEATURES_ECX,
            edx: FEATURES_EDX,
            ..user
        },
        6 => CpuidResult {
            eax: ALWAYS_RUNNING_TIMER,
            ..CpuidResult::default()
        },
        0x15 => CpuidResult {
            eax: 1,
            ebx: 10,
            ecx: CRYSTAL_HZ,
            edx: 0,
        },
        // Base and maximum frequency in MHz, bus frequency.
        0x16 => CpuidResult {
            eax: 1000,
            ebx: 1000,
            ecx: 100,
            edx: 0,
        },
        0x4000_0000 => CpuidResult {
            eax: 0x4000_0000,
            ebx: u32::from_le_bytes(*b"Radd"),
            ecx: u32::from_le_bytes(*b"leRa"),
            edx: u32::from_le_bytes(*b"ddle"),
        },
        _ => user,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_told_and_agree() {
        let clock = cpuid(0x15, 0, 0);
        let tsc = u64::from(clock.ecx) * u64::from(clock.ebx) / u64::from(clock.eax);
        assert_eq!(tsc, TSC_HZ);
        assert_eq!(u64::from(cpuid(0x16, 0, 0).eax) * 1_000_000, TSC_HZ);
        assert_eq!(TSC_HZ / u64::from(CRYSTAL_HZ), TICKS_PER_CRYSTAL_TICK);
    }

    #[test]
    fn the_kernel_sees_its_own_number() {
        assert_eq!(cpuid(1, 0, 3).ebx >> 24, 3);
    }

    #[test]
    fn no_known_hypervisor_is_named() {
        let leaf = cpuid(0x4000_0000, 0, 0);
        let name = [leaf.ebx, leaf.ecx, leaf.edx]
            .map(u32::to_le_bytes)
            .concat();
        assert_eq!(name, b"RaddleRaddle");
    }
}
