//! The idiom tables, compiled for look-up by name.
//!
//! Shipped tables are data (`idioms/*.toml`) in the same form as the `[scan.idioms]` table of a
//! project's `raddle.toml`; later tables add to earlier ones.

use std::collections::BTreeMap;

use raddle_config::scan::{Idioms, LockFamily};
pub(crate) use raddle_stdx::glob_matches;
use rustc_hash::FxHashMap;

use crate::front::words::Words;

/// The shipped tables: name and text.
const SHIPPED: &[(&str, &str)] = &[
    ("linux.toml", include_str!("../idioms/linux.toml")),
    ("posix.toml", include_str!("../idioms/posix.toml")),
];

/// The members of a class, each with the table that names it; nothing if there is no such class.
pub fn list_class(own: &Idioms, class: &str) -> Option<Vec<(String, &'static str)>> {
    let mut members = Vec::new();
    let shipped = SHIPPED.iter().map(|(name, text)| {
        let table: Idioms = toml::from_str(text).expect("the shipped tables are tested");
        (*name, table)
    });
    for (origin, table) in shipped.chain([("raddle.toml", own.clone())]) {
        let calls = table.classes.get(class).into_iter().flatten();
        let accesses = table.accesses.iter().filter(|family| family.class == class);
        let accesses = accesses.flat_map(|family| &family.calls);
        members.extend(calls.chain(accesses).map(|name| (name.clone(), origin)));
    }
    members.sort_unstable();
    (!members.is_empty()).then_some(members)
}

/// What a call does to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockAction {
    Acquire,
    /// Returns zero if it succeeded.
    AcquireOrError,
    /// Returns true if it succeeded.
    Try,
    Release,
}

/// A lock operation: which family, what, and which argument is the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockOp {
    pub(crate) family: u16,
    pub(crate) action: LockAction,
    pub(crate) argument: Option<usize>,
}

/// How a call touches an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touch {
    Read,
    Write,
    Update,
}

/// A call that accesses what an argument names or points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccessOp {
    pub(crate) touch: Touch,
    pub(crate) argument: usize,
    pub(crate) atomic: bool,
}

/// In which context a function is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Start {
    Thread,
    Work,
    SoftIrq,
    HardIrq,
    Init,
    /// System calls, operation tables, exported functions.
    Entry,
    /// No known function calls it.
    Unknown,
}

impl Start {
    fn named(name: &str) -> Self {
        match name {
            "work" => Self::Work,
            "softirq" => Self::SoftIrq,
            "hardirq" => Self::HardIrq,
            "init" => Self::Init,
            "entry" => Self::Entry,
            _ => Self::Thread,
        }
    }

    /// As shown to the user.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Work => "work item",
            Self::SoftIrq => "timer or softirq",
            Self::HardIrq => "interrupt handler",
            Self::Init => "initialisation",
            Self::Entry => "entry point",
            Self::Unknown => "no known caller",
        }
    }
}

/// A starter call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartOp {
    pub(crate) function: usize,
    pub(crate) argument: Option<usize>,
    pub(crate) context: Start,
}

/// All that is known of one name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Idiom {
    pub(crate) lock: Option<LockOp>,
    pub(crate) access: Option<AccessOp>,
    /// Bit set over `Table::classes`.
    pub(crate) classes: u128,
    pub(crate) starts: Vec<StartOp>,
    /// The argument that names the type of the result.
    pub(crate) typed: Option<usize>,
    pub(crate) result_type: Option<String>,
    /// Type of the variable that this macro defines.
    pub(crate) variable: Option<String>,
    /// Prefix of the function that this macro defines.
    pub(crate) function_prefix: Option<String>,
}

/// A family of locks.
#[derive(Debug, Clone)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) sleeps: bool,
    pub(crate) shared: bool,
    pub(crate) rcu: bool,
    pub(crate) context: bool,
    /// Taken several times, or given back by another context.
    pub(crate) counts: bool,
    /// The lock is an argument.
    pub(crate) has_object: bool,
}

/// Operation-table fields that are started in a special context.
#[derive(Debug, Clone)]
pub(crate) struct TableStart {
    pub(crate) structs: Vec<String>,
    pub(crate) fields: Vec<String>,
    pub(crate) context: Start,
    /// Lock families held by every caller through the table.
    pub(crate) holds: Vec<String>,
}

