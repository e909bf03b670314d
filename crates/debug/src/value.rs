//! What is in memory, as its type says.

use std::sync::Arc;

use raddle_stdx::width::{to_u64, to_usize};
use raddle_symbols::dwarf::{DebugInfo, Part, Shape, TypeRef};
use raddle_symbols::{Mapping, Module};
use raddle_world::Inspect;

use crate::scene::Scene;

/// Elements and members that one line shows at most.
const SHOWN_MAX: usize = 8;
/// Bytes of a text at most.
const TEXT_MAX: usize = 80;
/// How deep a line looks into structures.
const DEPTH_MAX: usize = 2;
/// Children that are listed at most.
pub(crate) const CHILDREN_MAX: u64 = 1000;

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Memory(u64),
    /// In a register, or known without being anywhere.
    Word(u64),
    /// Optimised away here.
    Nowhere,
}

/// A value with its type.
#[derive(Debug, Clone)]
pub struct Typed {
    pub(crate) at: At,
    pub(crate) module: Arc<Module>,
    pub(crate) type_ref: Option<TypeRef>,
    /// For a bit field: its first bit and how many there are.
    pub(crate) bits: Option<(u64, u64)>,
    /// Of an array: how many of its dimensions were indexed.
    pub(crate) indexed: usize,
}

impl Typed {
    pub(crate) fn at(mapping: &Mapping, at: At, type_ref: Option<TypeRef>) -> Self {
        Self {
            at,
            module: Arc::clone(&mapping.module),
            type_ref,
            bits: None,
            indexed: 0,
        }
    }

    fn debug(&self) -> Option<&DebugInfo> {
        self.module.debug_info()
    }

    pub(crate) fn shape(&self) -> Shape {
        let shape = self.type_ref.zip(self.debug());
        shape.map_or(Shape::Other, |(of, debug)| debug.shape(of))
    }

    /// The type as its language writes it.
    pub fn type_name(&self) -> String {
        let Some((of, debug)) = self.type_ref.zip(self.debug()) else {
            return String::new();
        };
        debug.type_name(of)
    }

    /// The address, if it has one.
    pub fn address(&self) -> Option<u64> {
        match self.at {
            At::Memory(addr) => Some(addr),
            _ => None,
        }
    }

    /// Its size in bytes; zero when unknown.
    pub fn size(&self) -> u64 {
        let Some((of, debug)) = self.type_ref.zip(self.debug()) else {
            return 0;
        };
        match self.shape() {
            Shape::Array { element, counts } if self.indexed > 0 => {
                let left = counts.iter().skip(self.indexed);
                let element = debug.type_size(element).unwrap_or(0);
                left.fold(element, |size, count| size.saturating_mul(*count))
            }
            _ => debug.type_size(of).unwrap_or(0),
        }
    }

    fn of_type(&self, at: At, type_ref: TypeRef) -> Self {
        Self {
            at,
            module: Arc::clone(&self.module),
            type_ref: Some(type_ref),
            bits: None,
            indexed: 0,
        }
    }

    fn part(&self, part: &Part) -> Self {
        let at = match self.at {
            At::Memory(addr) => At::Memory(addr.wrapping_add(part.offset)),
            At::Word(word) if part.offset < 8 => At::Word(word >> (8 * part.offset)),
            _ => At::Nowhere,
        };
        Self {
            bits: part.bits,
            ..self.of_type(at, part.type_ref)
        }
    }

