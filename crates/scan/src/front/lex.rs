//! From bytes to tokens, without a preprocessor.
//!
//! Comments go, attribute words of the idiom table go, and function-like macros are noted for later.
//! At file level both branches of an `#if` are kept: they usually hold alternative functions. Inside a
//! function the branches become those of an `if`, where each is a row of whole statements; else the first
//! branch is taken.

use rustc_hash::FxHashMap;

use super::conditional;
use super::words::{Word, Words};

/// An identifier, number or string of one file; an index into the file's [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Sym(pub(crate) u32);

/// What a token is; multi-character operators are packed little-endian into the `Op` value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    Number,
    Text,
    Op(u32),
    End,
}

/// One token with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) sym: Sym,
    pub(crate) pos: u32,
}

/// The operator code of `text`, as [`Kind::Op`] holds it.
pub(crate) const fn op(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let mut code = 0;
    let mut at = 0;
    while at < bytes.len() {
        code |= (bytes[at] as u32) << (8 * at);
        at += 1;
    }
    code
}

/// The identifiers of one file.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    ids: FxHashMap<&'a [u8], u32>,
    pub(crate) texts: Vec<&'a [u8]>,
    pub(crate) words: Vec<Word>,
}

impl<'a> Names<'a> {
    pub(super) fn intern(&mut self, text: &'a [u8], words: &Words) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = index(self.texts.len());
        self.ids.insert(text, id);
        self.texts.push(text);
        self.words.push(words.of(text));
        id
    }

    /// What the idiom table and the language say about `sym`.
    pub(crate) fn word(&self, sym: Sym) -> Word {
        self.words[at(sym.0)]
    }

    /// The spelling.
    pub(crate) fn text(&self, sym: Sym) -> &'a [u8] {
        self.texts[at(sym.0)]
    }
}

/// A 32-bit index as `usize`.
pub(crate) fn at(index: u32) -> usize {
    raddle_stdx::width::to_usize(u64::from(index))
}

/// A length as a 32-bit index; files and arenas are bounded far below.
pub(crate) fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A function-like macro: its name and the range of its body in `MacroText`.
#[derive(Debug, Clone)]
pub(crate) struct Macro {
    pub(crate) name: Sym,
    pub(crate) params: Vec<Sym>,
    /// Tokens of the body, ended by `End`.
    pub(crate) body: Vec<Token>,
}

/// Everything the parser needs to know of one file.
#[derive(Debug, Default)]
pub(crate) struct Lexed<'a> {
    pub(crate) tokens: Vec<Token>,
    pub(crate) names: Names<'a>,
    pub(crate) macros: Vec<Macro>,
    /// Names of all function-like macros, looked into or not.
    pub(crate) macro_names: Vec<Sym>,
    /// Places of `__acquires(..)` and `__releases(..)`.
    pub(crate) hand_overs: Vec<u32>,
    /// Places of `__rcu`, in order.
    pub(crate) rcu_marks: Vec<u32>,
}

pub(super) struct Lexer<'a, 'w> {
    pub(super) text: &'a [u8],
    pub(super) pos: usize,
    pub(super) words: &'w Words,
    pub(super) out: Lexed<'a>,
    /// Open `{` and `(`; decides whether both branches of an `#if` can be kept.
    braces: u32,
    parens: u32,
    /// The open braces are those of a function.
    in_function: bool,
    /// For each open `#if`: what becomes of its further branches.
    conditionals: Vec<Conditional>,
}

/// An open `#if`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conditional {
    /// Only the branch we are in is read.
    One,
    /// All branches are read, as those of an `if`.
    All,
}

/// Splits `text` into tokens.
pub(crate) fn lex<'a>(text: &'a [u8], words: &Words) -> Lexed<'a> {
    let mut lexer = Lexer {
        text,
        pos: 0,
        words,
        out: Lexed::default(),
        braces: 0,
        parens: 0,
        in_function: false,
        conditionals: Vec::new(),
    };
    lexer.out.tokens.reserve(text.len() / 6);
    // Symbol 0 is the empty name, so that it can mean "none".
    lexer.out.names.intern(b"", words);
    let mut line_start = true;
    while let Some(token) = lexer.next_token(&mut line_start) {
        lexer.keep(token);
    }
    let end = index(text.len());
    lexer.out.tokens.push(Token {
        kind: Kind::End,
        sym: Sym(0),
        pos: end,
    });
    lexer.out
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte >= 0x80
}

pub(super) fn is_name_part(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit()
}

