//! Expressions as users type them: names, members, elements, dereferences, arithmetic and comparisons.
//!
//! ```text
//!   or      := and ("||" and)*
//!   and     := compare ("&&" compare)*
//!   compare := sum (("==" | "!=" | "<=" | ">=" | "<" | ">") sum)?
//!   sum     := product (("+" | "-") product)*
//!   product := unary (("*" | "/" | "%") unary)*
//!   unary   := ("*" | "&" | "-" | "!") unary | postfix
//!   postfix := primary ("." name | "->" name | "[" or "]")*
//!   primary := name | number | "$" register | "(" or ")"
//! ```
//!
//! Nothing can be assigned or called: a recording cannot be changed.

use raddle_symbols::dwarf::Shape;
use raddle_world::Inspect;
use thiserror::Error;

use crate::scene::{Scene, StackFrame};
use crate::value::Typed;

/// Parentheses, brackets and operators that may stand in each other.
const NESTING_MAX: usize = 64;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpressionError {
    #[error("`{0}` is not an expression")]
    Syntax(String),
    #[error("there is no variable `{0}` here")]
    NoVariable(String),
    #[error("there is no register `{0}`, or its value is not known in this frame")]
    NoRegister(String),
    #[error("there is no member `{0}`")]
    NoMember(String),
    #[error("only pointers and arrays have elements")]
    NoElements,
    #[error("only pointers can be followed")]
    NoPointer,
    #[error("only what is in memory has an address")]
    NoAddress,
    #[error("this is not a number, or it was optimised away here")]
    NoNumber,
    #[error("division by zero")]
    ByZero,
    #[error("the expression is nested too deeply")]
    TooDeep,
}

/// What an expression stands for.
#[derive(Debug, Clone)]
pub enum Meaning {
    Typed(Box<Typed>),
    Number(i128),
}

impl Meaning {
    /// The value in one line.
    pub fn show<W: Inspect + ?Sized>(&self, scene: &mut Scene<'_, W>) -> String {
        match self {
            Self::Typed(typed) => typed.show(scene),
            Self::Number(number) => number.to_string(),
        }
    }

    fn number<W: Inspect + ?Sized>(
        &self,
        scene: &mut Scene<'_, W>,
    ) -> Result<i128, ExpressionError> {
        match self {
            Self::Typed(typed) => typed.number(scene).ok_or(ExpressionError::NoNumber),
            Self::Number(number) => Ok(*number),
        }
    }
}

/// The meaning of an expression for a frame.
///
/// # Errors
/// If it is not one, or names what is not there.
pub fn evaluate<W: Inspect + ?Sized>(
    scene: &mut Scene<'_, W>,
    frame: Option<&StackFrame>,
    text: &str,
) -> Result<Meaning, ExpressionError> {
    let mut parser = Parser {
        scene,
        frame,
        rest: text,
        depth: 0,
    };
    let meaning = parser.or()?;
    match parser.rest.trim_start() {
        "" => Ok(meaning),
        rest => Err(ExpressionError::Syntax(rest.to_owned())),
    }
}

/// Whether a condition holds.
///
/// # Errors
/// As [`evaluate`].
pub fn holds<W: Inspect + ?Sized>(
    scene: &mut Scene<'_, W>,
    frame: Option<&StackFrame>,
    text: &str,
) -> Result<bool, ExpressionError> {
    let meaning = evaluate(scene, frame, text)?;
    Ok(meaning.number(scene)? != 0)
}

struct Parser<'p, 'w, W: ?Sized> {
    scene: &'p mut Scene<'w, W>,
    frame: Option<&'p StackFrame>,
    rest: &'p str,
    depth: usize,
}

type Parsed = Result<Meaning, ExpressionError>;

