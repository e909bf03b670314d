//! Values of one function, numbered so that equal numbers are equal values on one path.

use rustc_hash::FxHashMap;

use crate::analyse::program::Name;
use crate::front::ast::E;
use crate::front::lex::{Sym, at, index};

/// A value of the function being walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Value(u32);

/// How a value comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// What the caller gave.
    Param(u32),
    /// A local before its first write.
    Unset(Sym),
    /// The address of a local.
    Local(Sym),
    /// The address of a variable at file level.
    Global(Name),
    /// What an event brought forth: a call's result, or what it stored through its n-th argument.
    Result(u32, u32),
    /// A local after paths were joined.
    Joined(u32, Sym),
    Number(i64),
    /// A shouted name.
    Constant(Name),
    Negative(Value),
    /// The address of a field.
    Field(Value, Name),
    /// What is stored at an address.
    Load(Value),
    Element(Value, Value),
    Binary(u32, Value, Value),
    /// A function of its arguments only: `container_of`.
    Pure(Name, Value),
    Other(E),
}

/// A set of signs: an error is negative, nothing is zero, anything else is positive.
pub(crate) type Signs = u8;

pub(crate) const NEGATIVE: Signs = 1;
pub(crate) const ZERO: Signs = 2;
pub(crate) const POSITIVE: Signs = 4;
pub(crate) const ANY: Signs = 7;

/// All values of one function.
#[derive(Debug, Default)]
pub(crate) struct Values {
    nodes: Vec<Node>,
    ids: FxHashMap<Node, Value>,
}

impl Values {
    pub(crate) fn add(&mut self, node: Node) -> Value {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let id = Value(index(self.nodes.len()));
        self.nodes.push(node);
        self.ids.insert(node, id);
        id
    }

    pub(crate) fn node(&self, value: Value) -> Node {
        self.nodes[at(value.0)]
    }

    /// Whether both are known to differ: two numbers, or two constants of different names.
    pub(crate) fn differ(&self, one: Value, other: Value) -> bool {
        one != other
            && matches!(
                (self.node(one), self.node(other)),
                (Node::Number(_), Node::Number(_)) | (Node::Constant(_), Node::Constant(_))
            )
    }

    /// What an address is reached from: the object, then what holds a pointer to it, and so on.
    pub(crate) fn bases(&self, value: Value) -> impl Iterator<Item = Value> + '_ {
        let mut here = Some(value);
        std::iter::from_fn(move || {
            let value = here?;
            here = match self.node(value) {
                Node::Field(base, _)
                | Node::Load(base)
                | Node::Element(base, _)
                | Node::Pure(_, base) => Some(base),
                _ => None,
            };
            Some(value)
        })
    }
}
