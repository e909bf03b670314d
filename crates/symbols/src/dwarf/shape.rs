//! What a type is made of, for those who read values out of memory.

use gimli::DwAt;

use super::types::{is_pointer, is_transparent};
use super::{DebugInfo, TypeRef, View};

/// Types nest; a chain longer than this is a broken file's cycle.
const DEPTH_MAX: usize = 64;

/// A type without its names and qualifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Integer {
        size: u64,
        is_signed: bool,
    },
    Boolean {
        size: u64,
    },
    /// A character of a text.
    Character {
        size: u64,
    },
    Float {
        size: u64,
    },
    /// A pointer or reference; to nothing in particular if there is no target.
    Pointer {
        target: Option<TypeRef>,
    },
    /// Element counts, outermost first; zero where unknown.
    Array {
        element: TypeRef,
        counts: Vec<u64>,
    },
    Structure {
        parts: Vec<Part>,
    },
    Enumeration {
        size: u64,
        names: Vec<(i64, String)>,
    },
    /// Functions, variants and whatever else is not read.
    Other,
}

/// A member of a structure or union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Empty for base classes and anonymous members.
    pub name: String,
    pub offset: u64,
    /// For a bit field: the first bit, counted from `offset`, and how many there are.
    pub bits: Option<(u64, u64)>,
    pub type_ref: TypeRef,
}

impl DebugInfo {
    /// What a type is made of.
    pub fn shape(&self, type_ref: TypeRef) -> Shape {
        self.view().shape(type_ref).unwrap_or(Shape::Other)
    }
}

impl View<'_> {
    fn shape(&self, type_ref: TypeRef) -> Option<Shape> {
        let mut current = type_ref;
        for _ in 0..DEPTH_MAX {
            let entry = self.type_entry(current)?;
            if is_transparent(entry.tag) {
                current = entry.target?;
                continue;
            }
            let size = entry.size.unwrap_or(0);
            return Some(match entry.tag {
                gimli::DW_TAG_base_type => base(size, self.encoding(current)?),
                gimli::DW_TAG_array_type => Shape::Array {
                    element: entry.target?,
                    counts: self.dimensions(current),
                },
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => Shape::Structure {
                    parts: self.parts(current),
                },
                gimli::DW_TAG_enumeration_type => Shape::Enumeration {
                    size,
                    names: self.enumerators(current),
                },
                tag if is_pointer(tag) => Shape::Pointer {
                    target: entry.target,
                },
                _ => Shape::Other,
            });
        }
        None
    }

    fn encoding(&self, type_ref: TypeRef) -> Option<gimli::DwAte> {
        let (unit, offset) = self.unit_of(type_ref.0)?;
        let entry = unit.entry(offset).ok()?;
        match entry.attr_value(gimli::DW_AT_encoding).ok().flatten()? {
            gimli::AttributeValue::Encoding(encoding) => Some(encoding),
            _ => None,
        }
    }

    fn parts(&self, structure: TypeRef) -> Vec<Part> {
        let mut parts = Vec::new();
        let read = self.children(structure, |unit, entry| {
            let is_base = entry.tag() == gimli::DW_TAG_inheritance;
            if !is_base && entry.tag() != gimli::DW_TAG_member {
                return;
            }
            let Some(member) = self.member(structure.0.is_shared, unit, entry, is_base) else {
                return;
            };
            let number = |name: DwAt| {
                let value = entry.attr_value(name).ok().flatten();
                value.and_then(|value| value.udata_value())
            };
            let bits = number(gimli::DW_AT_bit_size);
            let first = number(gimli::DW_AT_data_bit_offset);
            parts.push(Part {
                name: member.name,
                offset: member.offset,
                bits: bits.map(|bits| (first.unwrap_or(0) % 8, bits)),
                type_ref: member.type_ref,
            });
        });
        if read.is_err() {
            parts.clear();
        }
        parts
    }

    fn enumerators(&self, enumeration: TypeRef) -> Vec<(i64, String)> {
        let mut names = Vec::new();
        let is_shared = enumeration.0.is_shared;
        let read = self.children(enumeration, |unit, entry| {
            let value = |name: DwAt| entry.attr_value(name).ok().flatten();
            let name = value(gimli::DW_AT_name).and_then(|name| self.text(unit, is_shared, name));
            let number = value(gimli::DW_AT_const_value).and_then(|number| {
                let unsigned = || number.udata_value().map(u64::cast_signed);
                number.sdata_value().or_else(unsigned)
            });
            if let (Some(name), Some(number)) = (name, number) {
                names.push((number, name.into_owned()));
            }
        });
        if read.is_err() {
            names.clear();
        }
        names
    }
}

fn base(size: u64, encoding: gimli::DwAte) -> Shape {
    match encoding {
        gimli::DW_ATE_boolean => Shape::Boolean { size },
        gimli::DW_ATE_float => Shape::Float { size },
        gimli::DW_ATE_UTF => Shape::Character { size },
        gimli::DW_ATE_signed_char | gimli::DW_ATE_unsigned_char if size == 1 => {
            Shape::Character { size }
        }
        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => Shape::Integer {
            size,
            is_signed: true,
        },
        gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char | gimli::DW_ATE_address => {
            Shape::Integer {
                size,
                is_signed: false,
            }
        }
        _ => Shape::Other,
    }
}
