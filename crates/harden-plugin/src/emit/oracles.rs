//! Checks of inferred oracles.

use raddle_harden::invariant::{Comparison, Expression};

use super::Emitter;
use crate::ir::{Predicate, Value};

impl Emitter<'_> {
    /// Whether a value is not what an inferred oracle says.
    pub(super) fn violates(&self, value: Value, expression: &Expression) -> Value {
        let long = self.module.int_type(64);
        let value = self.builder.signed(value);
        let compare = |how, number: i64| {
            let number = long.constant(number.cast_unsigned());
            self.builder.compare(how, value, number)
        };
        match *expression {
            Expression::OneOf(ref numbers) => {
                let others = numbers
                    .iter()
                    .map(|number| compare(Predicate::LLVMIntNE, *number));
                others
                    .reduce(|one, other| self.builder.and(one, other))
                    .unwrap_or_else(|| self.module.int_type(1).constant(0))
            }
            Expression::Between(low, high) => {
                let below = compare(Predicate::LLVMIntSLT, low);
                self.builder.or(below, compare(Predicate::LLVMIntSGT, high))
            }
            Expression::Compare(comparison, number) => {
                let violated_by = match comparison {
                    Comparison::Equal => Predicate::LLVMIntNE,
                    Comparison::NotEqual => Predicate::LLVMIntEQ,
                    Comparison::Less => Predicate::LLVMIntSGE,
                    Comparison::LessOrEqual => Predicate::LLVMIntSGT,
                    Comparison::Greater => Predicate::LLVMIntSLE,
                    Comparison::GreaterOrEqual => Predicate::LLVMIntSLT,
                };
                compare(violated_by, number)
            }
        }
    }
}