impl<W: Inspect + ?Sized> Parser<'_, '_, W> {
    /// Takes one of these signs away, if it comes next; longer ones stand first.
    fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let rest = self.rest.trim_start();
        let mut signs = signs.iter().copied();
        let found = signs.find(|sign| rest.starts_with(sign))?;
        self.rest = &rest[found.len()..];
        Some(found)
    }

    fn name(&mut self) -> Option<String> {
        let rest = self.rest.trim_start();
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        // Names of other scopes: `main::count`.
        while end > 0 && rest[end..].starts_with("::") {
            let more = &rest[end + 2..];
            end += 2 + more.find(|c| !is_part(c)).unwrap_or(more.len());
        }
        let name = &rest[..end];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.rest = &rest[end..];
        Some(name.to_owned())
    }

    fn numbers(
        &mut self,
        left: &Meaning,
        right: &Meaning,
    ) -> Result<(i128, i128), ExpressionError> {
        Ok((left.number(self.scene)?, right.number(self.scene)?))
    }

    fn or(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(ExpressionError::TooDeep);
        }
        let mut left = self.and()?;
        while self.sign(&["||"]).is_some() {
            let right = self.and()?;
            let (a, b) = self.numbers(&left, &right)?;
            left = truth(a != 0 || b != 0);
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.compare()?;
        while self.sign(&["&&"]).is_some() {
            let right = self.compare()?;
            let (a, b) = self.numbers(&left, &right)?;
            left = truth(a != 0 && b != 0);
        }
        Ok(left)
    }

    fn compare(&mut self) -> Parsed {
        let left = self.sum()?;
        let Some(sign) = self.sign(&["==", "!=", "<=", ">=", "<", ">"]) else {
            return Ok(left);
        };
        let right = self.sum()?;
        let (a, b) = self.numbers(&left, &right)?;
        Ok(truth(match sign {
            "==" => a == b,
            "!=" => a != b,
            "<=" => a <= b,
            ">=" => a >= b,
            "<" => a < b,
            _ => a > b,
        }))
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        while let Some(sign) = self.sign(&["+", "-"]) {
            let right = self.product()?;
            let (a, b) = self.numbers(&left, &right)?;
            left = Meaning::Number(match sign {
                "+" => a.wrapping_add(b),
                _ => a.wrapping_sub(b),
            });
        }
        Ok(left)
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.unary()?;
        while let Some(sign) = self.sign(&["*", "/", "%"]) {
            let right = self.unary()?;
            let (a, b) = self.numbers(&left, &right)?;
            let result = match sign {
                "*" => Some(a.wrapping_mul(b)),
                "/" => a.checked_div(b),
                _ => a.checked_rem(b),
            };
            left = Meaning::Number(result.ok_or(ExpressionError::ByZero)?);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(ExpressionError::TooDeep);
        }
        let is_and = self.rest.trim_start().starts_with("&&");
        let sign = if is_and {
            None
        } else {
            self.sign(&["*", "&", "-", "!"])
        };
        let meaning = match sign {
            None => self.postfix()?,
            Some("*") => {
                let pointer = self.unary()?;
                self.follow(&pointer, 0)?
            }
            Some("&") => match self.unary()? {
                Meaning::Typed(typed) => {
                    let address = typed.address().ok_or(ExpressionError::NoAddress)?;
                    Meaning::Number(address.into())
                }
                Meaning::Number(_) => return Err(ExpressionError::NoAddress),
            },
            Some(sign) => {
                let operand = self.unary()?;
                let number = operand.number(self.scene)?;
                match sign {
                    "-" => Meaning::Number(number.wrapping_neg()),
                    _ => truth(number == 0),
                }
            }
        };
        self.depth -= 1;
        Ok(meaning)
    }

    /// What a pointer or an array has at an index.
    fn follow(&mut self, what: &Meaning, index: i64) -> Parsed {
        let Meaning::Typed(typed) = what else {
            return Err(ExpressionError::NoPointer);
        };
        let found = match typed.shape() {
            Shape::Array { .. } => typed.element(index),
            Shape::Pointer { .. } => typed.pointee(self.scene, index),
            _ => None,
        };
        let found = found.ok_or(ExpressionError::NoPointer)?;
        Ok(Meaning::Typed(Box::new(found)))
    }

    fn postfix(&mut self) -> Parsed {
        let mut value = self.primary()?;
        while let Some(sign) = self.sign(&["->", ".", "["]) {
            if sign == "[" {
                let index = self.or()?;
                let index = index.number(self.scene)?;
                let index = i64::try_from(index).map_err(|_| ExpressionError::NoElements)?;
                value = self
                    .follow(&value, index)
                    .map_err(|_| ExpressionError::NoElements)?;
                self.expect("]")?;
                continue;
            }
            // A pointer is followed by either sign, as its reader means it.
            if let Meaning::Typed(typed) = &value
                && matches!(typed.shape(), Shape::Pointer { .. })
            {
                value = self.follow(&value, 0)?;
            } else if sign == "->" {
                return Err(ExpressionError::NoPointer);
            }
            let rest = self.rest;
            let name = self.member_name();
            let name = name.ok_or_else(|| ExpressionError::Syntax(rest.to_owned()))?;
            let Meaning::Typed(typed) = &value else {
                return Err(ExpressionError::NoMember(name));
            };
            let member = typed.member(&name).ok_or(ExpressionError::NoMember(name))?;
            value = Meaning::Typed(Box::new(member));
        }
        Ok(value)
    }

    /// A name, or the number of a field of a tuple, which debug information calls `__0`.
    fn member_name(&mut self) -> Option<String> {
        if let Some(name) = self.name() {
            return Some(name);
        }
        let rest = self.rest;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let (number, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        (!number.is_empty()).then(|| format!("__{number}"))
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), ExpressionError> {
        let found = self.sign(&[sign]);
        found
            .map(|_| ())
            .ok_or_else(|| ExpressionError::Syntax(self.rest.to_owned()))
    }

    fn primary(&mut self) -> Parsed {
        if self.sign(&["("]).is_some() {
            let inside = self.or()?;
            self.expect(")")?;
            return Ok(inside);
        }
        if self.sign(&["$"]).is_some() {
            let name = self.name().unwrap_or_default();
            let value = self
                .frame
                .and_then(|frame| Scene::<W>::register(frame, &name));
            let value = value.ok_or(ExpressionError::NoRegister(name))?;
            return Ok(Meaning::Number(value.into()));
        }
        if let Some(name) = self.name() {
            let found = self.scene.named(self.frame, &name);
            let typed = found.ok_or(ExpressionError::NoVariable(name))?;
            return Ok(Meaning::Typed(Box::new(typed)));
        }
        self.literal()
    }

    fn literal(&mut self) -> Parsed {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let number = match word.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => word.parse(),
        };
        let number = number.map_err(|_| ExpressionError::Syntax(self.rest.to_owned()))?;
        self.rest = rest;
        Ok(Meaning::Number(number))
    }
}

fn truth(is_true: bool) -> Meaning {
    Meaning::Number(i128::from(is_true))
}
