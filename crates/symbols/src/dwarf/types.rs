//! Types: their names and sizes, the field at an offset, and whether it is atomic.

use gimli::{AttributeValue, DwAt, DwTag};

use super::{DebugInfo, DieRef, Slice, Unit, View, Work};
use crate::error::Reason;

/// Types nest; a chain longer than this is a broken file's cycle.
const TYPE_DEPTH_MAX: usize = 64;

/// Members read per question; far above any real structure.
const MEMBERS_MAX: usize = 1 << 16;

/// A type of one module; meaningful only to the [`DebugInfo`] it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeRef(pub(crate) DieRef);

/// The innermost part of a variable at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// As C writes it after the variable's name: `.queue.head`, `[3].next`; empty for the variable itself.
    pub path: String,
    pub type_name: String,
    /// Zero when the type does not say.
    pub size: u64,
    /// Bytes from the start of this part to the asked offset.
    pub rest: u64,
    /// Whether the language says that accesses to it are atomic.
    pub is_atomic: bool,
}

impl DebugInfo {
    /// The name of a type as its language writes it.
    pub fn type_name(&self, type_ref: TypeRef) -> String {
        self.view().type_name(type_ref)
    }

    /// The size of a type in bytes.
    pub fn type_size(&self, type_ref: TypeRef) -> Option<u64> {
        self.view().size_of(type_ref)
    }

    /// The innermost part of a value of this type at an offset; `None` if the type is unreadable.
    ///
    /// Atomic wrappers (`std::atomic<T>`, `AtomicU32`) count as innermost: what is inside them is their business.
    pub fn field_at(&self, type_ref: TypeRef, offset: u64) -> Option<Field> {
        self.view().field_at(type_ref, offset)
    }

    /// Whether the part of a value of this type at an offset is of an atomic type.
    pub fn is_atomic(&self, type_ref: TypeRef, offset: u64) -> bool {
        self.field_at(type_ref, offset)
            .is_some_and(|field| field.is_atomic)
    }
}

/// What one entry says about a type.
pub(super) struct TypeEntry {
    pub(super) tag: DwTag,
    name: Option<String>,
    pub(super) size: Option<u64>,
    pub(super) target: Option<TypeRef>,
}

pub(super) struct Member {
    /// Empty for anonymous members and base classes, whose fields belong to the outer type.
    pub(super) name: String,
    pub(super) offset: u64,
    pub(super) type_ref: TypeRef,
}

/// The type that an entry, or what it is the definition of, has.
pub(super) fn type_of(view: &View<'_>, die: DieRef) -> Option<TypeRef> {
    let mut current = Some(die);
    for _ in 0..4 {
        let die = current?;
        let (unit, offset) = view.unit_of(die)?;
        let entry = unit.entry(offset).ok()?;
        if let Some(value) = entry.attr_value(gimli::DW_AT_type).ok().flatten() {
            return view.reference(&unit, die.is_shared, value).map(TypeRef);
        }
        current = super::function::origin(view, die);
    }
    None
}

impl<'a> View<'a> {
    pub(super) fn size_of(&self, type_ref: TypeRef) -> Option<u64> {
        let mut factor = 1_u64;
        let mut current = type_ref;
        for _ in 0..TYPE_DEPTH_MAX {
            let entry = self.type_entry(current)?;
            if let Some(size) = entry.size {
                return size.checked_mul(factor);
            }
            if entry.tag == gimli::DW_TAG_array_type {
                let count = self
                    .dimensions(current)
                    .iter()
                    .try_fold(1, |product: u64, &n| product.checked_mul(n));
                factor = factor.checked_mul(count?)?;
            } else if is_pointer(entry.tag) {
                return factor.checked_mul(8);
            }
            current = entry.target?;
        }
        None
    }

    pub(super) fn type_name(&self, type_ref: TypeRef) -> String {
        self.type_name_within(Some(type_ref), TYPE_DEPTH_MAX)
    }

