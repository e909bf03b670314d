//! The libraries of a program, as its dynamic loader lists them in memory.
//!
//! ```text
//!   auxiliary vector ─▶ program headers ─▶ dynamic section ─▶ r_debug ─▶ link_map ─▶ link_map ─▶ ..
//! ```

use raddle_stdx::width::to_usize;
use raddle_world::{ContextId, Inspect, Loaded};

/// Entries of the auxiliary vector.
const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
/// A program header that names the dynamic section, and one that names the headers themselves.
const PT_DYNAMIC: u64 = 2;
const PT_PHDR: u64 = 6;
const HEADER_BYTES: u64 = 56;
/// The entry of a dynamic section that the loader fills in for debuggers.
const DT_DEBUG: u64 = 21;
/// More of anything than this is garbage.
const MANY: u64 = 1024;
const NAME_MAX: usize = 4096;

/// The list in the form that gdb wants; nothing if the program has no loader, or it has not come that far.
pub(super) fn listed<W: Inspect + ?Sized>(world: &mut W, loaded: &Loaded) -> Option<String> {
    let mut memory = Memory(world);
    let mut map = memory.first_map(&loaded.auxv)?;
    let main = map;
    let mut text = format!("<library-list-svr4 version=\"1.0\" main-lm=\"{main:#x}\">");
    for _ in 0..MANY {
        if map == 0 {
            break;
        }
        let [address, name, dynamic, next] = memory.words(map)?;
        let name = memory.text(name)?;
        // The first one is the program itself, and what has no name is no file.
        if map != main && !name.is_empty() {
            let name = escaped(&name);
            text.push_str(&format!(
                "<library name=\"{name}\" lm=\"{map:#x}\" l_addr=\"{address:#x}\" l_ld=\"{dynamic:#x}\"/>"
            ));
        }
        map = next;
    }
    text.push_str("</library-list-svr4>");
    Some(text)
}

/// The memory of the first process.
struct Memory<'w, W: ?Sized>(&'w mut W);

impl<W: Inspect + ?Sized> Memory<'_, W> {
    /// Words of eight bytes that follow each other.
    fn words<const N: usize>(&mut self, at: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        for (word, number) in words.iter_mut().zip(0..) {
            let mut bytes = [0; 8];
            let at = at.wrapping_add(8 * number);
            let count = self.0.read_bytes(ContextId(0), at, &mut bytes);
            *word = (count == bytes.len()).then(|| u64::from_le_bytes(bytes))?;
        }
        Some(words)
    }

    fn text(&mut self, at: u64) -> Option<String> {
        let mut bytes = vec![0; NAME_MAX];
        let count = self.0.read_bytes(ContextId(0), at, &mut bytes);
        let end = bytes[..count].iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// Where the loader's list begins.
    fn first_map(&mut self, auxv: &[u8]) -> Option<u64> {
        let headers = entry(auxv, AT_PHDR)?;
        let count = entry(auxv, AT_PHNUM)?.min(MANY);
        let (mut bias, mut dynamic) = (0, None);
        for number in 0..count {
            let [kind, _, address] = self.words(headers.wrapping_add(HEADER_BYTES * number))?;
            match kind & 0xFFFF_FFFF {
                PT_PHDR => bias = headers.wrapping_sub(address),
                PT_DYNAMIC => dynamic = Some(address),
                _ => {}
            }
        }
        let dynamic = dynamic?.wrapping_add(bias);
        for number in 0..MANY {
            let [tag, value] = self.words(dynamic.wrapping_add(16 * number))?;
            match tag {
                0 => return None,
                DT_DEBUG if value != 0 => {
                    let [_version, map] = self.words(value)?;
                    return (map != 0).then_some(map);
                }
                _ => {}
            }
        }
        None
    }
}

/// The value of an entry of the auxiliary vector.
fn entry(auxv: &[u8], kind: u64) -> Option<u64> {
    let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let mut pairs = auxv.chunks_exact(16);
    let pair = pairs.find(|pair| word(&pair[..8]) == Some(kind))?;
    word(&pair[8..])
}

fn escaped(name: &str) -> String {
    let name = name.replace('&', "&amp;").replace('"', "&quot;");
    name.replace('<', "&lt;").replace('>', "&gt;")
}

/// A piece of a text, as gdb asks for long answers.
pub(super) fn piece(all: &[u8], offset: u64, length: usize, into: &mut [u8]) -> usize {
    let from = to_usize(offset).min(all.len());
    let count = length.min(into.len()).min(all.len() - from);
    into[..count].copy_from_slice(&all[from..from + count]);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_auxiliary_vector_are_found_by_kind() {
        let auxv: Vec<u8> = [6, 4096, AT_PHDR, 0x4000, 0, 0]
            .iter()
            .flat_map(|word: &u64| word.to_le_bytes())
            .collect();
        assert_eq!(entry(&auxv, AT_PHDR), Some(0x4000));
        assert_eq!(entry(&auxv, AT_PHNUM), None);
        assert_eq!(entry(&auxv[..20], AT_PHDR), None);
    }

    #[test]
    fn long_answers_come_in_pieces_and_names_are_no_markup() {
        let mut into = [0; 4];
        assert_eq!(piece(b"abcdef", 4, 9, &mut into), 2);
        assert_eq!(&into[..2], b"ef");
        assert_eq!(piece(b"abc", 9, 9, &mut into), 0);
        assert_eq!(escaped("/a<\"&b"), "/a&lt;&quot;&amp;b");
    }
}
