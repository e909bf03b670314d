//! Pushes, pops and returns. Neighbours are looked up in the TLB together, since what a function saves on entry and
//! takes back at its end is nearly always on one page; if it is not, their handlers do it one by one.

use std::mem::offset_of;

use super::{Emitter, register};
use crate::cache::JumpEntry;
use crate::fast::RSP;
use crate::native::code::host::{R9, R11, RAX, RSI};
use crate::native::code::{At, alu, condition};
use crate::native::routines::{self, Need};
use crate::native::template::Template;

/// Bytes of what is pushed and popped.
const SLOT: usize = 8;

impl Emitter<'_> {
    /// How many ops from `at` on are done together: pushes, or pops and the return behind them.
    pub(super) fn stack_run(&self, templates: &[Template], at: usize) -> usize {
        let ops = self.ops[at..].iter().zip(&templates[at..]);
        let count = match templates[at] {
            Template::PushRegister | Template::PushConstant => ops
                .take_while(|(op, template)| match template {
                    Template::PushRegister => op.src != RSP,
                    other => **other == Template::PushConstant,
                })
                .count(),
            Template::PopRegister => {
                let pops = ops
                    .take_while(|(op, template)| {
                        **template == Template::PopRegister && op.dst != RSP
                    })
                    .count();
                let returns = templates.get(at + pops) == Some(&Template::Return);
                pops + usize::from(returns && pops > 0)
            }
            _ => 1,
        };
        count.max(1)
    }

    /// Pushes what so many ops from this one on name.
    pub(super) fn pushes(&mut self, templates: &[Template]) {
        let bytes = SLOT * templates.len();
        self.code.load(8, RAX, register(RSP));
        self.code
            .arithmetic_constant(8, alu::SUB, RAX, distance(bytes));
        self.code.copy(RSI, RAX);
        self.translate(bytes, Need::Write);
        for (index, template) in templates.iter().enumerate() {
            let at = self.at + index;
            let above = bytes - SLOT * (index + 1);
            if self.records {
                self.code.offset(R11, RSI, distance(above));
                self.record(at);
            }
            let op = &self.ops[at];
            if *template == Template::PushRegister {
                self.code.load(8, R9, register(op.src));
            } else {
                self.code.constant(R9, op.imm);
            }
            self.code.store(8, R9, At::new(RAX, above));
        }
        self.code.store(8, RSI, register(RSP));
    }

    /// Pops into what so many ops from this one on name; the last may be a return.
    pub(super) fn pops(&mut self, templates: &[Template]) {
        let returns = templates.last() == Some(&Template::Return);
        let pops = templates.len() - usize::from(returns);
        let bytes = SLOT * pops;
        self.code.load(8, RAX, register(RSP));
        self.code.offset(RSI, RAX, distance(bytes));
        self.translate(SLOT * templates.len(), Need::Read);
        for index in 0..pops {
            let at = self.at + index;
            if self.records {
                let below = distance(bytes - SLOT * index);
                self.code.offset(R11, RSI, -below);
                self.record(at);
            }
            self.code.load(8, R9, At::new(RAX, SLOT * index));
            // POP RSP, which is always alone, keeps the popped value: the increment comes first.
            if index == 0 {
                self.code.store(8, RSI, register(RSP));
            }
            self.set(8, self.ops[at].dst, R9);
        }
        if returns {
            (self.at, self.given_up) = (self.at + pops, None);
            self.code.load(8, RAX, At::new(RAX, bytes));
            self.ret();
        }
    }

    /// Returns to the address in RAX, taken from the stack at RSI, through the jump cache; targets that it does not know
    /// are the handler's.
    fn ret(&mut self) {
        routines::find_target(&mut self.code);
        self.give_up_if(condition::NOT_EQUAL);
        // Not before it is certain that the handler, which makes its own record, does not take over.
        if self.records {
            self.code.copy(R11, RSI);
            self.record(self.at);
        }
        let by = distance(SLOT) + i32::try_from(self.op().imm).expect("sixteen bits");
        self.code.arithmetic_constant(8, alu::ADD, RSI, by);
        self.code.store(8, RSI, register(RSP));
        self.code
            .jump_memory(At::new(R9, offset_of!(JumpEntry, code)));
    }
}

fn distance(bytes: usize) -> i32 {
    i32::try_from(bytes).expect("a block has few instructions")
}
