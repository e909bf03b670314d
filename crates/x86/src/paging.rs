//! The page walk (SDM vol. 3, chapter 4): four levels in long mode, PAE and 32-bit paging before it.
//!
//! ```text
//!   linear address   47       39 38       30 29       21 20       12 11        0
//!                   |  level 4  |  level 3  |  level 2  |  level 1  |  offset  |
//!                   CR3 ─▶ table ─▶ table ─▶ table ─▶ table ─▶ 4 KiB page
//!                                     │ bit 7    │ bit 7
//!                                     ▼          ▼
//!                                  1 GiB page  2 MiB page
//! ```

use raddle_mem::Access;

use crate::system::{SystemState, cr0, cr4, efer};

/// Physical memory as the walker sees it.
pub trait PhysicalMemory {
    /// Reads a table entry of four or eight bytes; what is not memory reads as zero.
    fn load(&mut self, addr: u64, bytes: usize) -> u64;

    /// Writes a table entry back, with its accessed or dirty bit set.
    fn store(&mut self, addr: u64, value: u64, bytes: usize);
}

/// Where a linear address is, and what may be done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    pub physical: u64,
    /// Size of the page as a power of two.
    pub page_bits: u32,
    /// Writes are allowed at the privilege level asked about.
    pub is_writable: bool,
    pub is_executable: bool,
    /// Open to user mode.
    pub is_user: bool,
    /// Kept by writes to CR3.
    pub is_global: bool,
    /// The dirty bit is set: further writes need no walk.
    pub is_dirty: bool,
}

const PRESENT: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
const GLOBAL: u64 = 1 << 8;
const NO_EXECUTE: u64 = 1 << 63;
/// Physical address bits that CPUID leaf 8000_0008h promises.
const PHYSICAL_BITS: u32 = 40;
const ADDRESS: u64 = ((1 << 52) - 1) & !0xFFF;
const BEYOND_PHYSICAL: u64 = ADDRESS & !((1 << PHYSICAL_BITS) - 1);

/// Bits of the error code of a page fault.
mod code {
    pub(super) const PRESENT: u32 = 1 << 0;
    pub(super) const WRITE: u32 = 1 << 1;
    pub(super) const USER: u32 = 1 << 2;
    pub(super) const RESERVED: u32 = 1 << 3;
    pub(super) const FETCH: u32 = 1 << 4;
}

/// One of the paging modes.
struct Shape {
    entry_bytes: usize,
    /// Lowest linear address bit that each level translates, from the top.
    levels: &'static [u32],
    /// Linear address bits per level.
    index_bits: u32,
}

const LONG: Shape = Shape {
    entry_bytes: 8,
    levels: &[39, 30, 21, 12],
    index_bits: 9,
};
const PAE: Shape = Shape {
    entry_bytes: 8,
    levels: &[30, 21, 12],
    index_bits: 9,
};
const LEGACY: Shape = Shape {
    entry_bytes: 4,
    levels: &[22, 12],
    index_bits: 10,
};

/// The registers that govern translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Controls {
    pub cr0: u64,
    pub cr3: u64,
    pub cr4: u64,
    pub efer: u64,
}

impl From<&SystemState> for Controls {
    fn from(system: &SystemState) -> Self {
        Self {
            cr0: system.cr0,
            cr3: system.cr3,
            cr4: system.cr4,
            efer: system.efer,
        }
    }
}

impl Controls {
    /// The physical address of the top table of four-level paging.
    pub(crate) fn root(self) -> u64 {
        self.cr3 & ADDRESS
    }
}

/// Physical addresses of the table entries that a walk read, from the top; zero beyond the last.
pub(crate) type Trail = [u64; 4];

