//! Statements and conditions of a pattern as they are written in a pattern file.

use super::ast::{
    Arg, Args, Callee, Compare, Condition, Name, PREDICATES, Pattern, Stmt, StmtKind, Test,
};

/// The condition in the words of its pattern.
pub(crate) fn condition(pattern: &Pattern, condition: &Condition) -> String {
    let list = |parts: &[Condition], word: &str| {
        let parts: Vec<String> = parts
            .iter()
            .map(|part| self::condition(pattern, part))
            .collect();
        format!("({})", parts.join(word))
    };
    match condition {
        Condition::Not(inner) => format!("not {}", self::condition(pattern, inner)),
        Condition::And(parts) => list(parts, " and "),
        Condition::Or(parts) => list(parts, " or "),
        Condition::Test(asked) => {
            let text = test(pattern, asked);
            match &asked.compare {
                Some((compare, value)) => format!("{text} {} {value}", sign(*compare)),
                None => text,
            }
        }
    }
}

/// A test without what it is compared with.
pub(crate) fn test(pattern: &Pattern, test: &Test) -> String {
    let name = PREDICATES
        .iter()
        .find(|(predicate, ..)| *predicate == test.predicate)
        .map_or("?", |(_, name, ..)| *name);
    let args: Vec<String> = test.args.iter().map(|arg| argument(pattern, arg)).collect();
    format!("{name}({})", args.join(", "))
}

fn argument(pattern: &Pattern, arg: &Arg) -> String {
    match arg {
        Arg::Label(label) => pattern.labels[*label].clone(),
        Arg::Variable(number) => format!("${}", pattern.variables[*number]),
        Arg::Element(number, element) => format!("${}[{element}]", pattern.variables[*number]),
        Arg::Class(class) => format!("@{class}"),
        Arg::Text(text) => format!("\"{text}\""),
    }
}

fn sign(compare: Compare) -> &'static str {
    match compare {
        Compare::Equal => "==",
        Compare::Different => "!=",
        Compare::Less => "<",
        Compare::LessEqual => "<=",
        Compare::Greater => ">",
        Compare::GreaterEqual => ">=",
    }
}

/// A statement, without what is inside it.
pub(crate) fn statement(pattern: &Pattern, stmt: &Stmt) -> String {
    let name = |name: &Name| match name {
        Name::Constant(text) => text.clone(),
        Name::Variable(number) => format!("${}", pattern.variables[*number]),
        Name::Any => "_".to_owned(),
    };
    let text = match &stmt.kind {
        StmtKind::If { cond, .. } => format!("if {}", name(cond)),
        StmtKind::Loop { cond, .. } => format!("loop {}", name(cond)),
        StmtKind::Break => "break".to_owned(),
        StmtKind::Continue => "continue".to_owned(),
        StmtKind::Leave => "leave".to_owned(),
        StmtKind::Return(value) => format!("return {}", name(value)),
        StmtKind::Lock { lock, .. } => format!("lock {}", name(lock)),
        StmtKind::TryLock(lock) => format!("trylock {}", name(lock)),
        StmtKind::Unlock(lock) => format!("unlock {}", name(lock)),
        StmtKind::Read(object) => format!("read {}", name(object)),
        StmtKind::Write(object) => format!("write {}", name(object)),
        StmtKind::Update(object) => format!("update {}", name(object)),
        StmtKind::Access(object) => format!("access {}", name(object)),
        StmtKind::Call { callee, args, .. } => {
            let callee = match callee {
                Callee::Named(names) => names.join(" | "),
                Callee::Class(class) => format!("@{class}"),
                Callee::Variable(number) => format!("${}", pattern.variables[*number]),
            };
            let args = match args {
                Args::Any => String::new(),
                Args::All(number) => format!(" ${}", pattern.variables[*number]),
                Args::Each(names) => {
                    let names: Vec<String> = names.iter().map(name).collect();
                    format!("({})", names.join(", "))
                }
            };
            format!("call {callee}{args}")
        }
        StmtKind::Exclude(_) => "without what is excluded".to_owned(),
    };
    match stmt.label {
        Some(label) => format!("{}: {text}", pattern.labels[label]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_printed_as_they_are_written() {
        let text = r#"bug b {
  title "t"; severity note; why "w"; about "a";
  pattern 1 { fun $f { a: read $x; } }
  where (guarded($x) >= 70 or not atomic(a)), by_call(a, @list_walk);
}"#;
        let patterns = crate::pdl::parse("b.pdl", text).unwrap();
        let pattern = &patterns[0];
        let shown: Vec<String> = pattern
            .conditions
            .iter()
            .map(|part| condition(pattern, part))
            .collect();
        assert_eq!(
            shown,
            [
                "(guarded($x) >= 70 or not atomic(a))",
                "by_call(a, @list_walk)"
            ]
        );
        let stmt = &pattern.subs[0].functions[0].body[0];
        assert_eq!(statement(pattern, stmt), "a: read $x");
    }
}