    fn type_name_within(&self, type_ref: Option<TypeRef>, depth_left: usize) -> String {
        let Some(type_ref) = type_ref else {
            return String::from("void");
        };
        let Some(entry) = self.type_entry(type_ref).filter(|_| depth_left > 0) else {
            return String::from("?");
        };
        if let Some(name) = entry.name {
            return name;
        }
        let inner = || self.type_name_within(entry.target, depth_left - 1);
        match entry.tag {
            gimli::DW_TAG_const_type => qualified("const", inner()),
            gimli::DW_TAG_volatile_type => qualified("volatile", inner()),
            gimli::DW_TAG_atomic_type => qualified("_Atomic", inner()),
            gimli::DW_TAG_reference_type => inner() + " &",
            gimli::DW_TAG_rvalue_reference_type => inner() + " &&",
            gimli::DW_TAG_pointer_type => inner() + " *",
            gimli::DW_TAG_array_type => {
                let counts = self.dimensions(type_ref);
                counts
                    .iter()
                    .fold(inner(), |name, count| format!("{name}[{count}]"))
            }
            gimli::DW_TAG_subroutine_type => String::from("function"),
            gimli::DW_TAG_structure_type => String::from("struct"),
            gimli::DW_TAG_union_type => String::from("union"),
            gimli::DW_TAG_enumeration_type => String::from("enum"),
            _ => inner(),
        }
    }

    fn field_at(&self, type_ref: TypeRef, offset: u64) -> Option<Field> {
        let mut path = String::new();
        let mut is_atomic = false;
        let (mut current, mut rest) = (type_ref, offset);
        // The outermost name that says the whole leaf, such as a typedef or a qualified type.
        let mut shown = type_ref;
        for _ in 0..TYPE_DEPTH_MAX {
            let entry = self.type_entry(current)?;
            is_atomic |= self.is_atomic_entry(current, &entry);
            let inner = match entry.tag {
                _ if is_atomic && !is_transparent(entry.tag) => None,
                tag if is_transparent(tag) => {
                    current = entry.target?;
                    continue;
                }
                gimli::DW_TAG_array_type => self.element_at(current, &entry, rest),
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => self.member_at(current, rest),
                _ => None,
            };
            let Some((step, type_ref, inner_rest)) = inner else {
                break;
            };
            path.push_str(&step);
            (current, shown, rest) = (type_ref, type_ref, inner_rest);
        }
        Some(Field {
            path,
            type_name: self.type_name(shown),
            size: self.size_of(shown).unwrap_or(0),
            rest,
            is_atomic,
        })
    }

    fn element_at(
        &self,
        array: TypeRef,
        entry: &TypeEntry,
        offset: u64,
    ) -> Option<(String, TypeRef, u64)> {
        let element = entry.target?;
        let size = self.size_of(element).filter(|&size| size > 0)?;
        let mut index = offset / size;
        let mut steps = Vec::new();
        // The last dimension varies fastest; the first one is not bounded, as in a flexible array.
        for &count in self.dimensions(array).iter().skip(1).rev() {
            let count = count.max(1);
            steps.push(index % count);
            index /= count;
        }
        steps.push(index);
        let path: String = steps
            .iter()
            .rev()
            .map(|index| format!("[{index}]"))
            .collect();
        Some((path, element, offset % size))
    }

    fn member_at(&self, structure: TypeRef, offset: u64) -> Option<(String, TypeRef, u64)> {
        let members = self.members(structure).ok()?;
        let holds = |member: &&Member| {
            let size = self.size_of(member.type_ref).unwrap_or(0);
            // A flexible array at the end has no size of its own.
            offset >= member.offset && (size == 0 || offset - member.offset < size)
        };
        let sized = |member: &&Member| self.size_of(member.type_ref).is_some_and(|size| size > 0);
        let candidates = || members.iter().filter(holds);
        let member = candidates()
            .find(sized)
            .or_else(|| candidates().next_back())?;
        let step = match member.name.as_str() {
            "" => String::new(),
            name => format!(
                ".{}",
                name.strip_prefix("__")
                    .filter(|n| is_number(n))
                    .unwrap_or(name)
            ),
        };
        Some((step, member.type_ref, offset - member.offset))
    }