/// The tables, ready for look-up.
#[derive(Debug, Default)]
pub(crate) struct Table {
    ids: FxHashMap<Vec<u8>, u16>,
    idioms: Vec<Idiom>,
    pub(crate) families: Vec<Family>,
    guards: BTreeMap<String, u16>,
    class_ids: BTreeMap<String, u32>,
    pub(crate) table_starts: Vec<TableStart>,
    loops: Vec<String>,
    attributes: Vec<String>,
    attribute_calls: Vec<String>,
    owned: Vec<String>,
}

/// A table that could not be used.
#[derive(Debug, thiserror::Error)]
#[error("more than 128 classes of names are in use; remove some from [scan.idioms.classes]")]
pub(crate) struct TooManyClasses;

impl Table {
    /// The shipped tables plus `extra`.
    pub(crate) fn new(extra: &Idioms) -> Result<Self, TooManyClasses> {
        let mut table = Self::default();
        table.idioms.push(Idiom::default());
        for (_, text) in SHIPPED {
            let shipped: Idioms = toml::from_str(text).expect("the shipped tables are tested");
            table.add(&shipped)?;
        }
        table.add(extra)?;
        Ok(table)
    }

    fn add(&mut self, source: &Idioms) -> Result<(), TooManyClasses> {
        self.attributes.extend(source.attributes.iter().cloned());
        self.attribute_calls
            .extend(source.attribute_calls.iter().cloned());
        self.loops.extend(source.loops.iter().cloned());
        self.owned.extend(source.owned.iter().cloned());
        for family in &source.locks {
            self.add_locks(family);
        }
        for family in &source.accesses {
            let (touch, argument) = match (family.updates, family.writes, family.reads) {
                (Some(argument), _, _) => (Touch::Update, argument),
                (_, Some(argument), _) => (Touch::Write, argument),
                (_, _, argument) => (Touch::Read, argument.unwrap_or(0)),
            };
            for call in &family.calls {
                let access = AccessOp {
                    touch,
                    argument,
                    atomic: family.atomic,
                };
                self.named(call).access.get_or_insert(access);
            }
            self.add_class(&family.class, &family.calls)?;
        }
        for (class, calls) in &source.classes {
            self.add_class(class, calls)?;
        }
        self.add_starters(source);
        for (name, ty) in &source.variables {
            self.named(name).variable = Some(ty.clone());
        }
        for (name, prefix) in &source.functions {
            self.named(name).function_prefix = Some(prefix.clone());
        }
        for (name, argument) in &source.typed {
            self.named(name).typed = Some(*argument);
        }
        for (name, ty) in &source.result_types {
            self.named(name).result_type = Some(ty.clone());
        }
        Ok(())
    }

    fn add_starters(&mut self, source: &Idioms) {
        for starter in &source.starters {
            let context = Start::named(&starter.context);
            for call in &starter.calls {
                self.named(call).starts.push(StartOp {
                    function: starter.function,
                    argument: starter.argument,
                    context,
                });
            }
            if !starter.structs.is_empty() {
                self.table_starts.push(TableStart {
                    structs: starter.structs.clone(),
                    fields: starter.fields.clone(),
                    context,
                    holds: starter.holds.clone(),
                });
            }
        }
    }

    fn add_locks(&mut self, source: &LockFamily) {
        let family = u16::try_from(self.families.len()).unwrap_or(u16::MAX);
        self.families.push(Family {
            name: source.name.clone(),
            sleeps: source.sleeps,
            shared: source.shared,
            rcu: source.rcu,
            context: source.context,
            counts: source.counts,
            has_object: source.argument.is_some(),
        });
        let groups = [
            (&source.acquire, LockAction::Acquire),
            (&source.acquire_or_error, LockAction::AcquireOrError),
            (&source.try_acquire, LockAction::Try),
            (&source.release, LockAction::Release),
        ];
        for (calls, action) in groups {
            for call in calls {
                self.named(call).lock = Some(LockOp {
                    family,
                    action,
                    argument: source.argument,
                });
            }
        }
        for guard in &source.guards {
            self.guards.insert(guard.clone(), family);
        }
    }

