//! Values: numbers, constants, names, texts, structures, sums.

use raddle_stdx::width::to_usize;

use super::constant;
use super::data::Name;
use super::error::{Mistake, Span, most_like};
use super::parse::Parser;
use super::token::Token;
use crate::program::{Code, Operand, Relation, Width};

/// Elements of a structure: name, bytes, signed, big-endian.
const TYPES: [(&str, Width, bool); 10] = [
    ("u8", unsigned(1), false),
    ("u16", unsigned(2), false),
    ("u32", unsigned(4), false),
    ("u64", unsigned(8), false),
    ("i8", signed(1), false),
    ("i16", signed(2), false),
    ("i32", signed(4), false),
    ("i64", signed(8), false),
    ("be16", unsigned(2), true),
    ("be32", unsigned(4), true),
];

const fn unsigned(bytes: u8) -> Width {
    Width {
        bytes,
        signed: false,
    }
}

const fn signed(bytes: u8) -> Width {
    Width {
        bytes,
        signed: true,
    }
}

impl Parser<'_> {
    /// `term {+ term | - term | "|" term}`.
    pub(super) fn expression(&mut self) -> Result<Operand, Mistake> {
        let mut left = self.term()?;
        loop {
            let span = self.span();
            let code = if self.takes_sign("+") {
                Code::Add
            } else if self.takes_sign("-") {
                Code::Subtract
            } else if self.takes_sign("|") {
                let right = self.term()?;
                let (Operand::Value(a), Operand::Value(b)) = (left, right) else {
                    return Err(Mistake::new(span, "`|` joins constants only")
                        .help("use + for values that are known only when the test runs"));
                };
                left = Operand::Value(a | b);
                continue;
            } else {
                return Ok(left);
            };
            let right = self.term()?;
            left = self.sum(code, left, right);
        }
    }

    fn sum(&mut self, code: Code, left: Operand, right: Operand) -> Operand {
        match (code, left, right) {
            (Code::Add, Operand::Value(a), Operand::Value(b)) => Operand::Value(a.wrapping_add(b)),
            (Code::Subtract, Operand::Value(a), Operand::Value(b)) => {
                Operand::Value(a.wrapping_sub(b))
            }
            _ => self.compute(code, left, right),
        }
    }

    /// An operation with a place of its own for the result.
    pub(super) fn compute(&mut self, code: Code, left: Operand, right: Operand) -> Operand {
        let target = self.data.reserve(8);
        self.emit(code, target, &[left, right]);
        Operand::Load {
            offset: target,
            width: Width::WORD,
        }
    }

    fn term(&mut self) -> Result<Operand, Mistake> {
        let span = self.span();
        match self.next() {
            Token::Number(value) => Ok(Operand::Value(value)),
            Token::Text(bytes) => {
                let offset = self.data.constant(&[&bytes[..], &[0]].concat());
                Ok(Operand::Address(offset))
            }
            Token::Sign("-") => {
                let operand = self.term()?;
                Ok(self.sum(Code::Subtract, Operand::Value(0), operand))
            }
            Token::Sign("(") => {
                let operand = self.expression()?;
                self.expect_sign(")")?;
                Ok(operand)
            }
            Token::Sign("{") => self.structure(),
            Token::Word(word) => self.word(&word, span),
            other => Err(Mistake::new(
                span,
                format!("{} where a value should be", describe(&other)),
            )
            .help("a value is a number, a constant such as O_RDWR, a name, a \"text\" or a {structure}")),
        }
    }

    fn word(&mut self, word: &str, span: Span) -> Result<Operand, Mistake> {
        if self.takes_sign(".") {
            return self.element(word, span);
        }
        match self.data.name(word) {
            Some(Name::Variable { offset }) => {
                return Ok(Operand::Load {
                    offset,
                    width: Width::WORD,
                });
            }
            Some(Name::Buffer { offset, .. }) => return Ok(Operand::Address(offset)),
            None => {}
        }
        if let Some(value) = constant::value(word) {
            return Ok(Operand::Value(value));
        }
        if self.is_sign("(") {
            return Err(
                Mistake::new(span, "a call cannot stand inside of another one")
                    .help(format!("give its result a name first: `x = {word}(...)`")),
            );
        }
        let known = constant::names().chain(self.data.names());
        let help = match most_like(word, known) {
            Some(name) => format!("did you mean `{name}`?"),
            None => {
                "names get their values by `name = call(...)` or `buffer name SIZE` further up; \
                 constants not known here can be written as numbers"
                    .to_owned()
            }
        };
        Err(Mistake::new(
            span,
            format!("`{word}` is neither a name of this test nor a constant"),
        )
        .help(help))
    }

    /// `buffer.i32[1]`
    fn element(&mut self, word: &str, span: Span) -> Result<Operand, Mistake> {
        let Some(Name::Buffer { offset, size }) = self.data.name(word) else {
            return Err(Mistake::new(span, format!("`{word}` is not a buffer"))
                .help(format!("declare it in the set-up: `buffer {word} SIZE`")));
        };
        let span = self.span();
        let Token::Word(kind) = self.next() else {
            return Err(Mistake::new(span, "the type of the element is missing")
                .help(format!("as in `{word}.i32[0]`")));
        };
        let Some((_, width, _)) = TYPES.iter().find(|(name, _, big)| *name == kind && !big) else {
            return Err(Mistake::new(span, format!("`{kind}` is not a type"))
                .help("types are u8, u16, u32, u64, i8, i16, i32 and i64"));
        };
        self.expect_sign("[")?;
        let span = self.span();
        let Token::Number(index) = self.next() else {
            return Err(Mistake::new(span, "an index must be a plain number"));
        };
        self.expect_sign("]")?;
        let start = to_usize(index.cast_unsigned()).saturating_mul(usize::from(width.bytes));
        if start.saturating_add(usize::from(width.bytes)) > size {
            return Err(Mistake::new(
                span,
                format!("element {index} lies beyond the {size} bytes of `{word}`"),
            ));
        }
        Ok(Operand::Load {
            offset: offset + start,
            width: *width,
        })
    }

    /// `{u32 EPOLLIN, u64 fd, "bytes", ptr buffer, zero 16}`: address of the packed bytes.
    fn structure(&mut self) -> Result<Operand, Mistake> {
        let mut bytes = Vec::new();
        let mut stores = Vec::new();
        self.skip_lines();
        while !self.takes_sign("}") {
            let span = self.span();
            match self.next() {
                Token::Text(text) => bytes.extend_from_slice(&text),
                Token::Word(word) if word == "zero" => {
                    let count = self.size()?;
                    bytes.resize(bytes.len() + count, 0);
                }
                Token::Word(word) if word == "ptr" => {
                    let operand = self.expression()?;
                    stores.push((bytes.len(), 8, operand));
                    bytes.resize(bytes.len() + 8, 0);
                }
                Token::Word(word) => {
                    let Some((_, width, big)) = TYPES.iter().find(|(name, ..)| *name == word)
                    else {
                        return Err(Mistake::new(span, format!("`{word}` is not a type"))
                            .help("elements are `u32 VALUE` (u8 to u64, i8 to i64, be16, be32), `ptr VALUE`, `zero COUNT` or a text"));
                    };
                    let value_span = self.span();
                    let operand = self.expression()?;
                    let size = usize::from(width.bytes);
                    match operand {
                        Operand::Value(value) => {
                            let mut little = value.to_le_bytes()[..size].to_vec();
                            if *big {
                                little.reverse();
                            }
                            bytes.extend_from_slice(&little);
                        }
                        _ if *big => {
                            return Err(Mistake::new(
                                value_span,
                                "network order works for constants only",
                            ));
                        }
                        _ => {
                            stores.push((bytes.len(), width.bytes, operand));
                            bytes.resize(bytes.len() + size, 0);
                        }
                    }
                }
                other => {
                    return Err(Mistake::new(
                        span,
                        format!(
                            "{} where an element of a structure should be",
                            describe(&other)
                        ),
                    )
                    .help("as in {u32 EPOLLIN, u64 fd}"));
                }
            }
            self.skip_lines();
            if !self.takes_sign(",") && !self.is_sign("}") {
                return Err(Mistake::new(self.span(), "`,` or `}` is missing"));
            }
            self.skip_lines();
        }
        let offset = self.data.constant(&bytes);
        for (at, width, operand) in stores {
            self.emit(Code::Store(width), offset + at, &[operand]);
        }
        Ok(Operand::Address(offset))
    }

    /// A relation sign, if one is next.
    pub(super) fn relation(&mut self) -> Option<Relation> {
        const RELATIONS: [Relation; 6] = [
            Relation::Equal,
            Relation::NotEqual,
            Relation::LessEqual,
            Relation::GreaterEqual,
            Relation::Less,
            Relation::Greater,
        ];
        RELATIONS
            .into_iter()
            .find(|relation| self.takes_sign(relation.symbol()))
    }

    /// `comparison {&& comparison | "||" comparison}`, from left to right.
    pub(super) fn condition(&mut self) -> Result<Operand, Mistake> {
        let mut left = self.conjunction()?;
        while self.takes_sign("||") {
            let right = self.conjunction()?;
            left = self.compute(Code::Or, left, right);
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Operand, Mistake> {
        let mut left = self.comparison()?;
        while self.takes_sign("&&") {
            let right = self.comparison()?;
            left = self.compute(Code::And, left, right);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Operand, Mistake> {
        let left = self.expression()?;
        let span = self.span();
        let Some(relation) = self.relation() else {
            return Err(Mistake::new(span, "a comparison is missing").help("as in `a == -EAGAIN`"));
        };
        let right = self.expression()?;
        Ok(self.compute(Code::Compare(relation), left, right))
    }
}

pub(super) fn describe(token: &Token) -> String {
    match token {
        Token::Word(word) => format!("`{word}`"),
        Token::Number(number) => format!("the number {number}"),
        Token::Text(_) => "a text".to_owned(),
        Token::Sign(sign) => format!("`{sign}`"),
        Token::Line => "the end of the line".to_owned(),
        Token::End => "the end of the file".to_owned(),
    }
}
