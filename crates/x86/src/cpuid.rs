//! CPUID of the virtual processor: exactly x86-64-v2, the same on every host.
//!
//! No OSXSAVE, AVX, BMI, ERMS or RDRAND, so that libraries choose code that we execute.

/// EAX, EBX, ECX, EDX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuidResult {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

const fn result(eax: u32, ebx: u32, ecx: u32, edx: u32) -> CpuidResult {
    CpuidResult { eax, ebx, ecx, edx }
}

/// Leaf 1 EDX: FPU, DE, PSE, TSC, MSR, PAE, CX8, APIC, PGE, CMOV, CLFLUSH, MMX, FXSR, SSE, SSE2.
pub(crate) const FEATURES_EDX: u32 = 0x0788_A37D;
/// Leaf 1 ECX: SSE3, SSSE3, CX16, SSE4.1, SSE4.2, POPCNT, hypervisor.
const FEATURES_ECX: u32 =
    (1 << 0) | (1 << 9) | (1 << 13) | (1 << 19) | (1 << 20) | (1 << 23) | (1 << 31);
/// Leaf 8000_0001h: SYSCALL, NX, LM; LAHF.
const EXTENDED_EDX: u32 = (1 << 11) | (1 << 20) | (1 << 29);
const EXTENDED_ECX: u32 = 1 << 0;
/// Family 6, model 0x3A, stepping 9: a Nehalem-to-Ivy-Bridge class part, without the features it lacks here.
const SIGNATURE: u32 = 0x0003_06A9;
const MAX_LEAF: u32 = 7;
const MAX_EXTENDED_LEAF: u32 = 0x8000_0008;

/// What a user program sees on processor number `apic_id`.
pub fn cpuid(leaf: u32, subleaf: u32, apic_id: u8) -> CpuidResult {
    match leaf {
        0 => result(
            MAX_LEAF,
            u32::from_le_bytes(*b"Genu"),
            u32::from_le_bytes(*b"ntel"),
            u32::from_le_bytes(*b"ineI"),
        ),
        1 => result(
            SIGNATURE,
            (u32::from(apic_id) << 24) | (8 << 8),
            FEATURES_ECX,
            FEATURES_EDX,
        ),
        // Descriptor 0xFF: see leaf 4.
        2 => result(0x00FF_FF01, 0, 0, 0),
        4 => cache_leaf(subleaf),
        0x8000_0000 => result(MAX_EXTENDED_LEAF, 0, 0, 0),
        0x8000_0001 => result(0, 0, EXTENDED_ECX, EXTENDED_EDX),
        0x8000_0002..=0x8000_0004 => brand(leaf),
        0x8000_0006 => result(0, 0, 0x0100_6040, 0),
        0x8000_0007 => result(0, 0, 0, 1 << 8),
        0x8000_0008 => result(0x0000_3028, 0, 0, 0),
        _ => CpuidResult::default(),
    }
}

/// Deterministic cache parameters: 32 KiB L1, 256 KiB L2, 8 MiB L3, all 8- or 16-way with 64-byte lines.
fn cache_leaf(subleaf: u32) -> CpuidResult {
    let leaf = |kind: u32, level: u32, ways: u32, sets: u32| {
        result(
            (1 << 8) | (level << 5) | kind,
            ((ways - 1) << 22) | 63,
            sets - 1,
            0,
        )
    };
    match subleaf {
        0 => leaf(1, 1, 8, 64),
        1 => leaf(2, 1, 8, 64),
        2 => leaf(3, 2, 8, 512),
        3 => leaf(3, 3, 16, 8192),
        _ => CpuidResult::default(),
    }
}

fn brand(leaf: u32) -> CpuidResult {
    const NAME: &[u8; 48] = b"raddle virtual x86-64-v2 processor\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let part = (leaf - 0x8000_0002) as usize * 16;
    let word = |index: usize| {
        let at = part + index * 4;
        u32::from_le_bytes([NAME[at], NAME[at + 1], NAME[at + 2], NAME[at + 3]])
    };
    result(word(0), word(1), word(2), word(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_feature_beyond_v2_is_offered() {
        let one = cpuid(1, 0, 0);
        for bit in [12, 22, 25, 26, 27, 28, 29, 30] {
            assert_eq!(one.ecx >> bit & 1, 0, "leaf 1 ECX bit {bit}");
        }
        assert_eq!(cpuid(7, 0, 0), CpuidResult::default());
    }

    #[test]
    fn brand_string_is_ours() {
        let bytes: Vec<u8> = (0x8000_0002..=0x8000_0004_u32)
            .flat_map(|leaf| {
                let part = cpuid(leaf, 0, 0);
                [part.eax, part.ebx, part.ecx, part.edx]
                    .map(u32::to_le_bytes)
                    .concat()
            })
            .collect();
        assert!(bytes.starts_with(b"raddle virtual"));
    }
}