    /// A member by its name, also of base classes and anonymous members.
    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        let Shape::Structure { parts } = self.shape() else {
            return None;
        };
        let named = parts.iter().find(|part| part.name == name);
        named.map(|part| self.part(part)).or_else(|| {
            let insides = parts.iter().filter(|part| part.name.is_empty());
            insides
                .map(|part| self.part(part))
                .find_map(|inside| inside.member(name))
        })
    }

    /// An element of an array.
    pub(crate) fn element(&self, index: i64) -> Option<Self> {
        let Shape::Array { element, counts } = self.shape() else {
            return None;
        };
        let At::Memory(addr) = self.at else {
            return None;
        };
        let is_last = self.indexed + 1 >= counts.len();
        let mut one = if is_last {
            self.of_type(self.at, element)
        } else {
            Self {
                indexed: self.indexed + 1,
                ..self.clone()
            }
        };
        let offset = index.wrapping_mul(one.size().cast_signed());
        one.at = At::Memory(addr.wrapping_add_signed(offset));
        Some(one)
    }

    /// What a pointer points to, so many elements further.
    pub(crate) fn pointee<W: Inspect + ?Sized>(
        &self,
        scene: &mut Scene<'_, W>,
        index: i64,
    ) -> Option<Self> {
        let Shape::Pointer { target } = self.shape() else {
            return None;
        };
        let addr = self.word(scene)?;
        let mut one = self.of_type(At::Memory(addr), target?);
        let offset = index.wrapping_mul(one.size().cast_signed());
        one.at = At::Memory(addr.wrapping_add_signed(offset));
        Some(one)
    }

    /// Its first bytes as a word, without what does not belong to it.
    pub(crate) fn word<W: Inspect + ?Sized>(&self, scene: &mut Scene<'_, W>) -> Option<u64> {
        let size = to_usize(self.size()).clamp(1, 8);
        let whole = match self.at {
            At::Memory(addr) => {
                let bytes = scene.read(addr, size);
                let mut word = [0; 8];
                word.get_mut(..bytes.len())?.copy_from_slice(&bytes);
                (bytes.len() == size).then(|| u64::from_le_bytes(word))?
            }
            At::Word(word) => word,
            At::Nowhere => return None,
        };
        let (first, count) = self.bits.unwrap_or((0, 8 * to_u64(size)));
        let mask = if count >= 64 {
            u64::MAX
        } else {
            (1 << count) - 1
        };
        Some((whole >> first.min(63)) & mask)
    }

    /// Its value as a number, if it is one.
    pub(crate) fn number<W: Inspect + ?Sized>(&self, scene: &mut Scene<'_, W>) -> Option<i128> {
        let word = self.word(scene)?;
        let (size, is_signed) = match self.shape() {
            Shape::Integer { size, is_signed } => (size, is_signed),
            Shape::Enumeration { size, .. } => (size, true),
            Shape::Character { size } => (size, false),
            Shape::Boolean { .. } | Shape::Pointer { .. } => (8, false),
            _ => return None,
        };
        let bits = self.bits.map_or(8 * size.min(8), |(_, count)| count);
        Some(extended(word, bits, is_signed))
    }

    /// The value in one line.
    pub fn show<W: Inspect + ?Sized>(&self, scene: &mut Scene<'_, W>) -> String {
        self.shown(scene, DEPTH_MAX)
    }

    fn shown<W: Inspect + ?Sized>(&self, scene: &mut Scene<'_, W>, depth: usize) -> String {
        if self.at == At::Nowhere {
            return String::from("<optimised away>");
        }
        let shape = self.shape();
        match &shape {
            Shape::Structure { .. } | Shape::Array { .. } => {
                return self.shown_whole(scene, &shape, depth);
            }
            _ => {}
        }
        let Some(word) = self.word(scene) else {
            return String::from("<cannot be read>");
        };
        match shape {
            Shape::Boolean { .. } => (word != 0).to_string(),
            Shape::Character { size: 1 } => match u8::try_from(word) {
                Ok(byte) if (0x20..0x7F).contains(&byte) => {
                    format!("{word} '{}'", char::from(byte))
                }
                _ => word.to_string(),
            },
            Shape::Float { size: 4 } => {
                f32::from_bits(raddle_stdx::width::low_u32(word)).to_string()
            }
            Shape::Float { size: 8 } => f64::from_bits(word).to_string(),
            Shape::Enumeration { ref names, .. } => {
                let number = self.number(scene).unwrap_or(0);
                let known = names.iter().find(|(value, _)| i128::from(*value) == number);
                known.map_or_else(|| number.to_string(), |(_, name)| name.clone())
            }
            Shape::Pointer { .. } => match self.text_behind(scene) {
                Some(text) => format!("{word:#x} {text}"),
                None => format!("{word:#x}"),
            },
            Shape::Integer { .. } | Shape::Character { .. } => {
                let number = self.number(scene);
                number.map_or_else(|| format!("{word:#x}"), |number| number.to_string())
            }
            _ => format!("{word:#x}"),
        }
    }

    fn shown_whole<W: Inspect + ?Sized>(
        &self,
        scene: &mut Scene<'_, W>,
        shape: &Shape,
        depth: usize,
    ) -> String {
        if let Shape::Array { .. } = shape
            && let Some(first) = self.element(0)
            && let (Shape::Character { size: 1 }, At::Memory(addr)) = (first.shape(), first.at)
        {
            let length = to_usize(self.size()).min(TEXT_MAX);
            return text(&scene.read(addr, length));
        }
        if depth == 0 {
            return String::from("{...}");
        }
        let children = self.children(to_u64(SHOWN_MAX) + 1);
        let mut shown: Vec<String> = children
            .iter()
            .take(SHOWN_MAX)
            .map(|(name, child)| {
                let value = child.shown(scene, depth - 1);
                if name.starts_with('[') {
                    value
                } else {
                    format!("{name} = {value}")
                }
            })
            .collect();
        if children.len() > SHOWN_MAX {
            shown.push(String::from("..."));
        }
        format!("{{{}}}", shown.join(", "))
    }

    /// The text that a pointer to characters points to.
    fn text_behind<W: Inspect + ?Sized>(&self, scene: &mut Scene<'_, W>) -> Option<String> {
        let target = self.pointee(scene, 0)?;
        let is_text = matches!(target.shape(), Shape::Character { size: 1 });
        let bytes = scene.read(target.address().filter(|_| is_text)?, TEXT_MAX);
        (!bytes.is_empty()).then(|| text(&bytes))
    }

    /// What it is made of, each with its name, at most so many. What pointers point to is not listed here.
    pub(crate) fn children(&self, most: u64) -> Vec<(String, Self)> {
        match self.shape() {
            Shape::Structure { parts } => {
                let name = |part: &Part| match part.name.as_str() {
                    "" => String::from("(base)"),
                    name => name.to_owned(),
                };
                let parts = parts.iter().take(to_usize(most));
                parts.map(|part| (name(part), self.part(part))).collect()
            }
            Shape::Array { counts, .. } => {
                let count = counts.get(self.indexed).copied().unwrap_or(0).min(most);
                let element = |index: u64| {
                    let one = self.element(index.cast_signed())?;
                    Some((format!("[{index}]"), one))
                };
                (0..count).filter_map(element).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The low bits of a word as a number.
fn extended(word: u64, bits: u64, is_signed: bool) -> i128 {
    let number = i128::from(word);
    let is_negative = is_signed && (1..64).contains(&bits) && word >> (bits - 1) & 1 == 1;
    if is_negative {
        return number - (1 << bits);
    }
    if is_signed && bits >= 64 {
        return i128::from(word.cast_signed());
    }
    number
}

/// A small value as a number, a large one byte by byte.
pub fn bytes_text(bytes: &[u8]) -> String {
    let mut word = [0; 8];
    match word.get_mut(..bytes.len()) {
        Some(low) if !bytes.is_empty() => {
            low.copy_from_slice(bytes);
            format!("{:#x}", u64::from_le_bytes(word))
        }
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Bytes up to the first zero, in quotes.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    let shown = &bytes[..end.unwrap_or(bytes.len())];
    let more = if end.is_none() { "..." } else { "" };
    format!("\"{}\"{more}", shown.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_extended_by_their_sign() {
        assert_eq!(extended(0xFF, 8, true), -1);
        assert_eq!(extended(0xFF, 8, false), 255);
        assert_eq!(extended(u64::MAX, 64, true), -1);
        assert_eq!(extended(u64::MAX, 64, false), i128::from(u64::MAX));
        assert_eq!(extended(0b10, 2, true), -2);
    }

    #[test]
    fn texts_end_at_zero_and_are_escaped() {
        assert_eq!(text(b"ab\0c"), "\"ab\"");
        assert_eq!(text(b"a\"\x1b"), "\"a\\\"\\x1b\"...");
    }
}