/// Translates a linear address. Accessed bits are set on the way, the dirty bit by a write, but only on success.
///
/// # Errors
/// The error code of the page fault, if the access is not possible.
pub fn walk(
    controls: impl Into<Controls>,
    addr: u64,
    access: Access,
    is_user: bool,
    memory: &mut impl PhysicalMemory,
) -> Result<Mapping, u32> {
    let controls = controls.into();
    if controls.cr0 & cr0::PG == 0 {
        return Ok(identity(addr));
    }
    let walker = Walker {
        system: controls,
        addr,
        access,
        is_user,
        shape: shape(controls),
    };
    let reached = walker.descend(memory)?;
    walker.mark(memory, &reached);
    Ok(walker.mapping(&reached))
}

/// As [`walk`], without setting any bit; also tells which entries were read.
pub(crate) fn peek(
    controls: Controls,
    addr: u64,
    access: Access,
    is_user: bool,
    memory: &mut impl PhysicalMemory,
) -> Result<(Mapping, Trail), u32> {
    if controls.cr0 & cr0::PG == 0 {
        return Ok((identity(addr), [0; 4]));
    }
    let walker = Walker {
        system: controls,
        addr,
        access,
        is_user,
        shape: shape(controls),
    };
    let reached = walker.descend(memory)?;
    let mut trail = [0; 4];
    for (to, (at, _)) in trail.iter_mut().zip(&reached.seen[..reached.count]) {
        *to = *at;
    }
    Ok((walker.mapping(&reached), trail))
}

/// Where the page tables of long mode lead, whatever they allow and whichever bits are reserved: for onlookers, who are
/// not to wait for a whole walk. In other modes a walk of the supervisor.
pub(crate) fn look_up(
    controls: Controls,
    addr: u64,
    memory: &mut impl PhysicalMemory,
) -> Option<u64> {
    if controls.cr0 & cr0::PG == 0 || controls.efer & efer::LMA == 0 {
        let (found, _) = peek(controls, addr, Access::Read, false, memory).ok()?;
        return Some(found.physical);
    }
    let mut table = controls.root();
    for low in [39, 30, 21, 12] {
        let entry = memory.load(table + (addr >> low & 0x1FF) * 8, 8);
        if entry & PRESENT == 0 {
            return None;
        }
        if low == 12 || low < 39 && entry & LARGE != 0 {
            let within = (1 << low) - 1;
            return Some(entry & ADDRESS & !within | addr & within);
        }
        table = entry & ADDRESS;
    }
    None
}

/// Without paging, addresses are physical.
fn identity(addr: u64) -> Mapping {
    Mapping {
        physical: addr & 0xFFFF_FFFF,
        page_bits: 12,
        is_writable: true,
        is_executable: true,
        is_user: true,
        is_global: false,
        is_dirty: true,
    }
}

fn shape(system: Controls) -> &'static Shape {
    if system.efer & efer::LMA != 0 {
        &LONG
    } else if system.cr4 & cr4::PAE != 0 {
        &PAE
    } else {
        &LEGACY
    }
}

struct Walker {
    system: Controls,
    addr: u64,
    access: Access,
    is_user: bool,
    shape: &'static Shape,
}

/// What the entries seen so far allow together.
#[derive(Clone, Copy)]
struct Rights {
    is_writable: bool,
    is_user: bool,
    is_executable: bool,
}

/// The leaf of a walk whose access is allowed.
struct Reached {
    /// Address and value of each entry.
    seen: [(u64, u64); 4],
    count: usize,
    rights: Rights,
    is_writable: bool,
    /// Lowest linear address bit that the leaf translates.
    low: u32,
}

