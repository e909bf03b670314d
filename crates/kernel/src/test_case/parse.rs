//! Sections and statements.

use raddle_stdx::width::to_usize;

use super::data::Data;
use super::error::{Mistake, Span, most_like};
use super::expression::describe;
use super::token::{Token, tokens};
use super::{ModuleLoader, Section, Statement, TestCase};
use crate::module;
use crate::program::{
    Code, INIT_MODULE, Operand, Operation, Program, RESULTS_MAX, Relation, THREADS_MAX, Width,
};

/// Statements of a test after all repetitions: each may give two results.
const STATEMENTS_MAX: usize = RESULTS_MAX / 2;
/// Bytes that one buffer may have.
const BUFFER_MAX: usize = 1 << 20;
/// How deep modules may depend on each other.
const DEPENDENCY_DEPTH: usize = 8;
const EEXIST: i64 = 17;
const ARGUMENTS_MAX: usize = 6;

pub(super) fn parse(text: &str, modules: ModuleLoader<'_>) -> Result<TestCase, Mistake> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        text,
        data: Data::default(),
        section: Section::Setup,
        current: Vec::new(),
        statements: Vec::new(),
        statement: 0,
        modules,
        loaded: Vec::new(),
    };
    parser.file()
}

/// State of the reading.
pub(super) struct Parser<'a> {
    tokens: Vec<(Token, Span)>,
    at: usize,
    text: &'a str,
    pub(super) data: Data,
    section: Section,
    /// Operations of the current section.
    current: Vec<Operation>,
    statements: Vec<Statement>,
    /// Number of the current statement.
    statement: usize,
    modules: ModuleLoader<'a>,
    /// Content of the modules so far.
    loaded: Vec<Vec<u8>>,
}

