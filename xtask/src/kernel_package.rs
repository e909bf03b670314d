//! The packaged kernels that the tests of `raddle kernel` boot: downloaded and unpacked, never installed.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::shell;

/// The metapackages, and folders of the target folder; what they depend on has a number that changes with every update.
const KERNELS: [(&str, &str); 2] = [
    ("linux-image-cloud-amd64", "kernel"),
    ("linux-image-6.12-cloud-amd64", "kernel-6.12"),
];

/// Puts `boot/` and `lib/modules/` of the packaged kernels into folders of the target folder.
pub(crate) fn install() -> anyhow::Result<()> {
    for (metapackage, folder) in KERNELS {
        unpack(metapackage, &shell::target_folder().join(folder))?;
    }
    Ok(())
}

fn unpack(metapackage: &str, folder: &Path) -> anyhow::Result<()> {
    if has_kernel(folder) {
        return Ok(());
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let package = resolve(metapackage)?;
    let status = Command::new("apt-get")
        .args(["download", "-q", &package])
        .current_dir(folder)
        .status()
        .context("cannot start `apt-get`")?;
    anyhow::ensure!(
        status.success(),
        "`apt-get download {package}` ended with {status}"
    );
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            let (file, into) = (path.display().to_string(), folder.display().to_string());
            shell::run("dpkg-deb", &["-x", &file, &into])?;
            std::fs::remove_file(&path)?;
        }
    }
    anyhow::ensure!(has_kernel(folder), "{package} has no boot/vmlinuz");
    Ok(())
}

fn has_kernel(folder: &Path) -> bool {
    std::fs::read_dir(folder.join("boot")).is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("vmlinuz"))
        })
    })
}

/// The package that the metapackage stands for.
fn resolve(metapackage: &str) -> anyhow::Result<String> {
    let output = Command::new("apt-cache")
        .args(["depends", metapackage])
        .output()
        .context("cannot start `apt-cache`")?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .find_map(|line| line.trim().strip_prefix("Depends: linux-image"))
        .map(|rest| format!("linux-image{}", rest.trim()))
        .with_context(|| format!("apt knows no {metapackage}: run `apt-get update`"))
}
