//! How the results of operations are compared with those of serial orders: what a test says about deliberate deviations.

use serde::{Deserialize, Serialize};

/// The rules of a test; without any, everything must be equal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SerialRules {
    /// The first one that names an operation holds for it.
    #[serde(default, rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<SerialRule>,
    #[serde(default, rename = "mask", skip_serializing_if = "Vec::is_empty")]
    pub masks: Vec<Mask>,
    /// Files that are state: paths in which `*` stands for anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_files: Vec<String>,
    /// An operation that needs more than so many times the steps of its slowest serial run is a finding; none for no
    /// such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_than: Option<u64>,
}

/// How the results of some operations are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SerialRule {
    /// The name of operations or probes; `*` stands for anything.
    pub operation: String,
    pub compare: Compare,
    /// Why this deviation is accepted.
    pub reason: String,
}

/// A way to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    #[default]
    Equal,
    /// The same lines in any order.
    Unordered,
    /// Each line of the concurrent run is one of the serial run, as of a cache that may leave entries out.
    ConcurrentInSerial,
    /// Each line of the serial run is one of the concurrent run.
    SerialInConcurrent,
    /// Whatever it gives.
    Ignore,
}

/// A part of results that is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mask {
    /// A regular expression; what it matches is left out.
    pub pattern: String,
    /// Why this varies.
    pub reason: String,
}
