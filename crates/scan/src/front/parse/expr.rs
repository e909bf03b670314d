//! Expressions: precedence climbing, with types allowed wherever a macro may take one.

use super::{Parsed, Parser, Sink, Trouble};
use crate::front::ast::{E, Expr};
use crate::front::lex::{Kind, Token, op};
use crate::front::words::Word;

/// Binding power of a binary operator; 0 if it is none.
fn power(code: u32) -> u8 {
    const TABLE: &[(&str, u8)] = &[
        ("*", 10),
        ("/", 10),
        ("%", 10),
        ("+", 9),
        ("-", 9),
        ("<<", 8),
        (">>", 8),
        ("<", 7),
        (">", 7),
        ("<=", 7),
        (">=", 7),
        ("==", 6),
        ("!=", 6),
        ("&", 5),
        ("^", 4),
        ("|", 3),
        ("&&", 2),
        ("||", 1),
    ];
    TABLE
        .iter()
        .find(|(text, _)| op(text) == code)
        .map_or(0, |(_, power)| *power)
}

fn is_assignment(code: u32) -> bool {
    [
        "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=",
    ]
    .iter()
    .any(|text| op(text) == code)
}

impl<K: Sink> Parser<'_, '_, K> {
    /// A full expression, commas included.
    pub(super) fn expression(&mut self) -> Parsed<E> {
        let first = self.assignment()?;
        if !self.is(op(",")) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat(op(",")) {
            parts.push(self.assignment()?);
        }
        let parts = self.exprs.list(&parts);
        Ok(self.exprs.add(Expr::Comma { parts }))
    }

    /// An expression without top-level commas.
    pub(super) fn assignment(&mut self) -> Parsed<E> {
        self.deeper(|parser| {
            let left = parser.ternary()?;
            match parser.here().kind {
                Kind::Op(code) if is_assignment(code) => {
                    parser.bump();
                    let right = if parser.is(op("{")) {
                        parser.initialiser()?
                    } else {
                        parser.assignment()?
                    };
                    Ok(parser.exprs.add(Expr::Assign {
                        op: code,
                        to: left,
                        from: right,
                    }))
                }
                _ => Ok(left),
            }
        })
    }

    fn ternary(&mut self) -> Parsed<E> {
        let cond = self.binary(1)?;
        if !self.eat(op("?")) {
            return Ok(cond);
        }
        let yes = if self.is(op(":")) {
            cond
        } else {
            self.expression()?
        };
        self.expect(op(":"))?;
        let no = self.deeper(Self::ternary)?;
        let parts = self.exprs.list(&[cond, yes, no]);
        Ok(self.exprs.add(Expr::Choice { parts }))
    }

    fn binary(&mut self, least: u8) -> Parsed<E> {
        let mut left = self.unary()?;
        loop {
            let Kind::Op(code) = self.here().kind else {
                return Ok(left);
            };
            let power = power(code);
            if power < least || power == 0 {
                return Ok(left);
            }
            self.bump();
            let right = self.deeper(|parser| parser.binary(power + 1))?;
            left = self.exprs.add(Expr::Binary {
                op: code,
                left,
                right,
            });
        }
    }

    fn unary(&mut self) -> Parsed<E> {
        self.deeper(Self::unary_inner)
    }

    fn unary_inner(&mut self) -> Parsed<E> {
        let token = self.here();
        match token.kind {
            Kind::Op(code)
                if [op("&"), op("*"), op("-"), op("+"), op("!"), op("~")].contains(&code) =>
            {
                self.bump();
                let of = self.unary()?;
                if code == op("*") {
                    let id = self.exprs.add(Expr::Unary { op: code, of });
                    self.note(id, token.pos);
                    return Ok(id);
                }
                Ok(self.exprs.add(Expr::Unary { op: code, of }))
            }
            Kind::Op(code) if code == op("&&") => {
                // The address of a label.
                self.bump();
                self.name()?;
                Ok(self.exprs.add(Expr::Other))
            }
            Kind::Op(code) if code == op("++") || code == op("--") => {
                self.bump();
                let of = self.unary()?;
                Ok(self.exprs.add(Expr::Step { of }))
            }
            Kind::Op(code) if code == op("(") && self.is_cast() => self.cast(),
            Kind::Name if self.word() == Word::Sizeof => {
                self.bump();
                if self.is(op("(")) {
                    self.skip_group();
                } else {
                    self.unary()?;
                }
                Ok(self.exprs.add(Expr::Other))
            }
            _ => self.postfix(),
        }
    }