impl Parser<'_> {
    fn file(&mut self) -> Result<TestCase, Mistake> {
        let mut program = Program::default();
        let mut threads = Vec::new();
        let mut seen_setup = false;
        let mut seen_check = false;
        self.skip_lines();
        while *self.peek() != Token::End {
            let span = self.span();
            let word = match self.next() {
                Token::Word(word) => word,
                other => return Err(not_a_section(span, &describe(&other))),
            };
            match word.as_str() {
                "setup" if seen_setup || !threads.is_empty() || seen_check => {
                    return Err(Mistake::new(span, "the set-up comes first and once"));
                }
                "setup" => {
                    seen_setup = true;
                    program.setup = self.section(Section::Setup)?;
                }
                "thread" | "process" if seen_check => {
                    return Err(
                        Mistake::new(span, "the checks come last").help("move `check:` to the end")
                    );
                }
                "thread" | "process" if threads.len() == THREADS_MAX => {
                    return Err(Mistake::new(
                        span,
                        format!("a test has at most {THREADS_MAX} threads"),
                    ));
                }
                "thread" | "process" => {
                    let name = self.thread_name(&threads)?;
                    let operations = self.section(Section::Thread(threads.len()))?;
                    threads.push(name);
                    program.threads.push(operations);
                    program.processes.push(word == "process");
                }
                "check" if seen_check => {
                    return Err(Mistake::new(span, "there is a second `check:`"));
                }
                "check" => {
                    seen_check = true;
                    program.check = self.section(Section::Check)?;
                }
                _ => return Err(not_a_section(span, &format!("`{word}`"))),
            }
            self.skip_lines();
        }
        if threads.is_empty() {
            return Err(Mistake::new(self.span(), "the test has no threads")
                .help("add a section `thread NAME:` with system calls for each of them"));
        }
        program.data = std::mem::take(&mut self.data.bytes);
        Ok(TestCase {
            path: String::new(),
            text: String::new(),
            threads,
            statements: std::mem::take(&mut self.statements),
            modules: std::mem::take(&mut self.loaded),
            program,
            buffers: self.data.buffers(),
        })
    }

    fn thread_name(&mut self, threads: &[String]) -> Result<String, Mistake> {
        let span = self.span();
        match self.next() {
            Token::Word(name) if threads.contains(&name) => Err(Mistake::new(
                span,
                format!("there is already a thread `{name}`"),
            )),
            Token::Word(name) => Ok(name),
            _ => Err(Mistake::new(span, "the thread has no name").help("as in `thread writer:`")),
        }
    }

    fn section(&mut self, section: Section) -> Result<Vec<Operation>, Mistake> {
        self.section = section;
        self.expect_sign(":")?;
        self.skip_lines();
        while !self.is_section_start() {
            self.statement()?;
            self.skip_lines();
        }
        Ok(std::mem::take(&mut self.current))
    }

    fn is_section_start(&self) -> bool {
        let follows =
            |distance: usize| &self.tokens[(self.at + distance).min(self.tokens.len() - 1)].0;
        match self.peek() {
            Token::End => true,
            Token::Word(word) if word == "setup" || word == "check" => {
                *follows(1) == Token::Sign(":")
            }
            Token::Word(word) if word == "thread" || word == "process" => {
                *follows(2) == Token::Sign(":")
            }
            _ => false,
        }
    }

    fn statement(&mut self) -> Result<(), Mistake> {
        let span = self.span();
        let Token::Word(word) = self.next() else {
            return Err(Mistake::new(span, "a statement begins with a name")
                .help("as in `close(fd) == 0` or `n = read(fd, buf, 16)`"));
        };
        match word.as_str() {
            "buffer" => self.buffer(),
            "repeat" => self.repeat(span),
            "assert" => {
                self.begin(span)?;
                let condition = self.condition()?;
                self.expect(condition, Operand::Value(0));
                self.end_of_statement()
            }
            "module" => self.module(span),
            "run" => {
                self.begin(span)?;
                self.call(None, Code::Run)
            }
            _ if self.takes_sign("=") => self.assignment(&word, span),
            _ => {
                self.begin(span)?;
                let code = self.call_code(&word, span)?;
                self.call(None, code)
            }
        }
    }

    /// Takes note of the statement that begins at `span` for reports.
    fn begin(&mut self, span: Span) -> Result<(), Mistake> {
        if self.statements.len() == STATEMENTS_MAX {
            return Err(Mistake::new(
                span,
                format!("a test has at most {STATEMENTS_MAX} statements, repetitions counted"),
            ));
        }
        self.statement = self.statements.len();
        let rest = &self.text[span.start..];
        let line = rest.lines().next().unwrap_or_default();
        let text = match line.split_once(" #") {
            Some((before, _)) if before.matches('"').count() % 2 == 0 => before,
            _ => line,
        };
        self.statements.push(Statement {
            text: text.trim_end().to_owned(),
            line: self.text[..span.start].matches('\n').count() + 1,
            section: self.section,
        });
        Ok(())
    }

    fn buffer(&mut self) -> Result<(), Mistake> {
        let span = self.span();
        let Token::Word(name) = self.next() else {
            return Err(Mistake::new(span, "the buffer has no name").help("as in `buffer b 64`"));
        };
        if self.data.name(&name).is_some() {
            return Err(Mistake::new(span, format!("`{name}` exists already")));
        }
        let size = self.size()?;
        self.data.buffer(&name, size);
        self.end_of_statement()
    }

    pub(super) fn size(&mut self) -> Result<usize, Mistake> {
        let span = self.span();
        match self.next() {
            Token::Number(size) if (1..=BUFFER_MAX).contains(&to_usize(size.cast_unsigned())) => {
                Ok(to_usize(size.cast_unsigned()))
            }
            _ => Err(Mistake::new(
                span,
                format!("a size is a number from 1 to {BUFFER_MAX}"),
            )),
        }
    }

    fn repeat(&mut self, span: Span) -> Result<(), Mistake> {
        let count = self.size()?;
        self.expect_sign("{")?;
        let begin = self.at;
        for _ in 0..count {
            self.at = begin;
            self.skip_lines();
            while !self.takes_sign("}") {
                if *self.peek() == Token::End || self.is_section_start() {
                    return Err(
                        Mistake::new(span, "this repetition is not closed").help("add a `}`")
                    );
                }
                self.statement()?;
                self.skip_lines();
            }
        }
        self.end_of_statement()
    }

    /// `module "name" ["parameters"]`: the module's file travels with the test.
    fn module(&mut self, span: Span) -> Result<(), Mistake> {
        self.begin(span)?;
        let name_span = self.span();
        let name = match self.next() {
            Token::Text(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => {
                return Err(Mistake::new(name_span, "the module's name is missing")
                    .help("as in `module \"brd\" \"rd_nr=1\"` or `module \"./mine.ko\"`"));
            }
        };
        let parameters = match self.peek() {
            Token::Text(bytes) => {
                let bytes = bytes.clone();
                self.at += 1;
                bytes
            }
            _ => Vec::new(),
        };
        self.load_module(&name, &parameters, name_span, 0)?;
        self.end_of_statement()
    }

    /// Loads what a module depends on, and then the module itself.
    fn load_module(
        &mut self,
        name: &str,
        parameters: &[u8],
        span: Span,
        depth: usize,
    ) -> Result<(), Mistake> {
        let content = (self.modules)(name).map_err(|reason| Mistake::new(span, reason))?;
        let loaded = |own: &Self, name: &str| {
            let is_it = |module: &Vec<u8>| module::name(module).is_some_and(|known| known == name);
            own.loaded.iter().any(is_it)
        };
        if depth < DEPENDENCY_DEPTH {
            for needed in module::dependencies(&content) {
                if !loaded(self, &needed) {
                    self.load_module(&needed, &[], span, depth + 1)?;
                }
            }
        }
        self.loaded.push(content.clone());
        let image = self.data.constant(&content);
        let parameters = self.data.constant(&[parameters, &[0]].concat());
        let target = self.data.reserve(8);
        let size = Operand::Value(i64::try_from(content.len()).unwrap_or(i64::MAX));
        self.emit(
            Code::Call(INIT_MODULE),
            target,
            &[Operand::Address(image), size, Operand::Address(parameters)],
        );
        let result = load(target);
        let mut holds = self.compute(Code::Compare(Relation::Equal), result, Operand::Value(0));
        if depth > 0 {
            // What a module depends on may be there already, loaded at boot.
            let exists = Operand::Value(-EEXIST);
            let is_there = self.compute(Code::Compare(Relation::Equal), result, exists);
            holds = self.compute(Code::Or, holds, is_there);
        }
        self.expect(holds, result);
        Ok(())
    }

    /// `name = call(...)` or `name = value`.
    fn assignment(&mut self, name: &str, span: Span) -> Result<(), Mistake> {
        let Some(target) = self.data.variable(name) else {
            return Err(Mistake::new(
                span,
                format!("`{name}` is a buffer and cannot be assigned"),
            ));
        };
        let call_span = self.span();
        if let Token::Word(word) = self.peek().clone()
            && self.tokens[self.at + 1].0 == Token::Sign("(")
        {
            self.at += 1;
            self.begin(span)?;
            let code = if word == "run" {
                Code::Run
            } else {
                self.call_code(&word, call_span)?
            };
            return self.call(Some(target), code);
        }
        let value = self.expression()?;
        self.emit(Code::Store(8), target, &[value]);
        self.end_of_statement()
    }

    fn call_code(&mut self, word: &str, span: Span) -> Result<Code, Mistake> {
        let call = raddle_calls::find(word);
        call.map(|call| Code::Call(call.number)).ok_or_else(|| {
            let help = match most_like(word, raddle_calls::all().map(|call| call.name)) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "statements are system calls by their Linux names, `buffer`, `repeat`, `module`, `run` and `assert`".to_owned(),
            };
            Mistake::new(span, format!("`{word}` is not a system call")).help(help)
        })
    }

    /// The arguments and what is expected of the result.
    fn call(&mut self, target: Option<usize>, code: Code) -> Result<(), Mistake> {
        self.expect_sign("(")?;
        let mut arguments = Vec::new();
        self.skip_lines();
        while !self.takes_sign(")") {
            let span = self.span();
            if arguments.len() == ARGUMENTS_MAX {
                return Err(Mistake::new(
                    span,
                    format!("a call has at most {ARGUMENTS_MAX} arguments"),
                ));
            }
            arguments.push(self.expression()?);
            self.skip_lines();
            if !self.takes_sign(",") && !self.is_sign(")") {
                return Err(Mistake::new(self.span(), "`,` or `)` is missing"));
            }
            self.skip_lines();
        }
        let target = target.unwrap_or_else(|| self.data.reserve(8));
        self.emit(code, target, &arguments);
        self.expectation(load(target))?;
        self.end_of_statement()
    }

    /// `== value`, `< value`, ... or `in {value, value}`.
    fn expectation(&mut self, result: Operand) -> Result<(), Mistake> {
        if let Some(relation) = self.relation() {
            let value = self.expression()?;
            let holds = self.compute(Code::Compare(relation), result, value);
            self.expect(holds, result);
        } else if *self.peek() == Token::Word("in".to_owned()) {
            self.at += 1;
            self.expect_sign("{")?;
            let mut any = Operand::Value(0);
            while !self.takes_sign("}") {
                let value = self.expression()?;
                let holds = self.compute(Code::Compare(Relation::Equal), result, value);
                any = self.compute(Code::Or, any, holds);
                if !self.takes_sign(",") && !self.is_sign("}") {
                    return Err(Mistake::new(self.span(), "`,` or `}` is missing"));
                }
            }
            self.expect(any, result);
        }
        Ok(())
    }

    fn expect(&mut self, condition: Operand, result: Operand) {
        self.emit(Code::Expect, 0, &[condition, result]);
    }

    pub(super) fn emit(&mut self, code: Code, target: usize, operands: &[Operand]) {
        let mut all = [Operand::None; 6];
        all[..operands.len()].copy_from_slice(operands);
        self.current.push(Operation {
            code,
            statement: self.statement,
            target,
            operands: all,
        });
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// The next token; the last one is never passed.
    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    pub(super) fn takes_sign(&mut self, sign: &str) -> bool {
        let is_next = self.is_sign(sign);
        if is_next {
            self.at += 1;
        }
        is_next
    }

    pub(super) fn expect_sign(&mut self, sign: &str) -> Result<(), Mistake> {
        if self.takes_sign(sign) {
            return Ok(());
        }
        let found = describe(self.peek());
        Err(Mistake::new(
            self.span(),
            format!("`{sign}` is missing before {found}"),
        ))
    }

    pub(super) fn skip_lines(&mut self) {
        while *self.peek() == Token::Line {
            self.at += 1;
        }
    }

    fn end_of_statement(&mut self) -> Result<(), Mistake> {
        match self.peek() {
            Token::Line | Token::End | Token::Sign("}") => Ok(()),
            other => {
                let other = describe(other);
                Err(Mistake::new(self.span(), format!("{other} after the end of the statement"))
                    .help("one statement per line; expectations are `== VALUE`, `>= VALUE` or `in {VALUE, ...}`"))
            }
        }
    }
}

fn load(offset: usize) -> Operand {
    Operand::Load {
        offset,
        width: Width::WORD,
    }
}

fn not_a_section(span: Span, found: &str) -> Mistake {
    Mistake::new(span, format!("{found} where a section should begin"))
        .help("sections are `setup:`, `thread NAME:`, `process NAME:` and `check:`")
}
