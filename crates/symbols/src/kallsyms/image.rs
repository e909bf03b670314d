//! The symbols that a kernel carries in its own read-only data (scripts/kallsyms.c), found without any symbol.
//!
//! ```text
//!   older:  offsets | base | count | names | markers | (order) | token table | token index
//!   newer:                   count | names | markers | token table | token index | offsets | base
//! ```
//! Names are sequences of tokens; the tokens of digits stand for themselves, one after the other, which gives the
//! table away. Distribution kernels are stripped of everything else.

use raddle_stdx::width::to_u64;

const DIGITS: &[u8] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00";
const TOKENS: usize = 256;
/// Symbols between two markers.
const STRIDE: usize = 256;
/// Symbols that a kernel can have.
const COUNTS: std::ops::Range<usize> = 300..4_000_000;
/// Bytes that names, markers and the rest can take.
const TABLE_MAX: usize = 64 << 20;
/// Where kernels are linked.
const KERNEL_MIN: u64 = 0xFFFF_FFFF_8000_0000;

/// The list in the form of System.map; none if the image has no such table.
pub fn system_map(image: &[u8]) -> Option<String> {
    let tokens = Tokens::find(image)?;
    let (names, count) = names(image, tokens.start)?;
    let addresses = addresses(image, names, count, tokens.end)?;
    let mut text = String::new();
    let mut at = names;
    for address in addresses {
        let (length, used) = length(image, at)?;
        let codes = image.get(at + used..at + used + length)?;
        let mut name = String::new();
        for code in codes {
            name.push_str(&String::from_utf8_lossy(tokens.text(image, *code)));
        }
        at += used + length;
        let mut letters = name.chars();
        if let Some(kind) = letters.next()
            && (address >= KERNEL_MIN || (1..super::PER_CPU_MAX).contains(&address))
        {
            text.push_str(&format!("{address:016x} {kind} {}\n", letters.as_str()));
        }
    }
    Some(text)
}

struct Tokens {
    start: usize,
    /// First byte after the index.
    end: usize,
    offsets: Vec<usize>,
}

impl Tokens {
    fn find(image: &[u8]) -> Option<Self> {
        let mut from = 0;
        while let Some(found) = find(&image[from..], DIGITS) {
            let digits = from + found;
            if let Some(tokens) = Self::at(image, digits) {
                return Some(tokens);
            }
            from = digits + 1;
        }
        None
    }

    /// The index follows the table: 256 ascending offsets, of which the tenth-but-some are the digits'.
    fn at(image: &[u8], digits: usize) -> Option<Self> {
        let first = digits.next_multiple_of(2);
        (first..first + 4096).step_by(2).find_map(|at| {
            let offsets: Vec<usize> = (0..TOKENS)
                .map(|token| u16_at(image, at + 2 * token).map(usize::from))
                .collect::<Option<_>>()?;
            let digit = usize::from(b'0');
            let fits = offsets[0] == 0
                && offsets.is_sorted()
                && (0..9).all(|n| offsets[digit + n + 1] == offsets[digit + n] + 2)
                && offsets[digit] <= digits;
            fits.then(|| Self {
                start: digits - offsets[digit],
                end: at + 2 * TOKENS,
                offsets,
            })
        })
    }

    fn text<'a>(&self, image: &'a [u8], code: u8) -> &'a [u8] {
        let start = self.start + self.offsets[usize::from(code)];
        let rest = image.get(start..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
        &rest[..end]
    }
}

/// Start of the names and their number: the count stands before them, the markers after them agree with both.
fn names(image: &[u8], tokens: usize) -> Option<(usize, usize)> {
    let last = tokens & !7;
    let first = last.saturating_sub(TABLE_MAX);
    (first..last).rev().filter(|at| at % 8 == 0).find_map(|at| {
        let count = usize::try_from(u64_at(image, at)?).ok()?;
        if !COUNTS.contains(&count) {
            return None;
        }
        let start = at + 8;
        let mut end = start;
        let mut second = 0;
        for index in 0..count {
            if index == STRIDE {
                second = end - start;
            }
            let (length, used) = length(image, end)?;
            end += length + used;
            if end > tokens {
                return None;
            }
        }
        let markers = end.next_multiple_of(8);
        let fits = u32_at(image, markers)? == 0 && u32_at(image, markers + 4)? as usize == second;
        fits.then_some((start, count))
    })
}

