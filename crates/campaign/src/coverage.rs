//! What runs have covered, under names that outlive a campaign.

use std::collections::BTreeMap;

use raddle_detect::Covered;
pub use raddle_detect::{Reach, Spaces};
use serde::{Deserialize, Serialize};

use crate::subject::Stage;

/// An instruction of a build.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CodeName {
    /// The build-id of its module; the path of the module if it has none.
    pub build: String,
    pub function: String,
    /// Bytes from the start of the function.
    pub offset: u64,
    /// Empty where it is not known.
    pub file: String,
    pub line: u32,
}

/// What runs have covered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedCoverage {
    pub places: BTreeMap<CodeName, Reach>,
    pub spaces: Spaces,
}

impl NamedCoverage {
    /// Names what was covered; what has no name is left out.
    pub fn of<S: Stage>(stage: &mut S, covered: Covered) -> Self {
        let mut places: BTreeMap<CodeName, Reach> = BTreeMap::new();
        for (site, reach) in covered.sites {
            if let Some(name) = stage.name_code(site) {
                let known = places.entry(name).or_insert(reach);
                *known = (*known).max(reach);
            }
        }
        Self {
            places,
            spaces: covered.spaces,
        }
    }
}