impl Walker {
    fn descend(&self, memory: &mut impl PhysicalMemory) -> Result<Reached, u32> {
        let bytes = self.shape.entry_bytes;
        let mut table = self.root();
        let mut rights = Rights {
            is_writable: true,
            is_user: true,
            is_executable: true,
        };
        let mut seen = [(0, 0); 4];
        for (depth, low) in self.shape.levels.iter().enumerate() {
            let index = self.addr >> low & ((1 << self.shape.index_bits) - 1);
            let at = table + index * bytes as u64;
            let entry = memory.load(at, bytes);
            if entry & PRESENT == 0 {
                return Err(self.error(0));
            }
            let is_leaf = *low == 12 || self.is_large(entry, *low);
            if self.has_reserved_bits(entry, *low, is_leaf) {
                return Err(self.error(code::PRESENT | code::RESERVED));
            }
            // The top level of PAE has no permissions.
            if !self.is_pae_pointer(*low) {
                rights.is_writable &= entry & WRITABLE != 0;
                rights.is_user &= entry & USER != 0;
                rights.is_executable &= entry & NO_EXECUTE == 0 || !self.has_no_execute();
            }
            seen[depth] = (at, entry);
            if is_leaf {
                return self.check(seen, depth + 1, rights, *low);
            }
            table = entry & ADDRESS;
        }
        Err(self.error(0))
    }

    fn root(&self) -> u64 {
        let cr3 = self.system.cr3;
        if self.is_pae_pointer(30) {
            cr3 & 0xFFFF_FFE0
        } else {
            cr3 & ADDRESS
        }
    }

    /// The four pointers of PAE paging outside long mode.
    fn is_pae_pointer(&self, low: u32) -> bool {
        low == 30 && self.shape.levels.len() == 3
    }

    fn has_no_execute(&self) -> bool {
        self.system.efer & efer::NXE != 0 && self.shape.entry_bytes == 8
    }

    fn is_large(&self, entry: u64, low: u32) -> bool {
        let is_possible = match low {
            30 => self.shape.levels.len() == 4,
            21 => true,
            22 => self.system.cr4 & cr4::PSE != 0,
            _ => false,
        };
        is_possible && entry & LARGE != 0
    }

    fn has_reserved_bits(&self, entry: u64, low: u32, is_leaf: bool) -> bool {
        if self.shape.entry_bytes == 4 {
            // Bits 21 to 13 of a 4 MiB page; we have no PSE-36.
            return is_leaf && low == 22 && entry & 0x3F_E000 != 0;
        }
        let no_execute = if self.has_no_execute() { 0 } else { NO_EXECUTE };
        let level = match low {
            39 => LARGE,
            30 if self.is_pae_pointer(low) => 0x1E6 | NO_EXECUTE,
            // Bits between the page offset and PAT of a large page.
            _ if is_leaf && low > 12 => ((1 << low) - 1) & !0x1FFF,
            _ => 0,
        };
        entry & (BEYOND_PHYSICAL | no_execute | level) != 0
    }

    /// Checks the access against the rights.
    fn check(
        &self,
        seen: [(u64, u64); 4],
        count: usize,
        rights: Rights,
        low: u32,
    ) -> Result<Reached, u32> {
        let is_protected = self.system.cr0 & cr0::WP != 0;
        let is_writable = rights.is_writable || !self.is_user && !is_protected;
        let is_allowed = (rights.is_user || !self.is_user)
            && match self.access {
                Access::Read => true,
                Access::Write => is_writable,
                Access::Execute => rights.is_executable,
            };
        if !is_allowed {
            return Err(self.error(code::PRESENT));
        }
        Ok(Reached {
            seen,
            count,
            rights,
            is_writable,
            low,
        })
    }

    /// Sets the accessed bits, and the dirty bit of a write.
    fn mark(&self, memory: &mut impl PhysicalMemory, reached: &Reached) {
        let bytes = self.shape.entry_bytes;
        for (depth, (at, entry)) in reached.seen[..reached.count].iter().enumerate() {
            let is_pointer = depth == 0 && self.is_pae_pointer(30);
            let mut updated = if is_pointer { *entry } else { entry | ACCESSED };
            if depth + 1 == reached.count && self.access == Access::Write {
                updated |= DIRTY;
            }
            if updated != *entry {
                memory.store(*at, updated, bytes);
            }
        }
    }