fn addresses(image: &[u8], names: usize, count: usize, after: usize) -> Option<Vec<u64>> {
    let read = |offsets: usize, base: usize| -> Option<Vec<u64>> {
        let base = u64_at(image, base).filter(|base| *base >= KERNEL_MIN)?;
        (0..count)
            .map(|index| {
                let offset = u32_at(image, offsets + 4 * index)?.cast_signed();
                // Per-processor symbols are not negative, and absolute.
                Some(if offset >= 0 {
                    u64::from(offset.unsigned_abs())
                } else {
                    base.wrapping_sub(1)
                        .wrapping_add(u64::from(offset.unsigned_abs()))
                })
            })
            .collect()
    };
    let size = (4 * count).next_multiple_of(8);
    let before = names
        .checked_sub(16)
        .and_then(|base| read(base.checked_sub(size)?, base));
    let is_sane = |list: &Vec<u64>| {
        let ordered = list.windows(2).filter(|pair| pair[0] <= pair[1]).count();
        to_u64(ordered) * 10 > to_u64(list.len()) * 9
    };
    before.filter(is_sane).or_else(|| {
        let offsets = after.next_multiple_of(8);
        read(offsets, offsets + size).filter(is_sane)
    })
}

/// Length of a name in tokens, and the bytes that say so.
fn length(image: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = usize::from(*image.get(at)?);
    if first & 0x80 == 0 {
        return (first > 0).then_some((first, 1));
    }
    let second = usize::from(*image.get(at + 1)?);
    Some((first & 0x7F | second << 7, 2))
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

fn u16_at(image: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(image.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(image: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(image: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(image.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table as scripts/kallsyms.c writes it, without compression: every token is one character.
    fn image(since_6_4: bool, count: u32) -> Vec<u8> {
        let align = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(8), 0);
        let mut offsets: Vec<u8> = (0..count)
            .flat_map(|n| (-1 - i32::try_from(n).unwrap() * 16).to_le_bytes())
            .collect();
        align(&mut offsets);
        let base = 0xFFFF_FFFF_8100_0000_u64.to_le_bytes();
        let mut names = Vec::new();
        let mut markers = Vec::new();
        for n in 0..count {
            if n % 256 == 0 {
                markers.extend_from_slice(&u32::try_from(names.len()).unwrap().to_le_bytes());
            }
            let name = format!("Tfunction_{n}");
            names.push(u8::try_from(name.len()).unwrap());
            names.extend_from_slice(name.as_bytes());
        }
        align(&mut names);
        align(&mut markers);
        let mut table = Vec::new();
        let mut index = Vec::new();
        for code in 0..=255_u8 {
            index.extend_from_slice(&u16::try_from(table.len()).unwrap().to_le_bytes());
            if code.is_ascii_alphanumeric() || code == b'_' {
                table.push(code);
            }
            table.push(0);
        }
        align(&mut table);
        let mut image = vec![0xCC; 64];
        if !since_6_4 {
            image.extend_from_slice(&offsets);
            image.extend_from_slice(&base);
        }
        image.extend_from_slice(&u64::from(count).to_le_bytes());
        for part in [&names, &markers, &table, &index] {
            image.extend_from_slice(part);
        }
        if since_6_4 {
            image.extend_from_slice(&offsets);
            image.extend_from_slice(&base);
        }
        image.extend_from_slice(&[0xCC; 64]);
        image
    }

    #[test]
    fn both_layouts_are_read() {
        for since_6_4 in [false, true] {
            for count in [700, 1025] {
                let map = system_map(&image(since_6_4, count)).unwrap();
                assert_eq!(map.lines().count(), count as usize);
                assert_eq!(
                    map.lines().nth(513),
                    Some("ffffffff81002010 T function_513")
                );
            }
        }
    }

    #[test]
    fn an_image_without_the_table_has_no_symbols() {
        assert_eq!(system_map(&vec![7; 100_000]), None);
        assert_eq!(system_map(DIGITS), None);
    }
}
