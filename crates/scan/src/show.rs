//! Expressions, objects and locks as text for the user.

use crate::analyse::keys::{Key, KeyParts, View};
use crate::analyse::program::Program;
use crate::front::ast::{E, Expr};

/// Longest text before it is cut.
const LENGTH_MAX: usize = 100;

/// The expression in C, shortened if it is long.
pub(crate) fn expression(view: &View<'_>, id: E) -> String {
    let mut out = String::new();
    write(view, id, &mut out, 0);
    if out.len() > LENGTH_MAX {
        let mut cut = LENGTH_MAX;
        while !out.is_char_boundary(cut) {
            cut -= 1;
        }
        out.truncate(cut);
        out.push_str("...");
    }
    out
}

fn operator(code: u32) -> String {
    code.to_le_bytes()
        .iter()
        .filter(|byte| **byte != 0)
        .map(|byte| char::from(*byte))
        .collect()
}

fn list(view: &View<'_>, parts: &[E], out: &mut String, depth: u32) {
    for (position, part) in parts.iter().enumerate() {
        if position > 0 {
            out.push_str(", ");
        }
        write(view, *part, out, depth + 1);
    }
}

fn write(view: &View<'_>, id: E, out: &mut String, depth: u32) {
    if depth > 12 || out.len() > LENGTH_MAX {
        out.push_str("..");
        return;
    }
    let name = |sym| view.program.names.text(view.name(sym)).into_owned();
    match view.expr(id) {
        Expr::None | Expr::Other => out.push_str(".."),
        Expr::Name(sym) | Expr::Number(sym) | Expr::Text(sym) => out.push_str(&name(sym)),
        Expr::Member { base, field, arrow } => {
            write(view, base, out, depth + 1);
            out.push_str(if arrow { "->" } else { "." });
            out.push_str(&name(field));
        }
        Expr::Index { base, index } => {
            write(view, base, out, depth + 1);
            out.push('[');
            write(view, index, out, depth + 1);
            out.push(']');
        }
        Expr::Unary { op, of } => {
            out.push_str(&operator(op));
            write(view, of, out, depth + 1);
        }
        Expr::Step { of } => {
            write(view, of, out, depth + 1);
            out.push_str("++");
        }
        Expr::Binary { op, left, right }
        | Expr::Assign {
            op,
            to: left,
            from: right,
        } => {
            write(view, left, out, depth + 1);
            out.push(' ');
            out.push_str(&operator(op));
            out.push(' ');
            write(view, right, out, depth + 1);
        }
        Expr::Call { callee, args } => {
            write(view, callee, out, depth + 1);
            out.push('(');
            list(view, view.unit.exprs.parts(args), out, depth);
            out.push(')');
        }
        Expr::Cast { of, .. } => write(view, of, out, depth + 1),
        Expr::Choice { parts } => {
            let parts = view.unit.exprs.parts(parts);
            write(view, parts[0], out, depth + 1);
            out.push_str(" ? ");
            write(view, parts[1], out, depth + 1);
            out.push_str(" : ");
            write(view, parts[2], out, depth + 1);
        }
        Expr::Comma { parts } => list(view, view.unit.exprs.parts(parts), out, depth),
        Expr::Init { .. } => out.push_str("{..}"),
        Expr::Field { value, .. } => write(view, value, out, depth + 1),
        Expr::Type { ty } => {
            let ty = view.unit.ty(ty);
            out.push_str(&name(ty.base));
        }
        Expr::Block(_) => out.push_str("({..})"),
    }
}

/// The object behind a key: `struct inode.i_state`, `jiffies_lock`.
pub(crate) fn object(program: &Program<'_>, key: Key) -> String {
    match key.parts() {
        KeyParts::Unknown => "unknown".to_owned(),
        KeyParts::Field(def, field) => {
            let tag = program.names.text(program.types.def_name(def));
            let tag = if tag.is_empty() { "struct".into() } else { tag };
            format!("{tag}.{}", program.names.text(field))
        }
        KeyParts::Global(name, _) | KeyParts::Local(_, name) => {
            program.names.text(name).into_owned()
        }
        KeyParts::Bit(_, bit) => format!("bit {}", program.names.text(bit)),
        KeyParts::Vague(field, _) => format!("(unknown).{}", program.names.text(field)),
        KeyParts::Class(family) => u16::try_from(family).map_or_else(
            |_| String::new(),
            |family| program.table.family(family).name.clone(),
        ),
    }
}
