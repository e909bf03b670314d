//! Three accesses to the same bytes, the middle one by another context, that no serial order gives.

/// What two accesses of one context and one of another between them do.
#[derive(Debug, Clone, Copy)]
pub struct Triple {
    pub first_writes: bool,
    pub remote_writes: bool,
    pub second_reads: bool,
    pub second_writes: bool,
}

/// The cases in which no serial order gives the same result (Lu, Tucek, Qin, Zhou: AVIO, ASPLOS 2006).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    /// Two reads give different values.
    ReadWriteRead,
    /// What was written is not read.
    WriteWriteRead,
    /// Something half done is seen.
    WriteReadWrite,
    /// A write is based on what is no longer so.
    ReadWriteWrite,
}

impl Case {
    /// None if some serial order gives the same result.
    pub fn of(triple: Triple) -> Option<Self> {
        if !triple.remote_writes {
            let is_half_done = triple.first_writes && triple.second_writes;
            return is_half_done.then_some(Self::WriteReadWrite);
        }
        // An instruction that reads and writes is judged by what it does first at its end of the pair.
        match (triple.first_writes, triple.second_reads) {
            (true, true) => Some(Self::WriteWriteRead),
            (false, true) => Some(Self::ReadWriteRead),
            (false, false) => Some(Self::ReadWriteWrite),
            (true, false) => None,
        }
    }

    /// In the letters of the papers.
    pub fn letters(self) -> &'static str {
        match self {
            Self::ReadWriteRead => "R-W-R",
            Self::WriteWriteRead => "W-W-R",
            Self::WriteReadWrite => "W-R-W",
            Self::ReadWriteWrite => "R-W-W",
        }
    }
}
