//! Observed memory accesses.

use raddle_mem::{GuestAddr, PAGE_SIZE};
use raddle_stdx::width::{to_u64, to_usize};
use raddle_x86::{LogKind, NextAccess, Observe};

use super::Machine;

/// Pages whose place is remembered while a log is read.
const KNOWN_PAGES: usize = 256;

/// One access of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuAccess {
    pub cpu: u32,
    pub kind: LogKind,
    pub size: u8,
    /// The processor's own step count.
    pub step: u64,
    pub pc: u64,
    /// Linear address.
    pub addr: u64,
    pub physical: u64,
    pub value: Option<u64>,
}

/// Which observed accesses are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    #[default]
    All,
    /// Those of code in the upper half of the address space: the kernel's.
    Kernel,
}

impl Machine {
    /// Chooses what is observed from now on.
    pub fn set_observe(&mut self, observe: Observe, keep: Keep) {
        self.engine.set_observe(observe);
        self.engine.clear_log();
        self.accesses.clear();
        self.keep = keep;
    }

    /// The accesses observed since the last call, in order.
    pub fn take_accesses(&mut self) -> Vec<CpuAccess> {
        std::mem::take(&mut self.accesses)
    }

    /// Whether accesses were observed since the last call of [`Self::drain_accesses`].
    pub fn has_accesses(&self) -> bool {
        !self.accesses.is_empty()
    }

    /// Shows the accesses observed since [`Self::drain_accesses`], in order, and keeps them.
    pub fn visit_accesses(&self, visit: impl FnMut(&CpuAccess)) {
        self.accesses.iter().for_each(visit);
    }

    /// Shows the accesses observed since the last call, in order, and forgets them.
    pub fn drain_accesses(&mut self, visit: impl FnMut(&CpuAccess)) {
        self.accesses.iter().for_each(visit);
        self.accesses.clear();
    }

    /// The first memory access that the next instruction of a processor would make.
    pub fn next_access(&mut self, cpu: usize) -> Option<NextAccess> {
        self.engine
            .next_access(&self.cores[cpu].cpu, &mut self.frames)
    }

    /// Moves the engine's log to the list. Called right after a slice, so that the page tables are still those
    /// under which the accesses were made, nearly always; what is mapped nowhere any more is left out.
    pub(super) fn collect_accesses(&mut self, cpu: usize, first_step: u64) {
        if self.engine.log().is_empty() {
            return;
        }
        let mut known = [(u64::MAX, 0_u64); KNOWN_PAGES];
        let number = u32::try_from(cpu).unwrap_or(u32::MAX);
        let Self {
            engine,
            cores,
            frames,
            accesses,
            keep,
            ..
        } = self;
        engine.log().for_each(|record| {
            if *keep == Keep::Kernel && record.pc >> 63 == 0 {
                return;
            }
            let page = record.addr & !(to_u64(PAGE_SIZE) - 1);
            let slot = &mut known[to_usize(page / to_u64(PAGE_SIZE)) % KNOWN_PAGES];
            if slot.0 != page {
                let Some(physical) = engine.physical(&cores[cpu].cpu, frames, page) else {
                    return;
                };
                *slot = (page, physical);
            }
            accesses.push(CpuAccess {
                cpu: number,
                kind: record.kind,
                size: u8::try_from(record.size).unwrap_or(u8::MAX),
                step: first_step + record.step,
                pc: record.pc,
                addr: record.addr,
                physical: slot.1 + to_u64(GuestAddr(record.addr).page_offset()),
                value: record.value,
            });
        });
        self.engine.clear_log();
    }
}