    fn starts_type(&self, token: Token) -> bool {
        matches!(
            self.word_of(token),
            Word::Struct
                | Word::Union
                | Word::Enum
                | Word::Builtin
                | Word::Qualifier
                | Word::Typeof
        )
    }

    /// Whether `(` here opens a cast: a type keyword, `(T *)`, or `(T)` before an operand.
    fn is_cast(&self) -> bool {
        let first = self.ahead(1);
        if self.starts_type(first) {
            return true;
        }
        if !self.is_plain_name(first) {
            return false;
        }
        let mut after = 2;
        while self.ahead_is(after, op("*")) || self.word_of(self.ahead(after)) == Word::Qualifier {
            after += 1;
        }
        if !self.ahead_is(after, op(")")) {
            return false;
        }
        let next = self.ahead(after + 1);
        let is_operand = matches!(next.kind, Kind::Name | Kind::Number | Kind::Text)
            && !matches!(self.word_of(next), Word::Qualifier);
        if after > 2 {
            // Nothing else looks like `(name *)`.
            return true;
        }
        let looks_like_type = {
            let text = self.names.text(first.sym);
            text.ends_with(b"_t")
                || matches!(text, [b'u' | b's', b'8' | b'1' | b'3' | b'6', ..] if text.len() <= 3)
                || text.starts_with(b"__u")
                || text.starts_with(b"__le")
                || text.starts_with(b"__be")
        };
        is_operand
            || matches!(next.kind, Kind::Op(code) if code == op("{"))
            || (looks_like_type
                && matches!(next.kind, Kind::Op(code) if [op("("), op("&"), op("*"), op("-"), op("~"), op("!"), op("++"), op("--")].contains(&code)))
    }

    fn cast(&mut self) -> Parsed<E> {
        self.bump();
        let ty = self.type_name()?;
        self.expect(op(")"))?;
        let of = if self.is(op("{")) {
            self.initialiser()?
        } else {
            self.unary()?
        };
        let ty = self.exprs.ty(ty);
        let id = self.exprs.add(Expr::Cast { ty, of });
        // `(T){..}` and `(T *)x` may be used like any operand.
        self.suffixes(id)
    }

    fn postfix(&mut self) -> Parsed<E> {
        let token = self.here();
        let start = match token.kind {
            Kind::Name if self.is_plain_name(token) => {
                self.bump();
                let id = self.exprs.add(Expr::Name(token.sym));
                if !self.is(op("(")) {
                    self.note(id, token.pos);
                }
                id
            }
            Kind::Name if self.starts_type(token) => {
                // A type where an expression should be: an argument of a macro.
                let ty = self.type_name()?;
                let ty = self.exprs.ty(ty);
                self.exprs.add(Expr::Type { ty })
            }
            Kind::Number => {
                self.bump();
                self.exprs.add(Expr::Number(token.sym))
            }
            Kind::Text => self.text(),
            Kind::Op(code) if code == op("(") => self.group()?,
            _ => return Err(Trouble),
        };
        self.suffixes(start)
    }

    /// Adjacent strings, and macros such as `PRIu64` between them, are one text.
    fn text(&mut self) -> E {
        let first = self.bump();
        while self.here().kind == Kind::Text
            || (self.is_plain_name(self.here()) && !self.ahead_is(1, op("(")))
        {
            self.bump();
        }
        self.exprs.add(Expr::Text(first.sym))
    }

    fn group(&mut self) -> Parsed<E> {
        self.expect(op("("))?;
        if self.is(op("{")) {
            let block = self.deeper(Self::statement)?;
            self.expect(op(")"))?;
            return Ok(self.exprs.add(Expr::Block(block)));
        }
        let inner = self.expression()?;
        self.expect(op(")"))?;
        Ok(inner)
    }

