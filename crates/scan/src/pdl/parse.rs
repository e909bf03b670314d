//! The parser of the pattern language.

use raddle_report::Severity;

use super::ast::{
    Arg, Args, Callee, Compare, Condition, Fun, Name, PREDICATES, Pattern, Predicate, Stmt,
    StmtKind, Sub, Test,
};
use super::error::PatternError;
use super::token::{Kind, Token, tokens};

type Result<T> = std::result::Result<T, PatternError>;

/// Nesting at which a pattern is refused.
const DEPTH_MAX: u32 = 64;

/// Reads all patterns of a file. A file without `bug` header is one pattern, named after the file.
pub(crate) fn parse(file: &str, source: &str) -> Result<Vec<Pattern>> {
    parse_counted(file, source).0
}

/// As [`parse`], with the number of tokens consumed.
pub(crate) fn parse_counted(file: &str, source: &str) -> (Result<Vec<Pattern>>, u64) {
    let tokens = match tokens(file, source) {
        Ok(tokens) => tokens,
        Err(error) => return (Err(error), 0),
    };
    let mut parser = Parser {
        file,
        source,
        tokens,
        at: 0,
        depth: 0,
        pattern: empty(String::new()),
        steps: 0,
    };
    let patterns = all_patterns(&mut parser);
    (patterns, parser.steps)
}

fn all_patterns(parser: &mut Parser<'_>) -> Result<Vec<Pattern>> {
    let mut patterns = Vec::new();
    if parser.is_word("pattern") {
        let file = parser.file;
        let stem = file.rsplit('/').next().unwrap_or(file);
        let name = stem.split('.').next().unwrap_or(stem).to_owned();
        parser.pattern = empty(name);
        while parser.here().kind != Kind::End {
            parser.item()?;
        }
        patterns.push(parser.finish(0)?);
        return Ok(patterns);
    }
    while parser.here().kind != Kind::End {
        let mut pattern = parser.bug()?;
        if let Some(first) = patterns
            .iter()
            .find(|first: &&Pattern| first.name == pattern.name)
        {
            inherit(&mut pattern, first);
        }
        patterns.push(pattern);
    }
    Ok(patterns)
}

/// A further description of a bug says only what is different.
fn inherit(pattern: &mut Pattern, first: &Pattern) {
    for (own, of_first) in [
        (&mut pattern.why, &first.why),
        (&mut pattern.about, &first.about),
    ] {
        if own.is_empty() {
            own.clone_from(of_first);
        }
    }
}

/// Whether some condition speaks of the locks of sub-patterns.
fn speaks_of_locks(conditions: &[Condition]) -> bool {
    conditions.iter().any(|condition| match condition {
        Condition::Not(inner) => speaks_of_locks(std::slice::from_ref(inner)),
        Condition::And(parts) | Condition::Or(parts) => speaks_of_locks(parts),
        Condition::Test(test) => matches!(
            test.predicate,
            Predicate::DisjointLocks | Predicate::NoGate | Predicate::AnyLocks
        ),
    })
}

fn empty(name: String) -> Pattern {
    Pattern {
        title: name.clone(),
        name,
        severity: Severity::Warning,
        why: String::new(),
        about: String::new(),
        subs: Vec::new(),
        conditions: Vec::new(),
        variables: Vec::new(),
        labels: Vec::new(),
        weight: 0,
        object: None,
        disjoint_by_default: true,
    }
}

struct Parser<'s> {
    file: &'s str,
    source: &'s str,
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    pattern: Pattern,
    /// Tokens consumed, going back included: a measure of work.
    steps: u64,
}

