//! What the numbers stand for that an editor asks variables by. They are valid until the run moves.

use raddle_symbols::dwarf::Shape;
use raddle_world::{ContextId, Inspect};
use serde_json::{Value, json};

use crate::scene::{Scene, StackFrame, Variable};
use crate::value::{CHILDREN_MAX, Typed};

/// A scope of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Arguments,
    Locals,
    Globals,
    Registers,
}

impl Scope {
    pub(super) const ALL: [(Self, &str); 4] = [
        (Self::Arguments, "Arguments"),
        (Self::Locals, "Locals"),
        (Self::Globals, "Globals"),
        (Self::Registers, "Registers"),
    ];
}

/// Something with variables in it.
#[derive(Debug, Clone)]
enum Holder {
    Scope(usize, Scope),
    Value(ContextId, Box<Typed>),
}

/// Frames and values that the editor knows by number.
#[derive(Debug, Default)]
pub(super) struct References {
    frames: Vec<(ContextId, StackFrame)>,
    holders: Vec<Holder>,
}

impl References {
    /// The run has moved: everything may be another.
    pub(super) fn forget(&mut self) {
        self.frames.clear();
        self.holders.clear();
    }

    pub(super) fn add_frame(&mut self, who: ContextId, frame: &StackFrame) -> usize {
        self.frames.push((who, frame.clone()));
        self.frames.len()
    }

    pub(super) fn frame(&self, number: u64) -> Option<&(ContextId, StackFrame)> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.frames.get(index)
    }

    fn add(&mut self, holder: Holder) -> usize {
        self.holders.push(holder);
        self.holders.len()
    }

    /// The scopes of a frame.
    pub(super) fn scopes(&mut self, frame: u64) -> Option<Value> {
        self.frame(frame)?;
        let frame = usize::try_from(frame).ok()?;
        let scopes: Vec<Value> = Scope::ALL
            .iter()
            .map(|(scope, name)| {
                let reference = self.add(Holder::Scope(frame, *scope));
                let is_dear = matches!(scope, Scope::Globals | Scope::Registers);
                json!({"name": name, "variablesReference": reference, "expensive": is_dear})
            })
            .collect();
        Some(json!({ "scopes": scopes }))
    }

    /// Whose variables a reference stands for.
    pub(super) fn thread(&self, reference: u64) -> Option<ContextId> {
        match self.holder(reference)? {
            Holder::Scope(frame, _) => {
                let index = frame.checked_sub(1)?;
                self.frames.get(index).map(|(who, _)| *who)
            }
            Holder::Value(who, _) => Some(*who),
        }
    }

    fn holder(&self, reference: u64) -> Option<&Holder> {
        let index = usize::try_from(reference).ok()?.checked_sub(1)?;
        self.holders.get(index)
    }

    /// The variables that a reference stands for.
    pub(super) fn variables<W: Inspect>(
        &mut self,
        scene: &mut Scene<'_, W>,
        reference: u64,
    ) -> Option<Value> {
        let listed = match self.holder(reference)?.clone() {
            Holder::Scope(frame, scope) => {
                let (_, frame) = self.frames.get(frame.checked_sub(1)?)?.clone();
                if scope == Scope::Registers {
                    return Some(json!({ "variables": registers::<W>(&frame) }));
                }
                in_scope(scene, &frame, scope)
            }
            Holder::Value(_, typed) => inside(scene, &typed),
        };
        let who = scene.who;
        let listed: Vec<Value> = listed
            .into_iter()
            .take(usize::try_from(CHILDREN_MAX).unwrap_or(usize::MAX))
            .map(|(name, typed)| self.describe(scene, who, &name, &typed))
            .collect();
        Some(json!({ "variables": listed }))
    }

    /// A variable by its name among those that a reference stands for.
    pub(super) fn child<W: Inspect>(
        &self,
        scene: &mut Scene<'_, W>,
        reference: u64,
        name: &str,
    ) -> Option<Typed> {
        let listed = match self.holder(reference)? {
            Holder::Scope(frame, scope) => {
                let (_, frame) = self.frames.get(frame.checked_sub(1)?)?;
                in_scope(scene, frame, *scope)
            }
            Holder::Value(_, typed) => inside(scene, typed),
        };
        let found = listed.into_iter().find(|(known, _)| known == name);
        found.map(|(_, typed)| typed)
    }

    /// A variable as editors want it.
    fn describe<W: Inspect>(
        &mut self,
        scene: &mut Scene<'_, W>,
        who: ContextId,
        name: &str,
        typed: &Typed,
    ) -> Value {
        json!({
            "name": name,
            "value": typed.show(scene),
            "type": typed.type_name(),
            "variablesReference": self.reference(who, typed),
        })
    }

    /// A number for what a value is made of; zero if it is not made of anything.
    pub(super) fn reference(&mut self, who: ContextId, typed: &Typed) -> usize {
        let has_parts = match typed.shape() {
            Shape::Structure { parts } => !parts.is_empty(),
            Shape::Array { .. } => true,
            Shape::Pointer { target } => target.is_some(),
            _ => false,
        };
        if has_parts {
            self.add(Holder::Value(who, Box::new(typed.clone())))
        } else {
            0
        }
    }
}

fn in_scope<W: Inspect>(
    scene: &mut Scene<'_, W>,
    frame: &StackFrame,
    scope: Scope,
) -> Vec<(String, Typed)> {
    let named = |variable: Variable| (variable.name, variable.value);
    match scope {
        Scope::Globals => scene.globals(frame).into_iter().map(named).collect(),
        _ => {
            let locals = scene.locals(frame).into_iter();
            let wanted = locals.filter(|local| local.is_parameter == (scope == Scope::Arguments));
            wanted.map(named).collect()
        }
    }
}

fn inside<W: Inspect>(scene: &mut Scene<'_, W>, typed: &Typed) -> Vec<(String, Typed)> {
    let Some(target) = typed.pointee(scene, 0) else {
        return typed.children(CHILDREN_MAX);
    };
    // What a pointer to a structure points to is shown as if it were its own.
    match target.shape() {
        Shape::Structure { .. } => target.children(CHILDREN_MAX),
        _ => vec![(String::from("*"), target)],
    }
}

fn registers<W: Inspect>(frame: &StackFrame) -> Vec<Value> {
    let names = [
        "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15", "rip",
    ];
    names
        .into_iter()
        .filter_map(|name| Some((name, Scene::<W>::register(frame, name)?)))
        .map(|(name, value)| {
            json!({"name": name, "value": format!("{value:#x}"), "variablesReference": 0})
        })
        .collect()
}