    fn mapping(&self, reached: &Reached) -> Mapping {
        let (_, leaf) = reached.seen[reached.count - 1];
        let offset = (1 << reached.low) - 1;
        Mapping {
            physical: (leaf & ADDRESS & !offset) | (self.addr & offset),
            page_bits: reached.low,
            is_writable: reached.is_writable,
            is_executable: reached.rights.is_executable,
            is_user: reached.rights.is_user,
            is_global: leaf & GLOBAL != 0 && self.system.cr4 & cr4::PGE != 0,
            is_dirty: leaf & DIRTY != 0 || self.access == Access::Write,
        }
    }

    fn error(&self, base: u32) -> u32 {
        let mut error = base;
        if self.access == Access::Write {
            error |= code::WRITE;
        }
        if self.is_user {
            error |= code::USER;
        }
        if self.access == Access::Execute && self.has_no_execute() {
            error |= code::FETCH;
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Default)]
    struct Tables(BTreeMap<u64, u64>);

    impl PhysicalMemory for Tables {
        fn load(&mut self, addr: u64, _: usize) -> u64 {
            self.0.get(&addr).copied().unwrap_or(0)
        }

        fn store(&mut self, addr: u64, value: u64, _: usize) {
            self.0.insert(addr, value);
        }
    }

    fn long_mode() -> SystemState {
        let mut system = SystemState::user();
        system.cr3 = 0x1000;
        system
    }

    /// 4 KiB page 0x7000 at 0x4020_3000 with these bits in the leaf and in the upper tables.
    fn tables(leaf: u64, upper: u64) -> Tables {
        let mut tables = Tables::default();
        tables.0.insert(0x1000, 0x2000 | upper);
        tables.0.insert(0x2008, 0x3000 | upper);
        tables.0.insert(0x3008, 0x4000 | upper);
        tables.0.insert(0x4018, 0x7000 | leaf);
        tables
    }

    const ADDR: u64 = 0x4020_3456;
    const ALL: u64 = PRESENT | WRITABLE | USER;

    #[test]
    fn four_levels_are_walked_and_marked() {
        let mut tables = tables(ALL, ALL);
        let found = walk(&long_mode(), ADDR, Access::Read, true, &mut tables).unwrap();
        assert_eq!(found.physical, 0x7456);
        assert!(found.is_user && found.is_writable && found.is_executable && !found.is_dirty);
        assert_eq!(tables.0[&0x4018], 0x7000 | ALL | ACCESSED);
        assert_eq!(tables.0[&0x1000], 0x2000 | ALL | ACCESSED);
        let found = walk(&long_mode(), ADDR, Access::Write, true, &mut tables).unwrap();
        assert!(found.is_dirty);
        assert_eq!(tables.0[&0x4018], 0x7000 | ALL | ACCESSED | DIRTY);
    }

    #[test]
    fn error_codes_tell_what_was_wrong() {
        let system = long_mode();
        let error = |leaf, upper, access, is_user| {
            walk(&system, ADDR, access, is_user, &mut tables(leaf, upper)).unwrap_err()
        };
        assert_eq!(error(0, ALL, Access::Read, false), 0);
        assert_eq!(error(0, ALL, Access::Write, true), code::WRITE | code::USER);
        let read_only = PRESENT | USER;
        assert_eq!(
            error(read_only, ALL, Access::Write, true),
            code::PRESENT | code::WRITE | code::USER
        );
        assert_eq!(
            error(ALL, PRESENT | WRITABLE, Access::Read, true),
            code::PRESENT | code::USER,
            "every level must admit user mode"
        );
        assert_eq!(
            error(ALL | NO_EXECUTE, ALL, Access::Execute, true),
            code::PRESENT | code::USER | code::FETCH
        );
        assert_eq!(
            error(ALL | 1 << 45, ALL, Access::Read, true),
            code::PRESENT | code::USER | code::RESERVED
        );
    }