impl Parser<'_> {
    fn here(&self) -> &Token {
        &self.tokens[self.at]
    }

    fn bump(&mut self) -> Token {
        let token = self.here().clone();
        self.steps += 1;
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn error_at<T>(&self, span: (usize, usize), message: impl Into<String>) -> Result<T> {
        Err(PatternError::new(
            self.file,
            self.source,
            span,
            message.into(),
        ))
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        self.error_at(self.here().span, message)
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(&self.here().kind, Kind::Symbol(found) if *found == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.here().kind, Kind::Word(found) if found == word)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.bump();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.eat(symbol) {
            Ok(())
        } else {
            self.error(format!("expected `{symbol}`"))
        }
    }

    fn word(&mut self, what: &str) -> Result<String> {
        match self.here().kind.clone() {
            Kind::Word(word) => {
                self.bump();
                Ok(word)
            }
            _ => self.error(format!("expected {what}")),
        }
    }

    fn text(&mut self) -> Result<String> {
        match self.here().kind.clone() {
            Kind::Text(text) => {
                self.bump();
                Ok(text)
            }
            _ => self.error("expected a text in quotes"),
        }
    }

    fn bug(&mut self) -> Result<Pattern> {
        if !self.eat_word("bug") {
            return self.error("expected `bug NAME {` or `pattern 1 {`");
        }
        let span = self.here().span;
        let name = self.word("the name of the bug pattern")?;
        self.pattern = empty(name);
        self.expect("{")?;
        while !self.eat("}") {
            if self.here().kind == Kind::End {
                return self.error_at(span, "this pattern is never closed; end it with `}`");
            }
            self.item()?;
        }
        self.finish(span.0)
    }

    fn finish(&mut self, start: usize) -> Result<Pattern> {
        let mut pattern = std::mem::replace(&mut self.pattern, empty(String::new()));
        pattern.disjoint_by_default = !speaks_of_locks(&pattern.conditions);
        if pattern.subs.is_empty() {
            return self.error_at(
                (start, start + 1),
                format!(
                    "`{}` has no sub-pattern; add `pattern 1 {{ fun $f {{ .. }} }}`",
                    pattern.name
                ),
            );
        }
        Ok(pattern)
    }

    fn item(&mut self) -> Result<()> {
        let span = self.here().span;
        let word = self.word(
            "`pattern`, `where`, `title`, `severity`, `why`, `about`, `weight` or `object`",
        )?;
        match word.as_str() {
            "pattern" => {
                let sub = self.sub()?;
                self.pattern.subs.push(sub);
                return Ok(());
            }
            "where" => loop {
                let condition = self.condition()?;
                self.pattern.conditions.push(condition);
                if !self.eat(",") {
                    break;
                }
            },
            "title" => self.pattern.title = self.text()?,
            "why" => self.pattern.why = self.text()?,
            "about" => self.pattern.about = self.text()?,
            "severity" => {
                let span = self.here().span;
                self.pattern.severity = match self.word("a severity")?.as_str() {
                    "error" => Severity::Error,
                    "warning" => Severity::Warning,
                    "note" => Severity::Note,
                    other => {
                        return self.error_at(
                            span,
                            format!("`{other}` is no severity; use error, warning or note"),
                        );
                    }
                };
            }
            "weight" => {
                let span = self.here().span;
                let text = match self.here().kind.clone() {
                    Kind::Text(_) => self.text()?,
                    _ => self.word("a number")?,
                };
                let Ok(weight) = text.parse() else {
                    return self.error_at(span, "expected a whole number, in quotes if negative");
                };
                self.pattern.weight = weight;
            }
            "object" => self.pattern.object = Some(self.known_variable()?),
            other => {
                return self.error_at(
                    span,
                    format!("`{other}` is not known here; use pattern, where, title, severity, why, about, weight or object"),
                );
            }
        }
        self.expect(";")
    }

    fn variable(&mut self, name: &str) -> usize {
        let names = &mut self.pattern.variables;
        match names.iter().position(|known| known == name) {
            Some(number) => number,
            None => {
                names.push(name.to_owned());
                names.len() - 1
            }
        }
    }

    /// A variable that some statement binds.
    fn known_variable(&mut self) -> Result<usize> {
        match self.here().kind.clone() {
            Kind::Variable(name) => {
                let known = self
                    .pattern
                    .variables
                    .iter()
                    .position(|known| *known == name);
                let Some(number) = known else {
                    return self.error(format!("`${name}` is not bound by any statement above"));
                };
                self.bump();
                Ok(number)
            }
            _ => self.error("expected a variable such as `$w`"),
        }
    }

    fn sub(&mut self) -> Result<Sub> {
        match self.here().kind.clone() {
            Kind::Word(_) | Kind::Text(_) => {
                self.bump();
            }
            _ => return self.error("expected the number or name of the sub-pattern"),
        }
        self.expect("{")?;
        let mut functions = Vec::new();
        while !self.eat("}") {
            if !self.eat_word("fun") {
                return self.error("expected `fun NAME {` or `}`");
            }
            let name = self.name()?;
            self.expect("{")?;
            let body = self.stmts()?;
            functions.push(Fun { name, body });
        }
        if functions.is_empty() {
            return self.error("a sub-pattern needs at least one `fun`");
        }
        Ok(Sub { functions })
    }

    /// `constant`, `"constant"`, `$variable` or `_`.
    fn name(&mut self) -> Result<Name> {
        let kind = self.here().kind.clone();
        let name = match kind {
            Kind::Variable(name) => Name::Variable(self.variable(&name)),
            Kind::Word(word) if word == "_" => Name::Any,
            Kind::Word(text) | Kind::Text(text) => Name::Constant(text),
            _ => return self.error("expected a name, a text in quotes, a `$variable` or `_`"),
        };
        self.bump();
        Ok(name)
    }

    fn optional_name(&mut self) -> Result<Name> {
        match self.here().kind {
            Kind::Variable(_) | Kind::Word(_) | Kind::Text(_) => self.name(),
            _ => Ok(Name::Any),
        }
    }

    /// Statements up to the closing brace.
    fn stmts(&mut self) -> Result<Vec<Stmt>> {
        if self.depth >= DEPTH_MAX {
            return self.error("this pattern is nested too deeply");
        }
        self.depth += 1;
        let mut stmts = Vec::new();
        while !self.eat("}") {
            if self.here().kind == Kind::End {
                return self.error("expected `}`");
            }
            stmts.push(self.stmt()?);
        }
        self.depth -= 1;
        Ok(stmts)
    }

    fn label(&mut self) -> Option<usize> {
        let Kind::Word(word) = self.here().kind.clone() else {
            return None;
        };
        let next = &self.tokens[(self.at + 1).min(self.tokens.len() - 1)];
        if next.kind != Kind::Symbol(":") {
            return None;
        }
        self.bump();
        self.bump();
        self.pattern.labels.push(word);
        Some(self.pattern.labels.len() - 1)
    }

    fn stmt(&mut self) -> Result<Stmt> {
        if self.eat("\\{") {
            let stmts = self.stmts()?;
            self.eat(";");
            return Ok(Stmt {
                label: None,
                kind: StmtKind::Exclude(stmts),
            });
        }
        let label = self.label();
        if let Kind::Variable(name) = self.here().kind.clone() {
            // `$p = call ..;`
            let result = Name::Variable(self.variable(&name));
            self.bump();
            self.expect("=")?;
            if !self.eat_word("call") {
                return self.error("only the result of a `call` can be bound with `=`");
            }
            let kind = self.call(result)?;
            self.expect(";")?;
            return Ok(Stmt { label, kind });
        }
        let span = self.here().span;
        let word = self.word("a statement")?;
        let kind = match word.as_str() {
            "if" | "loop" | "test" => return self.structured(label, &word),
            "break" => StmtKind::Break,
            "continue" => StmtKind::Continue,
            "leave" => StmtKind::Leave,
            "return" => StmtKind::Return(self.optional_name()?),
            "lock" => {
                let lock = self.name()?;
                let holding = if self.eat_word("holding") {
                    Some(self.name()?)
                } else {
                    None
                };
                StmtKind::Lock { lock, holding }
            }
            "trylock" => StmtKind::TryLock(self.name()?),
            "unlock" => StmtKind::Unlock(self.name()?),
            "read" => StmtKind::Read(self.name()?),
            "write" => StmtKind::Write(self.name()?),
            "update" => StmtKind::Update(self.name()?),
            "access" => StmtKind::Access(self.name()?),
            "call" => self.call(Name::Any)?,
            other => {
                return self.error_at(
                    span,
                    format!("`{other}` is no statement; use if, test, loop, break, leave, continue, return, lock, trylock, unlock, read, write, update, access, call or `\\{{ .. }}`"),
                );
            }
        };
        self.expect(";")?;
        Ok(Stmt { label, kind })
    }

    fn structured(&mut self, label: Option<usize>, word: &str) -> Result<Stmt> {
        let cond = self.optional_name()?;
        self.expect("{")?;
        let then = self.stmts()?;
        let kind = if word == "loop" {
            StmtKind::Loop { cond, body: then }
        } else {
            let other = if self.eat_word("else") {
                self.expect("{")?;
                Some(self.stmts()?)
            } else {
                None
            };
            StmtKind::If {
                cond,
                then,
                other,
                or_loop: word == "test",
            }
        };
        self.eat(";");
        Ok(Stmt { label, kind })
    }

    /// After the word `call`.
    fn call(&mut self, result: Name) -> Result<StmtKind> {
        let callee = match self.here().kind.clone() {
            Kind::Class(name) => Callee::Class(name),
            Kind::Variable(name) => Callee::Variable(self.variable(&name)),
            Kind::Word(text) | Kind::Text(text) => Callee::Named(vec![text]),
            _ => return self.error("expected the name of a function, `@class` or `$variable`"),
        };
        self.bump();
        let callee = match callee {
            Callee::Named(mut names) => {
                while self.eat("|") {
                    names.push(match self.here().kind.clone() {
                        Kind::Text(text) | Kind::Word(text) => text,
                        _ => return self.error("expected another name after `|`"),
                    });
                    self.bump();
                }
                Callee::Named(names)
            }
            other => other,
        };
        let args = if let Kind::Variable(name) = self.here().kind.clone() {
            self.bump();
            Args::All(self.variable(&name))
        } else if self.eat("(") {
            let mut each = Vec::new();
            while !self.eat(")") {
                each.push(self.name()?);
                if !self.eat(",") && !self.is_symbol(")") {
                    return self.error("expected `,` or `)`");
                }
            }
            Args::Each(each)
        } else {
            Args::Any
        };
        Ok(StmtKind::Call {
            callee,
            args,
            result,
        })
    }

    fn condition(&mut self) -> Result<Condition> {
        let mut parts = vec![self.conjunction()?];
        while self.eat_word("or") {
            parts.push(self.conjunction()?);
        }
        Ok(one_or(parts, Condition::Or))
    }

    fn conjunction(&mut self) -> Result<Condition> {
        let mut parts = vec![self.negation()?];
        while self.eat_word("and") {
            parts.push(self.negation()?);
        }
        Ok(one_or(parts, Condition::And))
    }

    fn negation(&mut self) -> Result<Condition> {
        if self.depth >= DEPTH_MAX {
            return self.error("this condition is nested too deeply");
        }
        self.depth += 1;
        let condition = if self.eat_word("not") {
            Condition::Not(Box::new(self.negation()?))
        } else if self.eat("(") {
            let inner = self.condition()?;
            self.expect(")")?;
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn test(&mut self) -> Result<Condition> {
        let span = self.here().span;
        let name = self.word("a condition such as `shared($w)`")?;
        let Some((predicate, _, count, _)) =
            PREDICATES.iter().find(|(_, known, _, _)| *known == name)
        else {
            let near = nearest(&name, PREDICATES.iter().map(|(_, known, _, _)| *known));
            return self.error_at(
                span,
                format!("there is no condition called `{name}`; did you mean `{near}`?"),
            );
        };
        self.expect("(")?;
        let mut args = Vec::new();
        while !self.eat(")") {
            args.push(self.arg()?);
            if !self.eat(",") && !self.is_symbol(")") {
                return self.error("expected `,` or `)`");
            }
        }
        if args.len() != *count {
            let plural = if *count == 1 { "" } else { "s" };
            return self.error_at(
                span,
                format!(
                    "`{name}` takes {count} argument{plural}, not {}",
                    args.len()
                ),
            );
        }
        let compare = self.comparison()?;
        Ok(Condition::Test(Test {
            predicate: *predicate,
            args,
            compare,
        }))
    }

    fn comparison(&mut self) -> Result<Option<(Compare, String)>> {
        const OPERATORS: &[(&str, Compare)] = &[
            ("==", Compare::Equal),
            ("!=", Compare::Different),
            (">=", Compare::GreaterEqual),
            ("<=", Compare::LessEqual),
            ("<", Compare::Less),
            (">", Compare::Greater),
        ];
        let Some((_, compare)) = OPERATORS.iter().find(|(symbol, _)| self.is_symbol(symbol)) else {
            return Ok(None);
        };
        self.bump();
        let value = match self.here().kind.clone() {
            Kind::Word(text) | Kind::Text(text) => text,
            _ => return self.error("expected a name, number or text to compare with"),
        };
        self.bump();
        Ok(Some((*compare, value)))
    }

    fn arg(&mut self) -> Result<Arg> {
        match self.here().kind.clone() {
            Kind::Variable(_) => {
                let number = self.known_variable()?;
                if !self.eat("[") {
                    return Ok(Arg::Variable(number));
                }
                let span = self.here().span;
                let Ok(element) = self.word("the number of an argument")?.parse() else {
                    return self
                        .error_at(span, "expected the number of an argument, counted from 0");
                };
                self.expect("]")?;
                Ok(Arg::Element(number, element))
            }
            Kind::Class(name) => {
                self.bump();
                Ok(Arg::Class(name))
            }
            Kind::Text(text) => {
                self.bump();
                Ok(Arg::Text(text))
            }
            Kind::Word(word) => {
                let known = self.pattern.labels.iter().position(|label| *label == word);
                let Some(label) = known else {
                    return self.error(format!("no statement above has the label `{word}:`"));
                };
                self.bump();
                Ok(Arg::Label(label))
            }
            _ => self.error("expected a label, a variable, `@class` or a text"),
        }
    }
}

fn one_or(mut parts: Vec<Condition>, several: fn(Vec<Condition>) -> Condition) -> Condition {
    if parts.len() == 1 {
        parts.remove(0)
    } else {
        several(parts)
    }
}

/// The known name with the fewest differing letters.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> &'n str {
    known
        .min_by_key(|other| distance(name, other))
        .unwrap_or("")
}

fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, a) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = line + 1;
        for (column, b) in other.iter().enumerate() {
            let cost = corner + usize::from(a != *b);
            corner = row[column + 1];
            row[column + 1] = cost.min(row[column] + 1).min(row[column + 1] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIG_5: &str = r"
        pattern 1 { fun $f1 { 3a: if $cond { lock $l; \{if $cond {}} unlock $l; } } }
        pattern 2 { fun $f2 { 3b: write $w; } }
        where disjoint_locks(3a, 3b) and shared($w), alias($cond, $w);
    ";

    #[test]
    fn figure_5_of_the_paper_is_a_pattern() {
        let patterns = parse("dir/tas.pdl", FIG_5).unwrap();
        assert_eq!(patterns[0].name, "tas");
        assert_eq!(patterns[0].subs.len(), 2);
        assert_eq!(patterns[0].conditions.len(), 2);
        assert_eq!(patterns[0].variables, ["f1", "cond", "l", "f2", "w"]);
    }

    #[test]
    fn figures_9_11_and_13_are_patterns() {
        for text in [
            r#"pattern 1 { fun $f1 { call "kthread_run" $a1; write $a2; } } pattern 2 { fun $f2 { read $a3; } }"#,
            r"pattern 1 { fun $f1 { call $atomic1 $a1; if $a2 { } } } pattern 2 { fun $f2 { call $atomic2 $a3; } }",
            r#"pattern 1 { fun $f1 { call "kthread_run" $a1; call "kthread_stop" $a2; } } pattern 2 { fun $f2 { loop $c1 { if $c2 { break; } } } }"#,
        ] {
            assert_eq!(parse("x", text).unwrap()[0].subs.len(), 2);
        }
    }

    #[test]
    fn errors_point_at_the_place() {
        let error = parse("p.pdl", "pattern 1 {\n  fun $f { wirte $x; }\n}").unwrap_err();
        assert_eq!((error.line, error.column, error.length), (2, 12, 5));
        let shown = error.to_string();
        assert!(shown.contains("2 |   fun $f { wirte $x; }"), "{shown}");
        assert!(shown.ends_with("|            ^^^^^"), "{shown}");
    }

    #[test]
    fn unknown_conditions_get_a_suggestion() {
        let error = parse("p", "pattern 1 { fun $f { write $x; } } where shred($x);").unwrap_err();
        assert!(error.message.contains("`shared`"), "{}", error.message);
    }

    #[test]
    fn unbound_variables_and_labels_are_refused() {
        let text = "pattern 1 { fun $f { write $x; } } where shared($y);";
        assert!(parse("p", text).unwrap_err().message.contains("$y"));
        let text = "pattern 1 { fun $f { write $x; } } where before(a, b);";
        assert!(parse("p", text).unwrap_err().message.contains("`a:`"));
    }
}
