//! The types that a Linux kernel carries for BPF programs (BTF), as far as they say what lies in its per-CPU variables and
//! in what its functions allocate.
//!
//! BTF has no addresses of functions and no variables but per-CPU ones, whose offsets and types it lists.
//! Everything read here may be damaged: what cannot be followed has no answer.

use std::ops::Range;

use raddle_stdx::width::to_usize;

const MAGIC: u16 = 0xEB9F;
/// Section of the per-CPU variables.
const PER_CPU: &str = ".data..percpu";
/// Types of Linux that are locked, or waited for, as a whole.
const LOCKS: [&str; 13] = [
    "mutex",
    "spinlock_t",
    "raw_spinlock_t",
    "rwlock_t",
    "rw_semaphore",
    "percpu_rw_semaphore",
    "semaphore",
    "rt_mutex",
    "ww_mutex",
    "srcu_struct",
    "completion",
    "wait_queue_head_t",
    "seqlock_t",
];
/// Types within types that are followed.
const DEPTH_MAX: usize = 32;

mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const POINTER: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNCTION: u32 = 12;
    pub(super) const FUNCTION_TYPE: u32 = 13;
    pub(super) const VARIABLE: u32 = 14;
    pub(super) const SECTION: u32 = 15;
    pub(super) const DECLARATION_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// Types of one kernel.
#[derive(Debug)]
pub struct Btf {
    bytes: Box<[u8]>,
    strings: usize,
    /// Where each type begins; numbers begin at 1.
    types: Vec<usize>,
    /// Offset, size and number of the per-CPU variables, ascending.
    per_cpu: Vec<(u64, u64, u32)>,
}

/// A lock as a part of something: `pipe_inode_info.mutex`, which is a `struct mutex`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockPart {
    pub path: String,
    pub type_name: String,
}

/// A member of a structure or union.
#[derive(Debug)]
struct Member {
    name: u32,
    number: u32,
    bytes: Range<u64>,
}

/// A type, without what follows its head.
#[derive(Debug, Clone, Copy)]
struct Head {
    name: u32,
    kind: u32,
    /// Whether members carry the size of their bit fields.
    has_bit_sizes: bool,
    length: u32,
    /// Size, or the type that it refers to.
    refers: u32,
    /// Where the rest is.
    rest: usize,
}

