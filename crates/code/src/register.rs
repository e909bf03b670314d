//! Registers as the analyses see them: whole registers, with the flags as one.

use std::fmt;

/// A register with all its parts: `rax` stands for `eax`, `ax`, `al` and `ah` too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(u8);

impl Register {
    pub const RAX: Self = Self(0);
    pub const RCX: Self = Self(1);
    pub const RDX: Self = Self(2);
    pub const RBX: Self = Self(3);
    pub const RSP: Self = Self(4);
    pub const RBP: Self = Self(5);
    pub const RSI: Self = Self(6);
    pub const RDI: Self = Self(7);
    pub const R8: Self = Self(8);
    pub const R9: Self = Self(9);
    pub const R10: Self = Self(10);
    pub const R11: Self = Self(11);
    /// The arithmetic flags as a whole.
    pub const FLAGS: Self = Self(16);
    const VECTOR_0: u8 = 17;
    /// x87, MMX, mask and control registers as a whole: values rarely pass through them.
    pub const OTHER: Self = Self(49);

    /// The general-purpose register of a number below sixteen.
    pub(crate) fn general(number: usize) -> Self {
        Self(u8::try_from(number).unwrap_or(u8::MAX).min(15))
    }

    /// The whole register of an operand; `None` for the instruction pointer and segment registers.
    pub(crate) fn of(register: iced_x86::Register) -> Option<Self> {
        let full = register.full_register();
        let number = u8::try_from(full.number()).unwrap_or(u8::MAX);
        if full.is_gpr() {
            Some(Self(number))
        } else if full.is_vector_register() {
            Some(Self(Self::VECTOR_0 + number.min(31)))
        } else if full.is_segment_register() || full.is_ip() || full == iced_x86::Register::None {
            None
        } else {
            Some(Self::OTHER)
        }
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 17] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15", "flags",
        ];
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None if *self == Self::OTHER => f.write_str("other"),
            None => write!(f, "xmm{}", self.0 - Self::VECTOR_0),
        }
    }
}

/// A set of registers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RegisterSet(u64);

impl RegisterSet {
    pub const EMPTY: Self = Self(0);

    /// What a called function may change: System V ABI for x86-64, figure 3.4.
    pub const CALL_CLOBBERED: Self = {
        let general = 0b0000_1111_1100_0111;
        let vectors = 0xFFFF_FFFF << Register::VECTOR_0;
        Self(general | 1 << Register::FLAGS.0 | vectors | 1 << Register::OTHER.0)
    };

    pub fn one(register: Register) -> Self {
        Self(1 << register.0)
    }

    #[must_use]
    pub fn with(self, register: Register) -> Self {
        self.union(Self::one(register))
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn contains(self, register: Register) -> bool {
        self.0 & (1 << register.0) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// By ascending number.
    pub fn iter(self) -> impl Iterator<Item = Register> {
        (0..=Register::OTHER.0)
            .map(Register)
            .filter(move |&r| self.contains(r))
    }
}

impl FromIterator<Register> for RegisterSet {
    fn from_iter<I: IntoIterator<Item = Register>>(registers: I) -> Self {
        registers.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for RegisterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(|r| r.to_string()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_for_the_whole() {
        use iced_x86::Register as Iced;
        for part in [Iced::AL, Iced::AH, Iced::AX, Iced::EAX, Iced::RAX] {
            assert_eq!(Register::of(part), Some(Register::RAX));
        }
        assert_eq!(
            Register::of(Iced::R15D).map(|r| r.to_string()).as_deref(),
            Some("r15")
        );
        assert_eq!(Register::of(Iced::XMM3), Register::of(Iced::YMM3));
        assert_eq!(
            Register::of(Iced::XMM3).map(|r| r.to_string()).as_deref(),
            Some("xmm3")
        );
        assert_eq!(Register::of(Iced::ST0), Some(Register::OTHER));
        assert_eq!(Register::of(Iced::RIP), None);
        assert_eq!(Register::of(Iced::FS), None);
    }

    #[test]
    fn calls_keep_the_callee_saved_registers() {
        let names: Vec<String> = RegisterSet::CALL_CLOBBERED
            .iter()
            .take(10)
            .map(|r| r.to_string())
            .collect();
        assert_eq!(
            names,
            [
                "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "flags"
            ]
        );
        assert!(!RegisterSet::CALL_CLOBBERED.contains(Register::RBX));
        assert!(!RegisterSet::CALL_CLOBBERED.contains(Register::RSP));
    }
}
