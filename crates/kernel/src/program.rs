//! A test as the agent gets it: operations and a data area, in the layout of `agent/agent.c`.

use raddle_stdx::width::{as_u64, low_u32, to_u64};

/// Threads of a test at most.
pub const THREADS_MAX: usize = 8;
const MAGIC: u32 = 0x5444_5231;
const HEADER: usize = 24 + 8 * (2 + THREADS_MAX);
const OPERATION: usize = 120;
const EXTERNAL: u32 = 0x8000_0000;
/// The agent is to tell where modules are.
const MODULES: u32 = 0x4000_0000;
/// `init_module`
pub(crate) const INIT_MODULE: u32 = raddle_calls::number("init_module");
/// What the agent's buffer holds.
const SIZE_MAX: usize = 8 << 20;
/// Results that the agent can keep.
pub const RESULTS_MAX: usize = 4096;
const RESULT: usize = 16;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    None,
    Value(i64),
    /// Address of a place in the data area.
    Address(usize),
    /// Content of a place in the data area.
    Load {
        offset: usize,
        width: Width,
    },
}

/// Size and sign of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width {
    pub bytes: u8,
    pub signed: bool,
}

impl Width {
    pub const WORD: Self = Self {
        bytes: 8,
        signed: false,
    };

    fn code(self) -> u32 {
        let bytes = i32::from(self.bytes);
        if self.signed { -bytes } else { bytes }.cast_unsigned()
    }
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// System call with this number.
    Call(u32),
    /// Store of this many bytes.
    Store(u8),
    Add,
    Subtract,
    Compare(Relation),
    Expect,
    /// A program is run to its end.
    Run,
    And,
    Or,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub code: Code,
    /// Number of the statement it belongs to.
    pub statement: usize,
    /// Place of the result in the data area.
    pub target: usize,
    pub operands: [Operand; 6],
}

/// A whole test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    pub setup: Vec<Operation>,
    pub threads: Vec<Vec<Operation>>,
    /// Whether each thread is a process of its own.
    pub processes: Vec<bool>,
    pub check: Vec<Operation>,
    pub data: Vec<u8>,
}

/// A test that does not fit into the agent's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the test with its modules takes {size} bytes, the agent's buffer holds {SIZE_MAX}: load modules from the \
     guest's file system with --file and finit_module"
)]
pub struct TooLarge {
    size: usize,
}

impl Program {
    /// The bytes for the agent; everything movable is moved to processor `housekeeping`.
    pub fn encode(&self, housekeeping: u32) -> Result<Vec<u8>, TooLarge> {
        let sections: Vec<&[Operation]> = [&self.setup, &self.check]
            .into_iter()
            .chain(&self.threads)
            .map(Vec::as_slice)
            .collect();
        let operations: usize = sections.iter().map(|section| section.len()).sum();
        let data_offset = (HEADER + operations * OPERATION).next_multiple_of(64);
        let size = data_offset + self.data.len();
        if size > SIZE_MAX {
            return Err(TooLarge { size });
        }
        let flags = (0..)
            .zip(&self.processes)
            .fold(0, |flags, (number, is_process)| {
                flags | u32::from(*is_process) << number
            });
        let loads = |operation: &Operation| operation.code == Code::Call(INIT_MODULE);
        let modules = if self.setup.iter().any(loads) {
            MODULES
        } else {
            0
        };
        let mut bytes = header(
            low_u32(to_u64(self.threads.len())),
            flags | modules,
            low_u32(to_u64(data_offset)),
            low_u32(to_u64(self.data.len())),
            housekeeping,
        );
        let mut first = 0;
        for number in 0..2 + THREADS_MAX {
            let count = sections.get(number).map_or(0, |section| section.len());
            bytes.extend_from_slice(&low_u32(to_u64(first)).to_le_bytes());
            bytes.extend_from_slice(&low_u32(to_u64(count)).to_le_bytes());
            first += count;
        }
        for operation in sections.concat() {
            operation.encode(&mut bytes);
        }
        bytes.resize(data_offset, 0);
        bytes.extend_from_slice(&self.data);
        Ok(bytes)
    }

    /// Where the data area begins in the bytes for the agent.
    pub(crate) fn data_offset(bytes: &[u8]) -> Option<u64> {
        let offset: [u8; 4] = bytes.get(12..16)?.try_into().ok()?;
        Some(u64::from(u32::from_le_bytes(offset)))
    }

    /// The input that makes the agent tell where modules are, and end.
    pub fn tells_modules() -> Vec<u8> {
        let mut bytes = header(0, MODULES, low_u32(to_u64(HEADER)), 0, 0);
        bytes.resize(HEADER, 0);
        bytes
    }

