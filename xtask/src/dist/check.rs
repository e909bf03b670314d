//! `cargo xtask check-dist`: what `dist` makes works where people take it: on a root that holds nothing but a static
//! busybox, and as a package of a bare Debian that can be taken away again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::output;
use crate::{check_install, shell};

const BUSYBOX: &str = "/bin/busybox";
const DEBIAN: &str = "bookworm";

pub(crate) fn run() -> anyhow::Result<()> {
    let made = super::make(
        &shell::target_folder().join("dist-trial"),
        &check_install::QUICK,
    )?;
    in_a_bare_root(&made.programs.join("raddle"))?;
    as_a_package(&made.package)
}

/// Two threads that lose an update; the assertion fails in some interleavings.
const ACCOUNT: &str = "\
#include <assert.h>
#include <pthread.h>
static int balance;
static void *pay(void *amount) { balance += *(int *)amount; return 0; }
int main(void)
{
    int amounts[2] = {50, 30};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, pay, &amounts[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    assert(balance == 80);
    return 0;
}
";

/// Neither libraries nor `/proc`, `/tmp`, `/etc`: what raddle needs of a machine must be in its own file.
fn in_a_bare_root(raddle: &Path) -> anyhow::Result<()> {
    let root = emptied(&shell::target_folder().join("bare-root"))?;
    fs::create_dir_all(root.join("bin"))?;
    fs::copy(BUSYBOX, root.join("bin/busybox"))
        .with_context(|| format!("{BUSYBOX} is missing; `cargo xtask setup` installs it"))?;
    fs::copy(raddle, root.join("bin/raddle"))?;
    let source = root.join("account.c");
    fs::write(&source, ACCOUNT)?;
    output(
        Command::new("gcc")
            .args(["-g", "-static", "-pthread"])
            .arg(&source)
            .arg("-o")
            .arg(root.join("account")),
    )?;

    let greeting = output(&mut inside(
        &root,
        &["raddle", "run", "--", "/bin/busybox", "echo", "here"],
    ))?;
    anyhow::ensure!(greeting == b"here\n", "a bare root printed {greeting:?}");
    let explored = inside(
        &root,
        &["raddle", "explore", "--until-found", "--", "/account"],
    )
    .output()?;
    let told = String::from_utf8_lossy(&explored.stdout).into_owned();
    anyhow::ensure!(
        explored.status.code() == Some(1) && told.contains("assertion failed"),
        "exploring in a bare root ended with {} and told:\n{told}{}",
        explored.status,
        String::from_utf8_lossy(&explored.stderr)
    );
    let recording = recordings(&root)?
        .pop()
        .context("no recording was left in the bare root")?;
    let again = inside(&root, &["raddle", "replay", &recording]).output()?;
    anyhow::ensure!(
        again.status.code() == Some(1),
        "replaying in a bare root ended with {}: {}",
        again.status,
        String::from_utf8_lossy(&again.stderr)
    );
    Ok(())
}

fn recordings(root: &Path) -> anyhow::Result<Vec<String>> {
    let names = fs::read_dir(root)?
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| name.ends_with(".raddle")).collect())
}

/// The package goes into a Debian that has nothing but what every Debian has, works there, and leaves nothing behind.
fn as_a_package(package: &Path) -> anyhow::Result<()> {
    let root = debian()?;
    let before = files(&root)?;
    let name = "raddle.deb";
    fs::copy(package, root.join(name))?;
    let apt = |arguments: &[&str]| {
        let mut command = in_debian(
            &root,
            &["apt-get", "--quiet", "--yes", "--no-install-recommends"],
        );
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        output(&mut command)
    };
    let file = format!("/{name}");
    apt(&["install", file.as_str()])?;
    for arguments in [
        &["raddle", "--version"][..],
        &["raddle", "doctor"],
        &["raddle", "run", "--", "/bin/true"],
        &["cargo-raddle", "raddle", "--help"],
        &["cargo-raddle", "raddle", "test", "--help"],
    ] {
        output(&mut in_debian(&root, arguments))?;
    }
    // Nothing of LLVM is here, which `raddle cc` has to say in words.
    let refused = in_debian(&root, &["raddle-cc", "--version"]).output()?;
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    anyhow::ensure!(
        !refused.status.success() && words.contains("clang-22"),
        "without LLVM, raddle-cc ended with {} and said: {words}",
        refused.status
    );
    apt(&["remove", "raddle"])?;
    fs::remove_file(root.join(name))?;
    let left: Vec<String> = files(&root)?.difference(&before).cloned().collect();
    anyhow::ensure!(
        left.is_empty(),
        "the removed package left {}",
        left.join(", ")
    );
    Ok(())
}

/// A minimal Debian from the mirror that this machine itself uses.
fn debian() -> anyhow::Result<PathBuf> {
    let root = emptied(&shell::target_folder().join("debian-root"))?;
    let sites = output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI)",
        &format!("Codename: {DEBIAN}"),
    ]))?;
    let sites = String::from_utf8(sites)?;
    let mirror = sites
        .lines()
        .next()
        .with_context(|| format!("no source of Debian {DEBIAN} is configured for apt"))?;
    output(
        Command::new("debootstrap")
            .args(["--variant=minbase", DEBIAN])
            .arg(&root)
            .arg(mirror),
    )?;
    Ok(root)
}

/// All paths below `root` but those that every installation of any package changes.
fn files(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let list = output(
        Command::new("find")
            .args([
                ".", "-path", "./var", "-prune", "-o", "-path", "./proc", "-prune", "-o", "-print",
            ])
            .current_dir(root),
    )?;
    Ok(String::from_utf8_lossy(&list)
        .lines()
        .map(str::to_owned)
        .collect())
}

fn emptied(folder: &Path) -> anyhow::Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder.to_path_buf())
}

/// A command inside of `root`, with the least environment and nothing mounted.
fn inside(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("chroot");
    command.arg(root);
    with_little(command, arguments)
}

/// The same with the `/proc` that every Debian has; it goes with the command.
fn in_debian(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--pid", "--fork", "--mount-proc", "--root"])
        .arg(root);
    with_little(command, arguments)
}

fn with_little(mut command: Command, arguments: &[&str]) -> Command {
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/");
    command
}
