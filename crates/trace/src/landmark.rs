//! Places in words that outlive a small change of the program.

use serde::{Deserialize, Serialize};

/// Where a deviation happened, by function, line and visit instead of by steps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Landmark {
    /// The path of the program; empty for the one that is explored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The function as the linker or a reader names it; empty for a context that could not run.
    pub function: String,
    /// Bytes from the start of the function, and bytes of the function.
    pub offset: u64,
    pub size: u64,
    /// The source line; empty where it is not known.
    pub text: String,
    /// Which one of the pieces of code of this line in the function, and bytes from its start.
    pub piece: u32,
    pub piece_offset: u64,
    /// How often the context has stood there, this time included.
    pub visit: u64,
}
