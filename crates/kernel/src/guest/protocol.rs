//! The calls that the guest makes of the machine, as `raddle.h` numbers them.

/// A call of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Text about the guest.
    Info,
    /// The guest stands at its boot snapshot and waits for input.
    Input,
    /// A test thread stands at the start line.
    Start,
    /// A test thread is through.
    End,
    /// Results of all calls.
    Result,
    Log,
    /// The test is over.
    Finish,
    /// The test could not be run.
    Fatal,
    /// How many threads will come to the start line.
    Threads,
    /// A check of the test failed.
    Failed,
}

impl Call {
    pub const ALL: [Self; 10] = [
        Self::Info,
        Self::Input,
        Self::Start,
        Self::End,
        Self::Result,
        Self::Log,
        Self::Finish,
        Self::Fatal,
        Self::Threads,
        Self::Failed,
    ];

    pub fn number(self) -> u64 {
        match self {
            Self::Info => 1,
            Self::Input => 2,
            Self::Start => 3,
            Self::End => 4,
            Self::Result => 5,
            Self::Log => 6,
            Self::Finish => 7,
            Self::Fatal => 8,
            Self::Threads => 9,
            Self::Failed => 10,
        }
    }

    /// The call with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|call| call.number() == number)
    }

    /// Name of the constant in the header.
    pub fn constant(self) -> &'static str {
        match self {
            Self::Info => "RADDLE_INFO",
            Self::Input => "RADDLE_INPUT",
            Self::Start => "RADDLE_START",
            Self::End => "RADDLE_END",
            Self::Result => "RADDLE_RESULT",
            Self::Log => "RADDLE_LOG",
            Self::Finish => "RADDLE_FINISH",
            Self::Fatal => "RADDLE_FATAL",
            Self::Threads => "RADDLE_THREADS",
            Self::Failed => "RADDLE_FAILED",
        }
    }
}
