//! `raddle.toml`: what the user's project tells raddle about itself.
//!
//! The file is versioned and strict: an unknown key is an error with its place, because a silently
//! ignored line in a configuration is a check that silently does not happen.
//! Each tool has its own table and its own module here; this crate knows none of the tools.

use serde::Deserialize;

pub mod harden;
pub mod hooks;
pub mod kernel;
pub mod scan;
pub mod suppress;

/// The only version there is so far.
pub const VERSION: u32 = 1;

/// A whole `raddle.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub version: u32,
    /// Functions of the project that mean synchronisation or allocation.
    #[serde(default)]
    pub hooks: Vec<hooks::Hook>,
    /// Findings of runs to leave out.
    #[serde(default)]
    pub suppress: Vec<suppress::Suppression>,
    /// What `raddle scan` reads.
    #[serde(default)]
    pub scan: scan::Scan,
    /// For `raddle harden` and its compiler drivers.
    #[serde(default)]
    pub harden: harden::Harden,
    /// For `raddle kernel`.
    #[serde(default)]
    pub kernel: kernel::Kernel,
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not TOML, or not our keys; the message shows the line.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    #[error("this raddle reads configuration version {VERSION}, the file says {found}")]
    Version { found: u32 },
}

/// Reads the text of a `raddle.toml`.
pub fn parse(text: &str) -> Result<Config, ConfigError> {
    let config: Config = toml::from_str(text)?;
    if config.version != VERSION {
        return Err(ConfigError::Version {
            found: config.version,
        });
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_named() {
        let error = parse("version = 1\nlokcs = 2\n").unwrap_err().to_string();
        assert!(error.contains("lokcs"), "{error}");
    }

    #[test]
    fn other_versions_are_refused() {
        assert!(matches!(
            parse("version = 9"),
            Err(ConfigError::Version { found: 9 })
        ));
    }
}