    #[test]
    fn an_onlooker_comes_to_the_same_place() {
        let system = long_mode();
        let large = |at: u64, page: u64| {
            let mut tables = tables(ALL, ALL);
            tables.0.insert(at, page | ALL | LARGE | 1 << 12);
            tables
        };
        let read_only_kernel = PRESENT | NO_EXECUTE;
        for mut tables in [
            tables(ALL, ALL),
            tables(read_only_kernel, ALL),
            large(0x3008, 0x0120_0000),
            large(0x2008, 0x4000_0000),
        ] {
            let before = tables.0.clone();
            let seen = look_up(Controls::from(&system), ADDR, &mut tables);
            assert_eq!(tables.0, before, "nothing is marked");
            let walked = walk(&system, ADDR, Access::Read, false, &mut tables).unwrap();
            assert_eq!(seen, Some(walked.physical));
        }
        for mut missing in [tables(ALL, 0), tables(0, ALL)] {
            assert_eq!(look_up(Controls::from(&system), ADDR, &mut missing), None);
        }
    }

    #[test]
    fn a_failed_walk_marks_nothing() {
        let mut tables = tables(PRESENT, ALL);
        let before = tables.0.clone();
        assert_eq!(
            walk(&long_mode(), ADDR, Access::Write, true, &mut tables),
            Err(code::PRESENT | code::WRITE | code::USER)
        );
        assert_eq!(tables.0, before);
    }

    #[test]
    fn write_protection_binds_the_kernel_only_while_it_is_on() {
        let mut system = long_mode();
        let try_write = |system: &SystemState| {
            walk(
                system,
                ADDR,
                Access::Write,
                false,
                &mut tables(PRESENT, ALL),
            )
        };
        assert_eq!(try_write(&system), Err(code::PRESENT | code::WRITE));
        system.cr0 &= !cr0::WP;
        assert_eq!(try_write(&system).map(|found| found.physical), Ok(0x7456));
    }

    #[test]
    fn large_pages_take_more_of_the_address() {
        let mut tables = tables(ALL, ALL);
        tables.0.insert(0x3008, 0x4060_0000 | ALL | LARGE | GLOBAL);
        let found = walk(&long_mode(), ADDR, Access::Read, true, &mut tables).unwrap();
        assert_eq!((found.physical, found.page_bits), (0x4060_3456, 21));
        assert!(found.is_global);
        tables.0.insert(0x2008, 0xC000_0000 | ALL | LARGE);
        let found = walk(&long_mode(), ADDR, Access::Read, true, &mut tables).unwrap();
        assert_eq!((found.physical, found.page_bits), (0xC020_3456, 30));
        tables.0.insert(0x2008, 0xC020_0000 | ALL | LARGE);
        assert_eq!(
            walk(&long_mode(), ADDR, Access::Read, true, &mut tables),
            Err(code::PRESENT | code::USER | code::RESERVED),
            "the address of a large page must be aligned"
        );
    }

    #[test]
    fn legacy_and_pae_paging() {
        let mut system = SystemState::startup(8);
        system.cr0 = cr0::PE | cr0::PG;
        system.cr3 = 0x1000;
        let mut tables = Tables::default();
        tables.0.insert(0x1400, 0x2000 | ALL);
        tables.0.insert(0x280C, 0x7000 | ALL);
        let found = walk(&system, ADDR, Access::Read, true, &mut tables).unwrap();
        assert_eq!(found.physical, 0x7456);
        system.cr4 = cr4::PAE;
        let mut tables = Tables::default();
        tables.0.insert(0x1008, 0x3000 | PRESENT);
        tables.0.insert(0x3008, 0x4000 | ALL);
        tables.0.insert(0x4018, 0x7000 | ALL);
        let found = walk(&system, ADDR, Access::Read, true, &mut tables).unwrap();
        assert_eq!(found.physical, 0x7456);
    }

    #[test]
    fn without_paging_addresses_are_physical() {
        let system = SystemState::startup(8);
        let found = walk(&system, ADDR, Access::Write, false, &mut Tables::default()).unwrap();
        assert_eq!(found.physical, ADDR);
    }
}