    /// The input that makes the agent run the user's own program.
    pub fn external() -> Vec<u8> {
        let mut bytes = header(0, EXTERNAL, low_u32(to_u64(HEADER)), 0, 0);
        bytes.resize(HEADER, 0);
        bytes
    }
}

fn header(threads: u32, flags: u32, offset: u32, size: u32, housekeeping: u32) -> Vec<u8> {
    [MAGIC, threads, flags, offset, size, housekeeping]
        .map(u32::to_le_bytes)
        .concat()
}

impl Operation {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let (code, extra): (u32, u64) = match self.code {
            Code::Call(number) => (1, u64::from(number)),
            Code::Store(width) => (2, u64::from(width)),
            Code::Add => (3, 0),
            Code::Subtract => (4, 0),
            Code::Compare(relation) => (5, relation.code()),
            Code::Expect => (6, 0),
            Code::Run => (7, 0),
            Code::And => (8, 0),
            Code::Or => (9, 0),
        };
        bytes.extend_from_slice(&code.to_le_bytes());
        bytes.extend_from_slice(&low_u32(to_u64(self.statement)).to_le_bytes());
        bytes.extend_from_slice(&extra.to_le_bytes());
        bytes.extend_from_slice(&to_u64(self.target).to_le_bytes());
        for operand in self.operands {
            let (kind, width, value): (u32, u32, u64) = match operand {
                Operand::None => (0, 0, 0),
                Operand::Value(value) => (1, 0, as_u64(value)),
                Operand::Address(offset) => (2, 0, to_u64(offset)),
                Operand::Load { offset, width } => (3, width.code(), to_u64(offset)),
            };
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&width.to_le_bytes());
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
}

impl Relation {
    fn code(self) -> u64 {
        match self {
            Self::Equal => 0,
            Self::NotEqual => 1,
            Self::Less => 2,
            Self::LessEqual => 3,
            Self::Greater => 4,
            Self::GreaterEqual => 5,
        }
    }

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }
}

/// One thing that the agent tells about a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementResult {
    pub statement: usize,
    pub kind: ResultKind,
    pub value: i64,
}

/// What a result says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultKind {
    Returned,
    AsExpected,
    NotAsExpected,
}

/// Reads the agent's results; bytes that are none (a guest that overwrote them) are left out.
pub fn decode_results(bytes: &[u8]) -> Vec<StatementResult> {
    bytes
        .chunks_exact(RESULT)
        .filter_map(|chunk| {
            let word = |at: usize| {
                u32::from_le_bytes([chunk[at], chunk[at + 1], chunk[at + 2], chunk[at + 3]])
            };
            let kind = match word(4) {
                0 => ResultKind::Returned,
                1 => ResultKind::AsExpected,
                2 => ResultKind::NotAsExpected,
                _ => return None,
            };
            let value = u64::from(word(8)) | u64::from(word(12)) << 32;
            Some(StatementResult {
                statement: word(0) as usize,
                kind,
                value: value.cast_signed(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_agents() {
        let operation = Operation {
            code: Code::Call(39),
            statement: 7,
            target: 16,
            operands: [
                Operand::Load {
                    offset: 8,
                    width: Width {
                        bytes: 4,
                        signed: true,
                    },
                },
                Operand::Value(-1),
                Operand::Address(32),
                Operand::None,
                Operand::None,
                Operand::None,
            ],
        };
        let program = Program {
            threads: vec![vec![operation]],
            processes: vec![true],
            data: vec![0xAB; 3],
            ..Program::default()
        };
        let bytes = program.encode(1).unwrap();
        assert_eq!(bytes.len(), 256 + 3);
        assert_eq!(&bytes[bytes.len() - 3..], [0xAB; 3]);
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((word(4), word(8), word(12), word(20)), (1, 1, 256, 1));
        assert_eq!((word(40), word(44)), (0, 1), "thread 0 is operation 0");
        assert_eq!((word(104), word(108), word(112)), (1, 7, 39));
        assert_eq!((word(128), word(132)), (3, u32::MAX - 3));
    }

    #[test]
    fn results_come_back() {
        let mut bytes = vec![];
        bytes.extend_from_slice(&3_u32.to_le_bytes());
        bytes.extend_from_slice(&2_u32.to_le_bytes());
        bytes.extend_from_slice(&(-11_i64).to_le_bytes());
        bytes.extend_from_slice(&[0xFF; 16]);
        assert_eq!(
            decode_results(&bytes),
            [StatementResult {
                statement: 3,
                kind: ResultKind::NotAsExpected,
                value: -11
            }]
        );
    }
}
