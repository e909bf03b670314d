//! The Debian package: the static programs, the library that compilers load, and what shells and `man` look for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::output;
use crate::install;

/// What the programs can use but run without: harden wants LLVM, kernel tests want file systems, replay a debugger.
const RECOMMENDS: &str = "clang-22, lld-22, llvm-22, gdb, e2fsprogs, btrfs-progs";

/// Builds the package in `out` from the folder of the static programs.
pub(super) fn package(
    programs: &Path,
    plugin: &Path,
    out: &Path,
    version: &str,
    moment: &str,
) -> anyhow::Result<PathBuf> {
    let root = out.join("package");
    let bin = root.join("usr/bin");
    for program in install::PROGRAMS {
        put(&programs.join(program), &bin.join(program), 0o755)?;
    }
    for name in install::LINKS {
        std::os::unix::fs::symlink(install::PROGRAMS[0], bin.join(name))?;
    }
    put(
        plugin,
        &root.join("usr/lib/raddle").join(install::PLUGIN),
        0o644,
    )?;
    let share = root.join("usr/share");
    for (shell, place) in [
        ("bash", "bash-completion/completions/raddle"),
        ("fish", "fish/vendor_completions.d/raddle.fish"),
        ("zsh", "zsh/vendor-completions/_raddle"),
    ] {
        let from = programs.join("completions").join(format!("raddle.{shell}"));
        put(&from, &share.join(place), 0o644)?;
    }
    for page in fs::read_dir(programs.join("man"))? {
        let page = page?;
        let to = share.join("man/man1").join(page.file_name());
        put(&page.path(), &to, 0o644)?;
        compress(&to)?;
    }
    let doc = share.join("doc/raddle");
    put(
        &programs.join("CHANGELOG.md"),
        &doc.join("changelog"),
        0o644,
    )?;
    compress(&doc.join("changelog"))?;
    write(&doc.join("copyright"), &copyright(programs)?)?;
    write(&root.join("DEBIAN/control"), control(version))?;
    folders_for_all(&root)?;

    let package = out.join(format!("raddle_{version}_amd64.deb"));
    output(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "--build"])
            .args([&root, &package])
            .env("SOURCE_DATE_EPOCH", moment),
    )?;
    fs::remove_dir_all(&root)?;
    Ok(package)
}

fn control(version: &str) -> String {
    format!(
        "Package: raddle\n\
         Version: {version}\n\
         Architecture: amd64\n\
         Maintainer: The raddle developers <raddle@localhost>\n\
         Section: devel\n\
         Priority: optional\n\
         Recommends: {RECOMMENDS}\n\
         Suggests: nats-server, libc6-dbg\n\
         Description: finds, explains, reproduces and survives concurrency bugs\n \
         raddle runs unmodified Linux programs and kernels on a deterministic machine\n \
         of its own and decides who runs next: it finds the interleaving in which a\n \
         program fails, makes it small, tells it and replays it bit for bit.\n"
    )
}

fn copyright(programs: &Path) -> anyhow::Result<String> {
    let mit = fs::read_to_string(programs.join("LICENSE-MIT"))?;
    Ok(format!(
        "raddle is licensed under the Apache License 2.0, which is\n\
         /usr/share/common-licenses/Apache-2.0, or under the following, at your option.\n\n{mit}"
    ))
}

fn put(from: &Path, to: &Path, mode: u32) -> anyhow::Result<()> {
    write(to, &fs::read(from)?)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn write(to: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(to, content)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o644))?;
    Ok(())
}

/// Without name and time, so that one content gives one file.
fn compress(file: &Path) -> anyhow::Result<()> {
    output(
        Command::new("gzip")
            .args(["-9", "--no-name", "--force"])
            .arg(file),
    )?;
    Ok(())
}

/// A strict umask of the builder must not decide who may enter the folders of the package.
fn folders_for_all(folder: &Path) -> anyhow::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders_for_all(&entry.path())?;
        }
    }
    Ok(())
}
