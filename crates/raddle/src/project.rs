//! The project's own `raddle.toml`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use raddle_config::Config;
use raddle_stdx::regular_file;

pub(crate) const FILE_NAME: &str = "raddle.toml";
/// Bytes of a configuration at most.
const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// A configuration, and the folder to which its paths are relative.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) config: Config,
    pub(crate) folder: PathBuf,
}

impl Default for Project {
    fn default() -> Self {
        let config = Config {
            version: raddle_config::VERSION,
            hooks: Vec::new(),
            suppress: Vec::new(),
            scan: raddle_config::scan::Scan::default(),
            harden: raddle_config::harden::Harden::default(),
            kernel: raddle_config::kernel::Kernel::default(),
        };
        Self {
            config,
            folder: PathBuf::new(),
        }
    }
}

/// Reads the configuration that was named, or else the nearest `raddle.toml`: in the working folder or above it. There
/// need not be one.
pub(crate) fn read(named: Option<&Path>) -> anyhow::Result<Project> {
    let Some(path) = named.map(Path::to_owned).or_else(nearest) else {
        return Ok(Project::default());
    };
    // It may be a stranger's: the nearest one is that of the source tree.
    let text = regular_file::read(&path, CONFIG_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8(text)
        .with_context(|| format!("cannot use {}: it is not UTF-8", path.display()))?;
    let config =
        raddle_config::parse(&text).with_context(|| format!("cannot use {}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok(Project { config, folder })
}

/// Relative to the working folder, as a user would write it.
fn nearest() -> Option<PathBuf> {
    let levels = std::env::current_dir().ok()?.ancestors().count();
    (0..levels)
        .map(|level| std::iter::repeat_n("..", level).collect::<PathBuf>())
        .map(|folder| folder.join(FILE_NAME))
        .find(|path| path.is_file())
}
