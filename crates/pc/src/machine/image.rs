//! A whole machine as bytes: what a snapshot on disk holds. Pages of zeros are left out.

use raddle_mem::{FrameId, PAGE_SIZE};
use raddle_stdx::width::to_u64;

use super::{ActiveInterrupt, Core, Machine, MachineError, Power};
use crate::boot::{BootImage, Entry};
use crate::wire::{Damaged, Reader, Wire, wire_struct};

wire_struct!(Core {
    cpu,
    power,
    nmi,
    steps,
    is_shut_down,
    interrupts
});
wire_struct!(ActiveInterrupt {
    vector,
    frame,
    since
});

impl Wire for Power {
    fn store(&self, to: &mut Vec<u8>) {
        to.push(match self {
            Self::Off => 0,
            Self::Running => 1,
            Self::Halted => 2,
        });
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        match u8::fetch(from)? {
            0 => Ok(Self::Off),
            1 => Ok(Self::Running),
            2 => Ok(Self::Halted),
            _ => Err(Damaged),
        }
    }
}

/// Why bytes are no machine.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Damaged(#[from] Damaged),
    #[error(transparent)]
    Machine(#[from] MachineError),
}

impl Machine {
    /// Everything that the guest could see.
    pub fn save(&self, to: &mut Vec<u8>) {
        self.ram_pages.store(to);
        self.now.store(to);
        self.cores.store(to);
        self.bus.store(to);
        for page in 0..self.ram_pages {
            let Some(frame) = u32::try_from(page + 1).ok().map(FrameId) else {
                break;
            };
            let bytes = self.frames.bytes(frame);
            if bytes.iter().any(|byte| *byte != 0) {
                page.store(to);
                to.extend_from_slice(bytes);
            }
        }
        u64::MAX.store(to);
    }

    /// A machine in the saved state.
    pub fn load(from: &mut Reader<'_>) -> Result<Self, LoadError> {
        let ram_pages = u64::fetch(from)?;
        let now = u64::fetch(from)?;
        let cores = Vec::<Core>::fetch(from)?;
        if cores.is_empty() || ram_pages > 1 << 22 {
            return Err(Damaged.into());
        }
        let nothing = BootImage {
            writes: Vec::new(),
            entry: Entry {
                rip: 0,
                rsp: 0,
                rsi: 0,
                cr3: 0,
                gdt_base: 0,
                gdt_limit: 0,
                code_selector: 0,
                data_selector: 0,
            },
        };
        let mut machine = Self::new(&nothing, cores.len(), ram_pages * to_u64(PAGE_SIZE))?;
        machine.now = now;
        machine.cores = cores;
        machine.bus = Wire::fetch(from)?;
        if machine.bus.cpus() != machine.cores.len() {
            return Err(Damaged.into());
        }
        loop {
            let page = u64::fetch(from)?;
            if page == u64::MAX {
                return Ok(machine);
            }
            if page >= ram_pages {
                return Err(Damaged.into());
            }
            let bytes = from.take(PAGE_SIZE)?;
            machine.write_physical(page * to_u64(PAGE_SIZE), bytes);
        }
    }
}