impl<'a> Lexer<'a, '_> {
    fn keep(&mut self, token: Token) {
        match token.kind {
            Kind::Op(code) if code == op("{") => {
                // The body of a function follows its parameters; a struct or table follows a name or `=`.
                if self.braces == 0 {
                    let last = self.out.tokens.last().map(|token| token.kind);
                    self.in_function = last == Some(Kind::Op(op(")")));
                }
                self.braces += 1;
            }
            Kind::Op(code) if code == op("}") => self.braces = self.braces.saturating_sub(1),
            Kind::Op(code) if code == op("(") => self.parens += 1,
            Kind::Op(code) if code == op(")") => self.parens = self.parens.saturating_sub(1),
            Kind::Name => match self.out.names.word(token.sym) {
                Word::Attribute => {
                    if self.out.names.text(token.sym) == b"__rcu" {
                        self.out.rcu_marks.push(token.pos);
                    }
                    return;
                }
                // A label or variable may have such a name, too: `goto __error`.
                Word::AttributeCall if self.is_before_parens() => {
                    if matches!(
                        self.out.names.text(token.sym),
                        b"__acquires" | b"__releases" | b"__cond_acquires"
                    ) {
                        self.out.hand_overs.push(token.pos);
                    }
                    self.skip_parens();
                    return;
                }
                _ => {}
            },
            _ => {}
        }
        self.out.tokens.push(token);
    }

    /// Whether the next thing is an opening parenthesis.
    fn is_before_parens(&self) -> bool {
        let rest = &self.text[self.pos.min(self.text.len())..];
        rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'(')
    }

    pub(super) fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.pos + ahead).copied().unwrap_or(0)
    }

    /// Skips blanks and comments; returns false at the end of the text.
    pub(super) fn skip_space(&mut self, line_start: &mut bool) -> bool {
        loop {
            let Some(byte) = self.text.get(self.pos) else {
                return false;
            };
            match byte {
                b'\n' => {
                    *line_start = true;
                    self.pos += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0B | 0x0C | 0 => self.pos += 1,
                b'\\' if matches!(self.peek(1), b'\n' | b'\r' | b' ' | b'\t') => self.pos += 2,
                b'/' if self.peek(1) == b'*' => self.skip_block_comment(),
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                _ => return true,
            }
        }
    }

    fn skip_block_comment(&mut self) {
        self.pos += 2;
        while self.pos < self.text.len() && !(self.peek(0) == b'*' && self.peek(1) == b'/') {
            self.pos += 1;
        }
        self.pos = (self.pos + 2).min(self.text.len());
    }

    /// To the end of the logical line, which a backslash continues.
    pub(super) fn skip_line(&mut self) {
        while let Some(byte) = self.text.get(self.pos) {
            match byte {
                b'\\' if self.peek(1) == b'\n' => self.pos += 2,
                b'\\' if self.peek(1) == b'\r' && self.peek(2) == b'\n' => self.pos += 3,
                b'/' if self.peek(1) == b'*' => self.skip_block_comment(),
                b'\n' => return,
                _ => self.pos += 1,
            }
        }
    }

    fn skip_parens(&mut self) {
        let mut line_start = false;
        let start = self.pos;
        if !self.skip_space(&mut line_start) || self.peek(0) != b'(' {
            self.pos = start;
            return;
        }
        let mut depth = 0_u32;
        while let Some(token) = self.next_token(&mut line_start) {
            match token.kind {
                Kind::Op(code) if code == op("(") => depth += 1,
                Kind::Op(code) if code == op(")") => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn next_token(&mut self, line_start: &mut bool) -> Option<Token> {
        loop {
            if !self.skip_space(line_start) {
                return None;
            }
            if self.peek(0) == b'#' && *line_start {
                self.directive();
                continue;
            }
            *line_start = false;
            return Some(self.scan());
        }
    }

    pub(super) fn scan(&mut self) -> Token {
        let start = self.pos;
        let byte = self.peek(0);
        let kind = if is_name_start(byte) {
            while is_name_part(self.peek(0)) {
                self.pos += 1;
            }
            // Wide strings and characters: the prefix belongs to the literal.
            if matches!(self.peek(0), b'"' | b'\'') && self.pos - start == 1 && byte == b'L' {
                self.literal();
                Kind::Text
            } else {
                Kind::Name
            }
        } else if byte.is_ascii_digit() || (byte == b'.' && self.peek(1).is_ascii_digit()) {
            self.number();
            Kind::Number
        } else if byte == b'"' || byte == b'\'' {
            self.literal();
            if byte == b'"' {
                Kind::Text
            } else {
                Kind::Number
            }
        } else {
            Kind::Op(self.operator())
        };
        let sym = match kind {
            Kind::Op(_) | Kind::End => 0,
            _ => {
                let text = &self.text[start..self.pos];
                self.out.names.intern(text, self.words)
            }
        };
        Token {
            kind,
            sym: Sym(sym),
            pos: index(start),
        }
    }

    fn number(&mut self) {
        while is_name_part(self.peek(0))
            || self.peek(0) == b'.'
            || (matches!(self.peek(0), b'+' | b'-')
                && matches!(self.text[self.pos - 1], b'e' | b'E' | b'p' | b'P')
                && !self.text[..self.pos].ends_with(b"0xe"))
        {
            self.pos += 1;
        }
    }

    fn literal(&mut self) {
        let quote = self.peek(0);
        self.pos += 1;
        while let Some(byte) = self.text.get(self.pos) {
            match byte {
                b'\\' => self.pos += 2,
                // An unclosed quote ends at the line; text in skipped code may hold apostrophes.
                b'\n' => return,
                byte => {
                    self.pos += 1;
                    if *byte == quote {
                        return;
                    }
                }
            }
        }
        self.pos = self.pos.min(self.text.len());
    }

    fn operator(&mut self) -> u32 {
        let (a, b, c) = (self.peek(0), self.peek(1), self.peek(2));
        let length = match (a, b, c) {
            (b'.', b'.', b'.') | (b'<', b'<', b'=') | (b'>', b'>', b'=') => 3,
            (b'-', b'>' | b'-' | b'=', _)
            | (b'+', b'+' | b'=', _)
            | (b'<', b'<' | b'=', _)
            | (b'>', b'>' | b'=', _)
            | (b'=' | b'!' | b'*' | b'/' | b'%' | b'^', b'=', _)
            | (b'&', b'&' | b'=', _)
            | (b'|', b'|' | b'=', _)
            | (b'#', b'#', _) => 2,
            _ => 1,
        };
        let mut code = 0;
        for ahead in 0..length {
            code |= u32::from(self.peek(ahead)) << (8 * ahead);
        }
        self.pos += length;
        code
    }

    fn directive(&mut self) {
        self.pos += 1;
        while matches!(self.peek(0), b' ' | b'\t') {
            self.pos += 1;
        }
        let start = self.pos;
        while is_name_part(self.peek(0)) {
            self.pos += 1;
        }
        let name = &self.text[start..self.pos];
        match name {
            b"define" => self.define(),
            b"if" | b"ifdef" | b"ifndef" => {
                let condition_start = self.pos;
                self.skip_line();
                let condition = self.text[condition_start..self.pos].trim_ascii();
                if is_never(name, condition) {
                    self.skip_branch(true);
                } else if self.is_between_statements()
                    && conditional::is_choice(&self.text[self.pos..])
                {
                    self.conditionals.push(Conditional::All);
                    self.write(&["if", "(", "1", ")", "{"]);
                } else {
                    self.conditionals.push(Conditional::One);
                }
            }
            b"else" | b"elif" | b"elifdef" => {
                self.skip_line();
                match self.conditionals.last() {
                    Some(Conditional::All) if name == b"else" => self.write(&["}", "else", "{"]),
                    Some(Conditional::All) => {
                        self.write(&["}", "else", "if", "(", "1", ")", "{"]);
                    }
                    Some(Conditional::One) if !self.can_keep_both() => self.skip_branch(false),
                    _ => {}
                }
            }
            b"endif" => {
                if self.conditionals.pop() == Some(Conditional::All) {
                    self.write(&["}"]);
                }
                self.skip_line();
            }
            _ => self.skip_line(),
        }
    }

    /// Puts tokens that are not in the text.
    fn write(&mut self, tokens: &[&'static str]) {
        for text in tokens {
            let (kind, sym) = match *text {
                "if" | "else" => (
                    Kind::Name,
                    self.out.names.intern(text.as_bytes(), self.words),
                ),
                "1" => (
                    Kind::Number,
                    self.out.names.intern(text.as_bytes(), self.words),
                ),
                other => (Kind::Op(op(other)), 0),
            };
            let pos = index(self.pos);
            self.keep(Token {
                kind,
                sym: Sym(sym),
                pos,
            });
        }
    }

    /// Inside a function, where a statement may begin.
    fn is_between_statements(&self) -> bool {
        let last = self.out.tokens.last().map(|token| token.kind);
        let begins = [op(";"), op("{"), op("}")];
        self.in_function
            && self.braces > 0
            && self.parens == 0
            && matches!(last, Some(Kind::Op(code)) if begins.contains(&code))
    }

    /// Alternatives stand side by side if we are between declarations.
    fn can_keep_both(&self) -> bool {
        let after_declaration = match self.out.tokens.last().map(|token| token.kind) {
            None => true,
            Some(Kind::Op(code)) => code == op(";") || code == op("}") || code == op(")"),
            _ => false,
        };
        self.braces == 0 && self.parens == 0 && after_declaration
    }

    /// Skips the text of a branch not taken. With `stop_at_else`, an `#else` begins the branch we take.
    fn skip_branch(&mut self, stop_at_else: bool) {
        let mut depth = 0_u32;
        loop {
            let mut line_start = false;
            while self.pos < self.text.len() && self.peek(0) != b'\n' {
                if self.peek(0) == b'/' && self.peek(1) == b'*' {
                    self.skip_block_comment();
                } else {
                    self.pos += 1;
                }
            }
            if self.pos >= self.text.len() {
                return;
            }
            self.pos += 1;
            while matches!(self.peek(0), b' ' | b'\t') {
                self.pos += 1;
            }
            if self.peek(0) != b'#' {
                continue;
            }
            self.pos += 1;
            while matches!(self.peek(0), b' ' | b'\t') {
                self.pos += 1;
            }
            let rest = &self.text[self.pos..];
            if rest.starts_with(b"if") {
                depth += 1;
            } else if rest.starts_with(b"endif") {
                if depth == 0 {
                    if !stop_at_else {
                        self.conditionals.pop();
                    }
                    self.skip_line();
                    self.skip_space(&mut line_start);
                    return;
                }
                depth -= 1;
            } else if depth == 0 && stop_at_else && rest.starts_with(b"el") {
                self.skip_line();
                self.conditionals.push(Conditional::One);
                return;
            }
        }
    }
}

/// Whether the branch under this condition is never compiled.
fn is_never(directive: &[u8], condition: &[u8]) -> bool {
    match directive {
        b"if" => {
            condition == b"0"
                || condition.starts_with(b"0 ")
                || condition.starts_with(b"0/")
                || condition.starts_with(b"0\t")
        }
        b"ifdef" => condition.starts_with(b"__cplusplus"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        let words = Words::new(["__user"], ["__acquires"], ["spin_lock"]);
        let lexed = lex(source.as_bytes(), &words);
        lexed
            .tokens
            .iter()
            .filter_map(|token| match token.kind {
                Kind::Op(code) => Some(
                    code.to_le_bytes()
                        .iter()
                        .filter(|byte| **byte != 0)
                        .map(|byte| char::from(*byte))
                        .collect(),
                ),
                Kind::End => None,
                _ => Some(String::from_utf8_lossy(lexed.names.text(token.sym)).into_owned()),
            })
            .collect()
    }

    #[test]
    fn attributes_and_comments_go() {
        assert_eq!(
            texts("int __user *p __acquires(a->b(c)); // x\n/* y */ a <<= 1;"),
            ["int", "*", "p", ";", "a", "<<=", "1", ";"]
        );
    }

    #[test]
    fn one_branch_inside_a_body_both_outside() {
        assert_eq!(
            texts("f(){\n#if A\nif (x)\n#else\nb;\n#endif\nc;}"),
            ["f", "(", ")", "{", "if", "(", "x", ")", "c", ";", "}"]
        );
        assert_eq!(
            texts("#if A\na;\n#else\nb;\n#endif\nc;"),
            ["a", ";", "b", ";", "c", ";"]
        );
        assert_eq!(
            texts("f(){\n#if 0\na;\n#else\nb;\n#endif\nc;}"),
            ["f", "(", ")", "{", "b", ";", "c", ";", "}"]
        );
    }

    #[test]
    fn branches_inside_a_body_become_those_of_an_if() {
        assert_eq!(
            texts("f(){\n#if A\na;\n#elif B\nb;\n#else\n{c;}\n#endif\n}").join(" "),
            "f ( ) { if ( 1 ) { a ; } else if ( 1 ) { b ; } else { { c ; } } }"
        );
        // Not whole statements: the first branch only.
        for other in ["else a;", "case 1: a;", "a(", "} {", "a"] {
            let source = format!("f(){{\nx;\n#if A\ny;\n#else\n{other}\n#endif\n}}");
            assert_eq!(texts(&source).join(" "), "f ( ) { x ; y ; }", "{other}");
        }
        // In a struct or an initialiser nothing is a statement.
        assert_eq!(
            texts("struct s {\n#if A\nint a;\n#else\nint b;\n#endif\n};").join(" "),
            "struct s { int a ; } ;"
        );
        assert_eq!(
            texts("t = {\n#if A\n.a = 1,\n#else\n.a = 2,\n#endif\n};").join(" "),
            "t = { . a = 1 , } ;"
        );
    }

    #[test]
    fn macros_with_locks_are_noted() {
        let words = Words::new([], [], ["spin_lock"]);
        let lexed = lex(
            b"#define L(x) spin_lock(&(x)->l)\n#define N(x) (x)\n",
            &words,
        );
        assert_eq!(lexed.macros.len(), 1);
        assert_eq!(lexed.macros[0].params.len(), 1);
        assert_eq!(lexed.macros[0].body.len(), 10);
    }
}