    fn suffixes(&mut self, mut id: E) -> Parsed<E> {
        let mut count = 0;
        loop {
            count += 1;
            if count > 4096 {
                return Err(Trouble);
            }
            let pos = self.here().pos;
            match self.here().kind {
                Kind::Op(code) if code == op("(") => {
                    let args = self.arguments()?;
                    let args = self.exprs.list(&args);
                    id = self.exprs.add(Expr::Call { callee: id, args });
                    self.note(id, pos);
                }
                Kind::Op(code) if code == op("[") => {
                    self.bump();
                    let index = self.expression()?;
                    self.expect(op("]"))?;
                    id = self.exprs.add(Expr::Index { base: id, index });
                    self.note(id, pos);
                }
                Kind::Op(code) if code == op(".") || code == op("->") => {
                    self.bump();
                    let field = self.name()?;
                    id = self.exprs.add(Expr::Member {
                        base: id,
                        field,
                        arrow: code == op("->"),
                    });
                    self.note(id, pos);
                }
                Kind::Op(code) if code == op("++") || code == op("--") => {
                    self.bump();
                    id = self.exprs.add(Expr::Step { of: id });
                }
                Kind::Text if matches!(self.exprs.get(id), Expr::Name(_)) => {
                    // `KERN_ERR "text"`.
                    id = self.text();
                }
                _ => return Ok(id),
            }
        }
    }

    /// Arguments of a call or macro; what is no expression becomes [`Expr::Other`].
    fn arguments(&mut self) -> Parsed<Vec<E>> {
        self.expect(op("("))?;
        let mut args = Vec::new();
        if self.eat(op(")")) {
            return Ok(args);
        }
        loop {
            args.push(self.argument());
            if self.eat(op(",")) {
                continue;
            }
            self.expect(op(")"))?;
            return Ok(args);
        }
    }

    fn argument(&mut self) -> E {
        let start = self.at;
        let depth = self.depth;
        if let Ok(id) = self.assignment()
            && (self.is(op(",")) || self.is(op(")")))
        {
            return id;
        }
        self.depth = depth;
        self.at = start;
        let first = self.here();
        let mut stars = 0;
        if self.is_plain_name(first) {
            while self.ahead_is(1 + stars, op("*")) {
                stars += 1;
            }
        }
        let is_type =
            stars > 0 && (self.ahead_is(1 + stars, op(",")) || self.ahead_is(1 + stars, op(")")));
        while !self.is_end() && !self.is(op(",")) && !self.is(op(")")) {
            self.skip_group();
        }
        if is_type {
            let ty = crate::front::ast::Ty {
                base: first.sym,
                pointers: u8::try_from(stars).unwrap_or(u8::MAX),
                ..Default::default()
            };
            let ty = self.exprs.ty(ty);
            return self.exprs.add(Expr::Type { ty });
        }
        self.exprs.add(Expr::Other)
    }

    /// `{ .a = b, [i] = c, d }`.
    pub(super) fn initialiser(&mut self) -> Parsed<E> {
        self.deeper(|parser| {
            parser.expect(op("{"))?;
            let mut parts = Vec::new();
            while !parser.is(op("}")) {
                if parser.is_end() {
                    return Err(Trouble);
                }
                parts.push(parser.initialiser_item()?);
                if !parser.eat(op(",")) && !parser.is(op("}")) {
                    // A macro that brings its own comma, or parts of an unfinished one.
                    if parser.is_plain_name(parser.here())
                        || parser.is(op("."))
                        || parser.is(op("["))
                        || parser.is(op("{"))
                    {
                        continue;
                    }
                    return Err(Trouble);
                }
            }
            parser.expect(op("}"))?;
            let parts = parser.exprs.list(&parts);
            Ok(parser.exprs.add(Expr::Init { parts }))
        })
    }

    fn initialiser_item(&mut self) -> Parsed<E> {
        let mut field = None;
        if self.is_plain_name(self.here()) && self.ahead_is(1, op(":")) {
            field = Some(self.bump().sym);
            self.bump();
        } else {
            let mut designated = false;
            loop {
                if self.is(op("[")) {
                    self.skip_group();
                } else if self.is(op(".")) {
                    self.bump();
                    field = Some(self.name()?);
                } else {
                    break;
                }
                designated = true;
            }
            if designated {
                self.eat(op("="));
            }
        }
        let value = if self.is(op("{")) {
            self.initialiser()?
        } else {
            self.assignment()?
        };
        Ok(match field {
            Some(name) => self.exprs.add(Expr::Field { name, value }),
            None => value,
        })
    }
}