    fn add_class(&mut self, class: &str, calls: &[String]) -> Result<(), TooManyClasses> {
        if class.is_empty() {
            return Ok(());
        }
        let next = u32::try_from(self.class_ids.len()).unwrap_or(u32::MAX);
        let id = *self.class_ids.entry(class.to_owned()).or_insert(next);
        if id >= 128 {
            return Err(TooManyClasses);
        }
        for call in calls {
            self.named(call).classes |= 1 << id;
        }
        Ok(())
    }

    fn named(&mut self, name: &str) -> &mut Idiom {
        let next = u16::try_from(self.idioms.len()).unwrap_or(u16::MAX);
        let id = *self.ids.entry(name.as_bytes().to_vec()).or_insert(next);
        if id == next {
            self.idioms.push(Idiom::default());
        }
        &mut self.idioms[usize::from(id)]
    }

    /// Number of the idiom called `name`; 0 if there is none.
    pub(crate) fn id(&self, name: &[u8]) -> u16 {
        self.ids.get(name).copied().unwrap_or(0)
    }

    pub(crate) fn get(&self, id: u16) -> &Idiom {
        &self.idioms[usize::from(id)]
    }

    /// The family that `guard(name)` takes.
    pub(crate) fn guard(&self, name: &str) -> Option<u16> {
        self.guards.get(name).copied()
    }

    /// The bit of a class, if there is such a class.
    pub(crate) fn class(&self, name: &str) -> Option<u128> {
        self.class_ids.get(name).map(|id| 1 << id)
    }

    /// All class names, for messages.
    pub(crate) fn class_names(&self) -> impl Iterator<Item = &str> {
        self.class_ids.keys().map(String::as_str)
    }

    /// The first family of the same name: modes of one lock share it.
    pub(crate) fn canonical(&self, id: u16) -> u16 {
        let name = &self.family(id).name;
        let first = self.families.iter().position(|family| family.name == *name);
        first
            .and_then(|first| u16::try_from(first).ok())
            .unwrap_or(id)
    }

    /// The family of locks that are known by the names of their functions only.
    pub(crate) fn named_family(&self) -> Option<u16> {
        let named = self
            .families
            .iter()
            .position(|family| family.name == "named");
        named.and_then(|number| u16::try_from(number).ok())
    }

    pub(crate) fn family(&self, id: u16) -> &Family {
        &self.families[usize::from(id)]
    }

    /// Whether objects of this struct belong to one thread at a time.
    pub(crate) fn is_owned(&self, tag: &[u8]) -> bool {
        self.owned
            .iter()
            .any(|owned| glob_matches(owned.as_bytes(), tag))
    }

    /// Whether a macro of this name heads a loop.
    pub(crate) fn is_loop(&self, name: &[u8]) -> bool {
        self.loops
            .iter()
            .any(|glob| glob_matches(glob.as_bytes(), name))
    }

    /// What the lexer must know.
    pub(crate) fn words(&self) -> Words {
        let sync: Vec<&str> = self
            .ids
            .iter()
            .filter(|(_, id)| self.get(**id).lock.is_some())
            .filter_map(|(name, _)| std::str::from_utf8(name).ok())
            .collect();
        Words::new(
            self.attributes.iter().map(String::as_str),
            self.attribute_calls.iter().map(String::as_str),
            sync,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_tables_compile() {
        let table = Table::new(&Idioms::default()).unwrap();
        let lock = table.get(table.id(b"spin_lock_bh")).lock.unwrap();
        assert_eq!(lock.action, LockAction::Acquire);
        assert_eq!(table.family(lock.family).name, "spin");
        assert!(table.class("atomic_update").is_some());
        assert!(table.guard("mutex").is_some());
        assert!(table.is_loop(b"list_for_each_entry_safe"));
        assert!(!table.is_loop(b"spin_lock"));
    }

    #[test]
    fn globs() {
        assert!(glob_matches(b"*for_each*", b"list_for_each_entry"));
        assert!(glob_matches(b"a*b*c", b"axxbyyc"));
        assert!(!glob_matches(b"a*b", b"axxc"));
        assert!(glob_matches(b"*", b""));
    }
}
