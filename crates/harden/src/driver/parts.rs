//! Writes the runtime and the header into a folder, once per version of them.

use std::io;
use std::path::{Path, PathBuf};

use raddle_harden_rt::{ARCHIVES, HEADER, Part};
use raddle_stdx::Digest;

/// Where the parts of a hardened build are.
#[derive(Debug, Clone)]
pub struct Parts {
    pub folder: PathBuf,
    pub include: PathBuf,
    pub archives: Vec<PathBuf>,
}

/// Makes sure that the parts are in a folder of their own below `cache`.
pub fn install(cache: &Path) -> io::Result<Parts> {
    let folder = cache.join(format!("harden-{}", fingerprint()));
    let include = folder.join("include");
    std::fs::create_dir_all(&include)?;
    let mut archives = Vec::new();
    for part in ARCHIVES {
        archives.push(place(&folder, part)?);
    }
    place(&include, HEADER)?;
    Ok(Parts {
        folder,
        include,
        archives,
    })
}

fn fingerprint() -> String {
    let mut digest = Digest::default();
    for part in ARCHIVES.iter().chain([&HEADER]) {
        digest.bytes(part.bytes);
    }
    format!("{:016x}", digest.value())
}

/// Written under another name first: a parallel build must never see half a file.
fn place(folder: &Path, part: Part) -> io::Result<PathBuf> {
    let path = folder.join(part.name);
    if path.is_file() {
        return Ok(path);
    }
    let partial = folder.join(format!("{}.{}", part.name, std::process::id()));
    std::fs::write(&partial, part.bytes)?;
    std::fs::rename(&partial, &path)?;
    Ok(path)
}