    pub(super) fn type_entry(&self, type_ref: TypeRef) -> Option<TypeEntry> {
        let die = type_ref.0;
        let (unit, offset) = self.unit_of(die)?;
        let entry = unit.entry(offset).ok()?;
        let value = |name: DwAt| entry.attr_value(name).ok().flatten();
        let name = value(gimli::DW_AT_name).and_then(|name| self.text(&unit, die.is_shared, name));
        Some(TypeEntry {
            tag: entry.tag(),
            name: name.map(std::borrow::Cow::into_owned),
            size: value(gimli::DW_AT_byte_size).and_then(|size| size.udata_value()),
            target: value(gimli::DW_AT_type)
                .and_then(|target| self.reference(&unit, die.is_shared, target))
                .map(TypeRef),
        })
    }

    fn members(&self, structure: TypeRef) -> Result<Vec<Member>, Reason> {
        let mut members = Vec::new();
        self.children(structure, |unit, entry| {
            let is_base = entry.tag() == gimli::DW_TAG_inheritance;
            if is_base || entry.tag() == gimli::DW_TAG_member {
                members.extend(self.member(structure.0.is_shared, unit, entry, is_base));
            }
        })?;
        Ok(members)
    }

    pub(super) fn member(
        &self,
        is_shared: bool,
        unit: &Unit<'a>,
        entry: &gimli::DebuggingInformationEntry<'_, '_, Slice<'a>>,
        is_base: bool,
    ) -> Option<Member> {
        let value = |name: DwAt| entry.attr_value(name).ok().flatten();
        // Static members are declared here but live elsewhere.
        if value(gimli::DW_AT_external).is_some() || value(gimli::DW_AT_declaration).is_some() {
            return None;
        }
        let offset = match value(gimli::DW_AT_data_member_location) {
            Some(offset) => offset.udata_value()?,
            None => match value(gimli::DW_AT_data_bit_offset) {
                Some(bits) => bits.udata_value()? / 8,
                None => 0,
            },
        };
        let name = value(gimli::DW_AT_name).and_then(|name| self.text(unit, is_shared, name));
        Some(Member {
            name: match name {
                Some(name) if !is_base => name.into_owned(),
                _ => String::new(),
            },
            offset,
            type_ref: TypeRef(self.reference(unit, is_shared, value(gimli::DW_AT_type)?)?),
        })
    }

    /// Element counts, outermost first; zero where unknown.
    pub(super) fn dimensions(&self, array: TypeRef) -> Vec<u64> {
        let mut counts = Vec::new();
        let read = self.children(array, |_, entry| {
            if entry.tag() != gimli::DW_TAG_subrange_type {
                return;
            }
            let number = |name| {
                let value = entry.attr_value(name).ok().flatten();
                value.and_then(|value| value.udata_value())
            };
            let bound = number(gimli::DW_AT_upper_bound);
            let count = number(gimli::DW_AT_count).or_else(|| bound?.checked_add(1));
            counts.push(count.unwrap_or(0));
        });
        if read.is_err() {
            counts.clear();
        }
        counts
    }

    /// Calls `visit` with each direct child of an entry.
    pub(super) fn children(
        &self,
        parent: TypeRef,
        mut visit: impl FnMut(&Unit<'a>, &gimli::DebuggingInformationEntry<'_, '_, Slice<'a>>),
    ) -> Result<(), Reason> {
        let missing = gimli::Error::NoEntryAtGivenOffset;
        let (unit, offset) = self.unit_of(parent.0).ok_or(missing)?;
        let mut entries = unit.entries_at_offset(offset)?;
        let mut depth = 0;
        let mut seen = 0;
        let Some((_, entry)) = entries.next_dfs()? else {
            return Ok(());
        };
        if !entry.has_children() {
            return Ok(());
        }
        while let Some((change, entry)) = entries.next_dfs()? {
            depth += change;
            seen += 1;
            if depth <= 0 || seen > MEMBERS_MAX {
                break;
            }
            if depth == 1 {
                visit(&unit, entry);
            }
        }
        Ok(())
    }

