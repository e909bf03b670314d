//! What only a kernel sees: control registers, segments, descriptor tables, model-specific registers.

/// A segment register with its hidden part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    pub selector: u16,
    pub base: u64,
    pub limit: u32,
    /// Access byte and flags as in descriptor bits 40..56 (type, S, DPL, P, AVL, L, D/B, G), limit bits cleared.
    pub attributes: u16,
}

/// GDTR or IDTR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DescriptorTable {
    pub base: u64,
    pub limit: u16,
}

/// System-level state (SDM vol. 3, chapter 2). The bases of FS and GS live in the register file of `Cpu`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemState {
    /// Current privilege level: 0 or 3.
    pub cpl: u8,
    /// ES, CS, SS, DS, FS, GS, as the encoding numbers them.
    pub segments: [Segment; 6],
    pub ldtr: Segment,
    pub tr: Segment,
    pub gdtr: DescriptorTable,
    pub idtr: DescriptorTable,
    pub cr0: u64,
    pub cr2: u64,
    pub cr3: u64,
    pub cr4: u64,
    pub cr8: u64,
    pub dr: [u64; 8],
    pub efer: u64,
    pub star: u64,
    pub lstar: u64,
    pub cstar: u64,
    pub sfmask: u64,
    pub kernel_gs_base: u64,
    pub sysenter: [u64; 3],
    pub pat: u64,
    pub apic_base: u64,
    pub tsc_aux: u64,
    pub tsc_offset: u64,
    /// Number of this processor, as CPUID tells it.
    pub apic_id: u8,
    /// Interrupts are held off for one instruction (after STI or MOV SS).
    pub interrupt_shadow: bool,
    pub halted: bool,
}

/// CR0 bits.
pub(crate) mod cr0 {
    pub(crate) const PE: u64 = 1 << 0;
    pub(crate) const MP: u64 = 1 << 1;
    pub(crate) const EM: u64 = 1 << 2;
    pub(crate) const TS: u64 = 1 << 3;
    pub(crate) const ET: u64 = 1 << 4;
    pub(crate) const NE: u64 = 1 << 5;
    pub(crate) const WP: u64 = 1 << 16;
    pub(crate) const AM: u64 = 1 << 18;
    pub(crate) const PG: u64 = 1 << 31;
}

/// CR4 bits.
pub(crate) mod cr4 {
    pub(crate) const PAE: u64 = 1 << 5;
    pub(crate) const PGE: u64 = 1 << 7;
    pub(crate) const OSFXSR: u64 = 1 << 9;
    pub(crate) const OSXMMEXCPT: u64 = 1 << 10;
}

/// EFER bits.
pub(crate) mod efer {
    pub(crate) const SCE: u64 = 1 << 0;
    pub(crate) const LME: u64 = 1 << 8;
    pub(crate) const LMA: u64 = 1 << 10;
    pub(crate) const NXE: u64 = 1 << 11;
}

/// Selectors that a Linux process sees.
const USER_CS: u16 = 0x33;
const USER_SS: u16 = 0x2B;

impl SystemState {
    /// As a 64-bit Linux process finds it.
    pub fn user() -> Self {
        let mut segments = [Segment::default(); 6];
        segments[1] = Segment {
            selector: USER_CS,
            base: 0,
            limit: u32::MAX,
            attributes: 0xA0FB,
        };
        segments[2] = Segment {
            selector: USER_SS,
            base: 0,
            limit: u32::MAX,
            attributes: 0xC0F3,
        };
        Self {
            cpl: 3,
            segments,
            ldtr: Segment::default(),
            tr: Segment::default(),
            gdtr: DescriptorTable::default(),
            idtr: DescriptorTable::default(),
            cr0: cr0::PE | cr0::MP | cr0::ET | cr0::NE | cr0::WP | cr0::AM | cr0::PG,
            cr2: 0,
            cr3: 0,
            cr4: cr4::PAE | cr4::PGE | cr4::OSFXSR | cr4::OSXMMEXCPT,
            cr8: 0,
            dr: [0, 0, 0, 0, 0, 0, 0xFFFF_0FF0, 0x400],
            efer: efer::SCE | efer::LME | efer::LMA | efer::NXE,
            star: 0,
            lstar: 0,
            cstar: 0,
            sfmask: 0,
            kernel_gs_base: 0,
            sysenter: [0; 3],
            pat: 0x0007_0406_0007_0406,
            apic_base: 0,
            tsc_aux: 0,
            tsc_offset: 0,
            apic_id: 0,
            interrupt_shadow: false,
            halted: false,
        }
    }
}
