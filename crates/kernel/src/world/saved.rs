//! A guest that has just booted, as bytes.

use std::sync::Arc;

use raddle_pc::machine::{LoadError, Machine};
use raddle_pc::wire::{Damaged, Reader, Wire};

use super::{GuestInfo, Input, KernelWorld};

impl KernelWorld {
    /// Writes a guest that waits for its test.
    pub(crate) fn save(&self, to: &mut Vec<u8>) {
        let info = &self.state.info;
        info.release.store(to);
        info.version.store(to);
        info.online.store(to);
        info.fixed_threads.store(to);
        self.state.console.text().store(to);
        let input = self
            .state
            .input
            .map(|input| [to_word(input.cpu), input.buffer, input.size]);
        input.store(to);
        self.machine.save(to);
    }

    /// Reads a guest that waits for its test.
    pub(crate) fn load(from: &mut Reader<'_>) -> Result<Self, LoadError> {
        let info = GuestInfo {
            release: Wire::fetch(from)?,
            version: Wire::fetch(from)?,
            online: Wire::fetch(from)?,
            fixed_threads: Wire::fetch(from)?,
            ..GuestInfo::default()
        };
        let console = String::fetch(from)?;
        let input = Option::<[u64; 3]>::fetch(from)?;
        let machine = Machine::load(from)?;
        let mut world = Self::new(machine);
        world.state.info = Arc::new(info);
        world.state.console.append(console.as_bytes());
        world.state.input = match input {
            Some([cpu, buffer, size]) => Some(Input {
                cpu: raddle_stdx::width::to_usize(cpu),
                buffer,
                size,
            }),
            None => return Err(Damaged.into()),
        };
        Ok(world)
    }
}

fn to_word(cpu: usize) -> u64 {
    raddle_stdx::width::to_u64(cpu)
}