impl Btf {
    /// Reads the content of a `.BTF` section; none if it is something else, or has no per-CPU variables.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let header = |at| word(bytes, at).map(|value| to_usize(u64::from(value)));
        let start = header(4)?;
        let types = start.checked_add(header(8)?)?;
        let types_end = types.checked_add(header(12)?)?;
        let mut btf = Self {
            bytes: bytes.into(),
            strings: start.checked_add(header(16)?)?,
            types: Vec::new(),
            per_cpu: Vec::new(),
        };
        let mut at = types;
        while at < types_end {
            let head = btf.head_at(at)?;
            btf.types.push(at);
            if head.kind == kind::SECTION && btf.text(head.name)? == PER_CPU {
                btf.per_cpu = btf.variables(head)?;
            }
            at = head.rest + rest_size(head);
        }
        (!btf.per_cpu.is_empty()).then_some(btf)
    }

    /// The innermost part of a per-CPU variable at an offset in a processor's copy, and the bytes up to the offset in
    /// it: `("runqueues.cfs.nr_running", 0)`.
    pub fn per_cpu_at(&self, offset: u64) -> Option<(String, u64)> {
        let (variable, inside) = self.per_cpu_variable(offset)?;
        let mut path = self.text(variable.name)?.to_owned();
        let rest = self.descend(variable.refers, inside, &mut path);
        Some((path, rest))
    }

    /// The per-CPU variable at an offset, and the offset in it.
    fn per_cpu_variable(&self, offset: u64) -> Option<(Head, u64)> {
        let index = self.per_cpu.partition_point(|(start, ..)| *start <= offset);
        let (start, size, number) = *self.per_cpu.get(index.checked_sub(1)?)?;
        let variable = self
            .head(number)
            .filter(|head| head.kind == kind::VARIABLE)?;
        (offset - start < size).then_some((variable, offset - start))
    }

    /// The lock at an offset in a processor's copy of the per-CPU variables.
    pub fn per_cpu_lock_at(&self, offset: u64) -> Option<LockPart> {
        let (variable, inside) = self.per_cpu_variable(offset)?;
        let path = self.text(variable.name)?.to_owned();
        self.lock_in(variable.refers, inside, path, DEPTH_MAX)
    }

    /// The lock at an offset of what a function returns a pointer to, if that is a structure of this size: then the
    /// block of this size that the function allocates is one, as far as anybody can know.
    pub fn returned_lock_at(&self, function: &str, size: u64, offset: u64) -> Option<LockPart> {
        let number = self.returned_structure(function)?;
        let head = self.head(number)?;
        if u64::from(head.refers) != size {
            return None;
        }
        let path = self.text(head.name)?.to_owned();
        self.lock_in(number, offset, path, DEPTH_MAX)
    }

    /// The structure that a function returns a pointer to.
    fn returned_structure(&self, function: &str) -> Option<u32> {
        let mut heads = self.types.iter().filter_map(|at| self.head_at(*at));
        let found = heads
            .find(|head| head.kind == kind::FUNCTION && self.text(head.name) == Some(function))?;
        let of = |number, wanted| self.head(number).filter(|head| head.kind == wanted);
        let returns = of(found.refers, kind::FUNCTION_TYPE)?.refers;
        let number = self.unqualified(of(returns, kind::POINTER)?.refers)?;
        of(number, kind::STRUCT).map(|_| number)
    }

    /// A type without `const` and its like, and without the names that it has besides its own.
    fn unqualified(&self, number: u32) -> Option<u32> {
        let mut number = number;
        for _ in 0..DEPTH_MAX {
            let head = self.head(number)?;
            match head.kind {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    number = head.refers;
                }
                _ => return Some(number),
            }
        }
        None
    }

    /// The outermost lock that begins at an offset of a type. Members of a union are tried one after the other.
    fn lock_in(&self, number: u32, offset: u64, path: String, depth: usize) -> Option<LockPart> {
        let depth = depth.checked_sub(1)?;
        let head = self.head(number)?;
        let name = self.text(head.name)?;
        let is_named = matches!(head.kind, kind::TYPEDEF | kind::STRUCT);
        if offset == 0 && is_named && LOCKS.contains(&name) {
            let type_name = match head.kind {
                kind::STRUCT => format!("struct {name}"),
                _ => name.to_owned(),
            };
            return Some(LockPart { path, type_name });
        }
        match head.kind {
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                self.lock_in(head.refers, offset, path, depth)
            }
            kind::STRUCT | kind::UNION => (0..head.length).find_map(|index| {
                let member = self.member_of(head, index)?;
                if !member.bytes.contains(&offset) {
                    return None;
                }
                let name = self.text(member.name)?;
                let dot = if name.is_empty() { "" } else { "." };
                let path = format!("{path}{dot}{name}");
                self.lock_in(member.number, offset - member.bytes.start, path, depth)
            }),
            kind::ARRAY => {
                let mut path = path;
                let (number, inside) = self.element(head, offset, &mut path)?;
                self.lock_in(number, inside, path, depth)
            }
            _ => None,
        }
    }

    fn variables(&self, section: Head) -> Option<Vec<(u64, u64, u32)>> {
        let mut variables = Vec::new();
        for index in 0..section.length {
            let at = section.rest + to_usize(u64::from(index)) * 12;
            let field = |offset| word(&self.bytes, at + offset);
            variables.push((field(4)?.into(), field(8)?.into(), field(0)?));
        }
        variables.sort_unstable();
        Some(variables)
    }

    /// Adds the way to what lies at an offset of a type; gives the bytes that are left.
    fn descend(&self, number: u32, offset: u64, path: &mut String) -> u64 {
        let (mut number, mut offset) = (number, offset);
        for _ in 0..DEPTH_MAX {
            let Some(head) = self.head(number) else {
                break;
            };
            let inner = match head.kind {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    Some((head.refers, offset))
                }
                kind::STRUCT | kind::UNION => self.member(head, offset, path),
                kind::ARRAY => self.element(head, offset, path),
                _ => None,
            };
            let Some(inner) = inner else {
                break;
            };
            (number, offset) = inner;
        }
        offset
    }

    /// The member of a structure or union at an offset: its type and the offset in it.
    fn member(&self, head: Head, offset: u64, path: &mut String) -> Option<(u32, u64)> {
        for index in 0..head.length {
            let member = self.member_of(head, index)?;
            if member.bytes.contains(&offset) {
                let name = self.text(member.name)?;
                if !name.is_empty() {
                    path.push('.');
                    path.push_str(name);
                }
                return Some((member.number, offset - member.bytes.start));
            }
        }
        None
    }

    /// A member of a structure or union.
    fn member_of(&self, head: Head, index: u32) -> Option<Member> {
        let at = head.rest + to_usize(u64::from(index)) * 12;
        let field = |offset| word(&self.bytes, at + offset);
        let (name, number, bits) = (field(0)?, field(4)?, field(8)?);
        let (first, width) = if head.has_bit_sizes {
            (bits & 0x00FF_FFFF, bits >> 24)
        } else {
            (bits, 0)
        };
        let start = u64::from(first / 8);
        let size = match width {
            0 => self.size(number, DEPTH_MAX)?,
            width => u64::from((first % 8 + width).div_ceil(8)),
        };
        Some(Member {
            name,
            number,
            bytes: start..start.saturating_add(size),
        })
    }

    fn element(&self, head: Head, offset: u64, path: &mut String) -> Option<(u32, u64)> {
        let number = word(&self.bytes, head.rest)?;
        let size = self.size(number, DEPTH_MAX).filter(|size| *size > 0)?;
        path.push_str(&format!("[{}]", offset / size));
        Some((number, offset % size))
    }

    fn size(&self, number: u32, depth: usize) -> Option<u64> {
        let head = self.head(number)?;
        let depth = depth.checked_sub(1)?;
        match head.kind {
            kind::INT | kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64 => {
                Some(head.refers.into())
            }
            kind::POINTER => Some(8),
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                self.size(head.refers, depth)
            }
            kind::ARRAY => {
                let element = self.size(word(&self.bytes, head.rest)?, depth)?;
                element.checked_mul(word(&self.bytes, head.rest + 8)?.into())
            }
            _ => None,
        }
    }

    fn head(&self, number: u32) -> Option<Head> {
        let index = to_usize(u64::from(number)).checked_sub(1)?;
        self.head_at(*self.types.get(index)?)
    }

    fn head_at(&self, at: usize) -> Option<Head> {
        let info = word(&self.bytes, at.checked_add(4)?)?;
        Some(Head {
            name: word(&self.bytes, at)?,
            kind: info >> 24 & 0x1F,
            has_bit_sizes: info >> 31 != 0,
            length: info & 0xFFFF,
            refers: word(&self.bytes, at + 8)?,
            rest: at + 12,
        })
    }

    fn text(&self, at: u32) -> Option<&str> {
        let start = self.strings.checked_add(to_usize(u64::from(at)))?;
        let rest = self.bytes.get(start..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}

/// Bytes that follow the head of a type.
fn rest_size(head: Head) -> usize {
    let each = match head.kind {
        kind::INT | kind::VARIABLE | kind::DECLARATION_TAG => return 4,
        kind::ARRAY => return 12,
        kind::STRUCT | kind::UNION | kind::SECTION | kind::ENUM64 => 12,
        kind::ENUM | kind::FUNCTION_TYPE => 8,
        _ => 0,
    };
    to_usize(u64::from(head.length)) * each
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings, with the offset of each.
    fn strings(names: &[&str]) -> (Vec<u8>, impl Fn(&str) -> u32) {
        let mut bytes = vec![0];
        let mut offsets = std::collections::BTreeMap::new();
        for name in names {
            offsets.insert((*name).to_owned(), u32::try_from(bytes.len()).unwrap());
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
        }
        (bytes, move |name: &str| {
            offsets.get(name).copied().unwrap_or(0)
        })
    }

    /// `struct { int lock; const counts loads; struct { int low:3; int high:5; }; } queues` for each processor at 0x40,
    /// with `typedef int counts[4]`.
    fn kernel() -> Vec<u8> {
        let names = [
            "int",
            "lock",
            "loads",
            "counts",
            "queues",
            "low",
            "high",
            PER_CPU,
            "mutex",
            "pipe",
            "open",
            "make_pipe",
        ];
        let (strings, at) = strings(&names);
        let head = |kind: u32, length: u32, name: &str, refers: u32| {
            vec![at(name), kind << 24 | length, refers]
        };
        let bit_sizes = |mut head: Vec<u32>| {
            head[1] |= 1 << 31;
            head
        };
        let member = |name: &str, number: u32, offset: u32| vec![at(name), number, offset];
        let types = [
            head(kind::INT, 0, "int", 4),
            vec![32],
            head(kind::ARRAY, 0, "", 0),
            vec![1, 1, 4],
            head(kind::TYPEDEF, 0, "counts", 2),
            head(kind::CONST, 0, "", 3),
            bit_sizes(head(kind::STRUCT, 2, "", 4)),
            member("low", 1, 3 << 24),
            member("high", 1, 5 << 24 | 8),
            head(kind::STRUCT, 3, "", 24),
            member("lock", 1, 0),
            member("loads", 4, 32),
            member("", 5, 160),
            head(kind::VARIABLE, 0, "queues", 6),
            vec![1],
            head(kind::SECTION, 1, PER_CPU, 0),
            vec![7, 0x40, 24],
            head(kind::STRUCT, 1, "mutex", 4),
            member("lock", 1, 0),
            head(kind::UNION, 2, "", 4),
            member("low", 1, 0),
            member("lock", 9, 0),
            head(kind::STRUCT, 2, "pipe", 8),
            member("open", 1, 0),
            member("", 10, 32),
            head(kind::POINTER, 0, "", 11),
            head(kind::FUNCTION_TYPE, 0, "", 12),
            head(kind::FUNCTION, 0, "make_pipe", 13),
        ]
        .concat();
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_le_bytes()).collect();
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
        let header = [24, 0, size(&types), size(&types), size(&strings)];
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0]);
        bytes.extend(header.iter().flat_map(|word: &u32| word.to_le_bytes()));
        [bytes, types, strings].concat()
    }

    #[test]
    fn offsets_become_parts_of_variables() {
        let btf = Btf::parse(&kernel()).unwrap();
        let name = |offset| btf.per_cpu_at(offset);
        let part = |path: &str, rest| Some((path.to_owned(), rest));
        assert_eq!(name(0x40), part("queues.lock", 0));
        assert_eq!(name(0x4a), part("queues.loads[1]", 2));
        assert_eq!(name(0x54), part("queues.low", 0));
        assert_eq!(name(0x55), part("queues.high", 0));
        assert_eq!(name(0x3f), None);
        assert_eq!(name(0x58), None);
    }

    #[test]
    fn a_lock_is_known_by_what_the_allocating_function_returns() {
        let btf = Btf::parse(&kernel()).unwrap();
        let lock = |function, size, offset| btf.returned_lock_at(function, size, offset);
        let part = LockPart {
            path: "pipe.lock".to_owned(),
            type_name: "struct mutex".to_owned(),
        };
        assert_eq!(lock("make_pipe", 8, 4), Some(part));
        assert_eq!(lock("make_pipe", 8, 0), None, "no lock is there");
        assert_eq!(
            lock("make_pipe", 16, 4),
            None,
            "it allocated something else"
        );
        assert_eq!(lock("other", 8, 4), None);
        assert_eq!(btf.per_cpu_lock_at(0x40), None);
    }

    #[test]
    fn damage_gives_no_answer_and_no_panic() {
        let whole = kernel();
        for end in 0..whole.len() {
            let _any = Btf::parse(&whole[..end]);
        }
        for at in 0..whole.len() {
            for flip in [0x01, 0x10, 0x80, 0xFF] {
                let mut spoilt = whole.clone();
                spoilt[at] ^= flip;
                if let Some(btf) = Btf::parse(&spoilt) {
                    let _any: Vec<_> = (0x30..0x70).map(|at| btf.per_cpu_at(at)).collect();
                    let _any = btf.returned_lock_at("make_pipe", 8, 4);
                }
            }
        }
        assert!(Btf::parse(b"something else").is_none());
    }
}
