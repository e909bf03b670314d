//! The project's own `raddle.toml`.

use std::path::Path;

use anyhow::Context;
use raddle_config::Config;

/// What commands read if they are not told otherwise; it need not exist.
pub(crate) const DEFAULT_PATH: &str = "raddle.toml";

/// Reads a configuration; none if it is the default one and does not exist.
pub(crate) fn config(path: &Path) -> anyhow::Result<Option<Config>> {
    let text = match std::fs::read_to_string(path) {
        Err(error)
            if path == Path::new(DEFAULT_PATH) && error.kind() == std::io::ErrorKind::NotFound =>
        {
            return Ok(None);
        }
        other => other.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let config =
        raddle_config::parse(&text).with_context(|| format!("cannot use {}", path.display()))?;
    Ok(Some(config))
}
