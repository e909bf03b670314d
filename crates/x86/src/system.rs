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
    pub(crate) const NW: u64 = 1 << 29;
    pub(crate) const CD: u64 = 1 << 30;
    pub(crate) const PG: u64 = 1 << 31;
}

/// CR4 bits.
pub(crate) mod cr4 {
    pub(crate) const TSD: u64 = 1 << 2;
    pub(crate) const DE: u64 = 1 << 3;
    pub(crate) const PSE: u64 = 1 << 4;
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

/// Numbers of the model-specific registers that the processor core owns.
pub(crate) mod msr {
    pub(crate) const TSC: u32 = 0x10;
    pub(crate) const APIC_BASE: u32 = 0x1B;
    pub(crate) const SYSENTER_CS: u32 = 0x174;
    pub(crate) const SYSENTER_ESP: u32 = 0x175;
    pub(crate) const SYSENTER_EIP: u32 = 0x176;
    pub(crate) const PAT: u32 = 0x277;
    pub(crate) const EFER: u32 = 0xC000_0080;
    pub(crate) const STAR: u32 = 0xC000_0081;
    pub(crate) const LSTAR: u32 = 0xC000_0082;
    pub(crate) const CSTAR: u32 = 0xC000_0083;
    pub(crate) const SFMASK: u32 = 0xC000_0084;
    pub(crate) const FS_BASE: u32 = 0xC000_0100;
    pub(crate) const GS_BASE: u32 = 0xC000_0101;
    pub(crate) const KERNEL_GS_BASE: u32 = 0xC000_0102;
}

/// Bits and values of [`Segment::attributes`].
pub(crate) mod attribute {
    /// The type field.
    pub(crate) const KIND: u16 = 0xF;
    pub(crate) const ACCESSED: u16 = 1 << 0;
    /// Of a data segment; of a code segment: readable.
    pub(crate) const WRITABLE: u16 = 1 << 1;
    pub(crate) const CONFORMING: u16 = 1 << 2;
    pub(crate) const CODE: u16 = 1 << 3;
    pub(crate) const NOT_SYSTEM: u16 = 1 << 4;
    pub(crate) const PRESENT: u16 = 1 << 7;
    pub(crate) const LONG: u16 = 1 << 13;
    /// D/B: 32-bit code or stack.
    pub(crate) const BIG: u16 = 1 << 14;
    /// G: the limit counts pages.
    pub(crate) const PAGES: u16 = 1 << 15;
    pub(crate) const LDT: u16 = 2;
    pub(crate) const TSS_AVAILABLE: u16 = 9;
    pub(crate) const TSS_BUSY_BIT: u16 = 2;
    pub(crate) const KERNEL_CODE_64: u16 = 0xA09B;
    pub(crate) const KERNEL_DATA: u16 = 0xC093;
    pub(crate) const USER_CODE_64: u16 = 0xA0FB;
    pub(crate) const USER_CODE_32: u16 = 0xC0FB;
    pub(crate) const USER_DATA: u16 = 0xC0F3;
    pub(crate) const REAL_MODE: u16 = 0x0093;
}

impl Segment {
    /// Descriptor privilege level.
    pub(crate) fn dpl(self) -> u8 {
        (self.attributes >> 5 & 3).to_le_bytes()[0]
    }
}

/// The local interrupt controller at its usual place, switched on.
const APIC_BASE_RESET: u64 = 0xFEE0_0800;

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
            attributes: attribute::USER_CODE_64,
        };
        segments[2] = Segment {
            selector: USER_SS,
            base: 0,
            limit: u32::MAX,
            attributes: attribute::USER_DATA,
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

    /// Privileged 64-bit code on page tables at `cr3`, interrupts without a table: as a boot loader enters a kernel.
    pub fn kernel_entry(cr3: u64, gdtr: DescriptorTable, code: u16, data: u16) -> Self {
        let flat = |selector, attributes| Segment {
            selector,
            base: 0,
            limit: u32::MAX,
            attributes,
        };
        let mut segments = [flat(data, attribute::KERNEL_DATA); 6];
        segments[1] = flat(code, attribute::KERNEL_CODE_64);
        Self {
            cpl: 0,
            segments,
            gdtr,
            cr0: cr0::PE | cr0::ET | cr0::NE | cr0::PG,
            cr3,
            cr4: cr4::PAE,
            efer: efer::LME | efer::LMA,
            apic_base: APIC_BASE_RESET,
            ..Self::user()
        }
    }

    /// After INIT and a start-up message: real mode at the beginning of page `page` (SDM vol. 3, 9.4 and 10.4).
    pub fn startup(page: u8) -> Self {
        let data = Segment {
            selector: 0,
            base: 0,
            limit: 0xFFFF,
            attributes: attribute::REAL_MODE,
        };
        let mut segments = [data; 6];
        segments[1] = Segment {
            selector: u16::from(page) << 8,
            base: u64::from(page) << 12,
            ..data
        };
        Self {
            cpl: 0,
            segments,
            idtr: DescriptorTable {
                base: 0,
                limit: 0xFFFF,
            },
            cr0: cr0::CD | cr0::NW | cr0::ET,
            cr4: 0,
            efer: 0,
            apic_base: APIC_BASE_RESET,
            ..Self::user()
        }
    }

    /// True in 64-bit and compatibility mode.
    pub fn is_long_mode(&self) -> bool {
        self.efer & efer::LMA != 0
    }

    /// How code is decoded: 16, 32 or 64 bits.
    pub fn code_bits(&self) -> u32 {
        let attributes = self.segments[1].attributes;
        if self.is_long_mode() && attributes & attribute::LONG != 0 {
            64
        } else if attributes & attribute::BIG != 0 {
            32
        } else {
            16
        }
    }

    /// What is added to RIP to fetch code; zero in 64-bit mode.
    pub fn code_base(&self) -> u64 {
        if self.code_bits() == 64 {
            0
        } else {
            self.segments[1].base
        }
    }
}
