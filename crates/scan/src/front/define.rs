//! Reads `#define`: notes the function-like macros of a file, and the short bodies that matter for locks.

use super::lex::{Kind, Lexer, Macro, Sym, Token, index, is_name_part, op};
use super::words::Word;

/// Longest macro body that is looked into.
const MACRO_TOKENS_MAX: usize = 60;

impl Lexer<'_, '_> {
    /// Notes a function-like macro whose body is short enough to matter.
    pub(super) fn define(&mut self) {
        while matches!(self.peek(0), b' ' | b'\t') {
            self.pos += 1;
        }
        let start = self.pos;
        while is_name_part(self.peek(0)) {
            self.pos += 1;
        }
        let name = &self.text[start..self.pos];
        if self.peek(0) != b'(' || name.is_empty() {
            self.skip_line();
            return;
        }
        let body_start = self.pos;
        self.skip_line();
        let line = &self.text[body_start..self.pos];
        let length = line.len();
        let name = Sym(self.out.names.intern(name, self.words));
        self.out.macro_names.push(name);
        if length > MACRO_TOKENS_MAX * 12 {
            return;
        }
        let end = self.pos;
        self.pos = body_start;
        let tokens = self.line_tokens(end);
        self.pos = end;
        self.note_macro(name, tokens);
    }

    fn line_tokens(&mut self, end: usize) -> Vec<Token> {
        let mut tokens = Vec::new();
        let mut line_start = false;
        let text = self.text;
        self.text = &text[..end];
        while tokens.len() <= MACRO_TOKENS_MAX && self.skip_space(&mut line_start) {
            tokens.push(self.scan());
        }
        self.text = text;
        tokens
    }

    fn note_macro(&mut self, name: Sym, tokens: Vec<Token>) {
        if tokens.len() > MACRO_TOKENS_MAX {
            return;
        }
        let close = tokens
            .iter()
            .position(|token| token.kind == Kind::Op(op(")")));
        let Some(close) = close else { return };
        let params = tokens[..close]
            .iter()
            .filter(|token| token.kind == Kind::Name)
            .map(|token| token.sym)
            .collect();
        let mut body = tokens[close + 1..].to_vec();
        let matters = body
            .iter()
            .any(|token| token.kind == Kind::Name && self.out.names.word(token.sym) == Word::Sync);
        if !matters {
            return;
        }
        body.push(Token {
            kind: Kind::End,
            sym: Sym(0),
            pos: index(self.pos),
        });
        self.out.macros.push(Macro { name, params, body });
    }
}