    fn is_atomic_entry(&self, type_ref: TypeRef, entry: &TypeEntry) -> bool {
        if entry.tag == gimli::DW_TAG_atomic_type {
            return true;
        }
        let is_structure = matches!(
            entry.tag,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type
        );
        let name = entry.name.as_deref().unwrap_or("");
        if !is_structure || !may_be_atomic(name) {
            return false;
        }
        let scope = self.scope_of(type_ref.0).unwrap_or_default();
        let is_rust = scope == ["core", "sync", "atomic"];
        is_rust || scope.first().is_some_and(|outer| outer == "std")
    }

    /// The namespaces around an entry, outermost first, found by walking its unit from the start.
    fn scope_of(&self, die: DieRef) -> Result<Vec<String>, Reason> {
        let missing = gimli::Error::NoEntryAtGivenOffset;
        let (unit, wanted) = self.unit_of(die).ok_or(missing)?;
        let mut work = Work::for_bytes(raddle_stdx::width::to_u64(
            unit.header.length_including_self(),
        ));
        let mut open: Vec<(isize, Option<AttributeValue<Slice<'a>>>)> = Vec::new();
        let mut raw = unit.entries_raw(None)?;
        while !raw.is_empty() {
            work.step()?;
            let depth = raw.next_depth();
            let offset = raw.next_offset();
            while open.last().is_some_and(|&(outer, _)| outer >= depth) {
                open.pop();
            }
            if offset >= wanted {
                break;
            }
            let Some(abbreviation) = raw.read_abbreviation()? else {
                continue;
            };
            let mut name = None;
            if abbreviation.tag() == gimli::DW_TAG_namespace {
                for &spec in abbreviation.attributes() {
                    work.step()?;
                    let attribute = raw.read_attribute(spec)?;
                    if attribute.name() == gimli::DW_AT_name {
                        name = Some(attribute.value());
                    }
                }
                open.push((depth, name));
            } else {
                work.steps(abbreviation.attributes().len())?;
                raw.skip_attributes(abbreviation.attributes())?;
            }
        }
        let text = |value| {
            self.text(&unit, die.is_shared, value)
                .map(std::borrow::Cow::into_owned)
        };
        Ok(open
            .iter()
            .filter_map(|&(_, name)| name.and_then(text))
            .collect())
    }
}

/// A qualifier stands before a plain type and after a pointer, as C declarations have it.
fn qualified(qualifier: &str, inner: String) -> String {
    if inner.contains('*') {
        inner + " " + qualifier
    } else {
        format!("{qualifier} {inner}")
    }
}

/// Types that only rename or qualify another type.
pub(super) fn is_transparent(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
    )
}

pub(super) fn is_pointer(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
    )
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Names of the atomic wrappers of the C++ and Rust libraries, before their namespace is checked.
fn may_be_atomic(name: &str) -> bool {
    let base = name.split('<').next().unwrap_or(name);
    let is_cpp = matches!(
        base,
        "atomic" | "atomic_flag" | "__atomic_base" | "__atomic_flag_base"
    );
    let is_rust = base.strip_prefix("Atomic").is_some_and(|rest| {
        rest.is_empty() || rest == "Bool" || rest == "Ptr" || rest.starts_with(['I', 'U'])
    });
    is_cpp || is_rust
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_wrappers_are_known_by_name() {
        for name in [
            "atomic<int>",
            "atomic_flag",
            "AtomicU32",
            "AtomicPtr<u8>",
            "Atomic<u32>",
            "AtomicBool",
        ] {
            assert!(may_be_atomic(name), "{name}");
        }
        for name in ["Atom", "AtomicCell", "atomically", "int", ""] {
            assert!(!may_be_atomic(name), "{name}");
        }
    }
}
