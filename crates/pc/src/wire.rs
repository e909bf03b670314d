//! State as bytes and back, for snapshots on disk. Fields in order, little-endian; no field names, no versions:
//! a snapshot file is only read by the program that wrote it.

use raddle_stdx::width::{to_u64, to_usize};
use raddle_x86::{Cpu, DescriptorTable, FxState, Reg, Segment, SystemState};

/// The bytes end too early or do not mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the saved state is damaged")]
pub struct Damaged;

/// Reads values from the front of bytes.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        let (front, rest) = self.rest.split_at_checked(count).ok_or(Damaged)?;
        self.rest = rest;
        Ok(front)
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Something that can be written as bytes and read back.
pub trait Wire: Sized {
    fn store(&self, to: &mut Vec<u8>);
    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged>;
}

macro_rules! wire_integers {
    ($($integer:ty),*) => {$(
        impl Wire for $integer {
            fn store(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
                let bytes = from.take(size_of::<Self>())?;
                Ok(Self::from_le_bytes(bytes.try_into().map_err(|_| Damaged)?))
            }
        }
    )*};
}

wire_integers!(u8, u16, u32, u64);

impl Wire for bool {
    fn store(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        match u8::fetch(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }
}

impl Wire for usize {
    fn store(&self, to: &mut Vec<u8>) {
        to_u64(*self).store(to);
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(to_usize(u64::fetch(from)?))
    }
}

impl<T: Wire> Wire for Option<T> {
    fn store(&self, to: &mut Vec<u8>) {
        self.is_some().store(to);
        if let Some(value) = self {
            value.store(to);
        }
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(if bool::fetch(from)? {
            Some(T::fetch(from)?)
        } else {
            None
        })
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn store(&self, to: &mut Vec<u8>) {
        self.len().store(to);
        self.iter().for_each(|item| item.store(to));
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        (0..usize::fetch(from)?).map(|_| T::fetch(from)).collect()
    }
}

impl<T: Wire + Copy + Default, const N: usize> Wire for [T; N] {
    fn store(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|item| item.store(to));
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut items = [T::default(); N];
        for item in &mut items {
            *item = T::fetch(from)?;
        }
        Ok(items)
    }
}

impl Wire for String {
    fn store(&self, to: &mut Vec<u8>) {
        self.len().store(to);
        to.extend_from_slice(self.as_bytes());
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let length = usize::fetch(from)?;
        Self::from_utf8(from.take(length)?.to_vec()).map_err(|_| Damaged)
    }
}

/// Writes and reads a structure field by field.
macro_rules! wire_struct {
    ($name:ty { $($field:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $name {
            fn store(&self, to: &mut Vec<u8>) {
                $(self.$field.store(to);)*
            }

            fn fetch(
                from: &mut $crate::wire::Reader<'_>,
            ) -> Result<Self, $crate::wire::Damaged> {
                Ok(Self { $($field: $crate::wire::Wire::fetch(from)?),* })
            }
        }
    };
}
pub(crate) use wire_struct;

wire_struct!(Segment {
    selector,
    base,
    limit,
    attributes
});
wire_struct!(DescriptorTable { base, limit });
wire_struct!(FxState {
    fcw,
    fsw,
    ftw,
    reserved,
    fop,
    fip,
    fdp,
    mxcsr,
    mxcsr_mask,
    st
});
wire_struct!(SystemState {
    cpl,
    segments,
    ldtr,
    tr,
    gdtr,
    idtr,
    cr0,
    cr2,
    cr3,
    cr4,
    cr8,
    dr,
    efer,
    star,
    lstar,
    cstar,
    sfmask,
    kernel_gs_base,
    sysenter,
    pat,
    apic_base,
    tsc_aux,
    tsc_offset,
    apic_id,
    interrupt_shadow,
    halted,
});

const REGISTERS: [Reg; 16] = [
    Reg::Rax,
    Reg::Rcx,
    Reg::Rdx,
    Reg::Rbx,
    Reg::Rsp,
    Reg::Rbp,
    Reg::Rsi,
    Reg::Rdi,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];

impl Wire for Cpu {
    fn store(&self, to: &mut Vec<u8>) {
        for register in REGISTERS {
            self.reg(register).store(to);
        }
        self.fs_base().store(to);
        self.gs_base().store(to);
        self.rflags().store(to);
        self.rip.store(to);
        self.xmm.store(to);
        self.fx.store(to);
        self.system.store(to);
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut cpu = Self::default();
        for register in REGISTERS {
            cpu.set_reg(register, u64::fetch(from)?);
        }
        cpu.set_fs_base(u64::fetch(from)?);
        cpu.set_gs_base(u64::fetch(from)?);
        cpu.set_rflags(u64::fetch(from)?);
        cpu.rip = u64::fetch(from)?;
        cpu.xmm = Wire::fetch(from)?;
        cpu.fx = Wire::fetch(from)?;
        *cpu.system = Wire::fetch(from)?;
        Ok(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_comes_back() {
        let mut cpu = Cpu::default();
        cpu.set_reg(Reg::R15, 77);
        cpu.set_gs_base(1 << 50);
        cpu.set_rflags(0x246);
        cpu.xmm[3][5] = 9;
        cpu.fx.st[1][2] = 8;
        cpu.system.cr3 = 0x1234_5000;
        cpu.system.segments[2].limit = 7;
        let mut bytes = Vec::new();
        cpu.store(&mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(Cpu::fetch(&mut reader), Ok(cpu));
        assert!(reader.is_empty());
        assert_eq!(
            Cpu::fetch(&mut Reader::new(&bytes[..bytes.len() - 1])),
            Err(Damaged)
        );
    }
}
