//! Installs what builds and tests need and the machine lacks.

use std::process::Command;

use crate::{kernel_package, shell};

/// Debian packages, each with the reason it is needed.
const PACKAGES: &[(&str, &str)] = &[
    ("gcc", "compiles the corpus programs"),
    ("g++", "compiles the C++ corpus programs"),
    (
        "btrfs-progs",
        "makes and checks file systems in the guests of the kernel tests",
    ),
    ("dwz", "makes shared debug files for the symbol tests"),
    (
        "libc6-dbg",
        "is the separate debug file that symbol tests look up",
    ),
    (
        "e2fsprogs",
        "makes and checks file systems in the guests of the kernel tests",
    ),
    (
        "busybox-static",
        "is all that is on the bare root that the static raddle is tried on",
    ),
    (
        "debootstrap",
        "makes the bare Debian that the package is tried on",
    ),
    ("chromium", "shows pages of findings in the tests"),
    ("chromium-driver", "presses keys in those pages"),
    ("gdb", "debugs a replay in the tests"),
    ("git", "is run by the tests of real programs"),
    (
        "golang-go",
        "builds a Go program for the tests of real programs",
    ),
    (
        "nats-server",
        "is the hub in the tests of campaigns over several workers",
    ),
    ("memcached", "is run by the tests of real programs"),
    ("pbzip2", "is run by the tests of real programs"),
    ("perl", "is run by the tests of real programs"),
    ("python3", "is run by the tests of real programs"),
    ("redis-server", "is run by the tests of real programs"),
    ("sqlite3", "is run by the tests of real programs"),
    ("xz-utils", "is run by the tests of real programs"),
    (
        "linux-source-6.1",
        "real source for the tests of the static scanner",
    ),
    ("clang-22", "compiles hardened programs"),
    ("libstdc++-12-dev", "headers of hardened C++ programs"),
    ("lld-22", "links hardened Rust programs"),
    ("llvm-22", "opt, for hardening bitcode"),
    ("llvm-22-dev", "headers of the hardening plugin"),
    ("autoconf", "a hardened build in the tests"),
    ("cmake", "a hardened build in the tests"),
    ("dpkg-dev", "unpacks source packages in the benchmark"),
    ("libbz2-dev", "builds pbzip2 in the benchmark"),
    ("libevent-dev", "builds memcached in the benchmark"),
    ("tcl", "builds sqlite3 in the benchmark"),
    ("valgrind", "counts instructions in the benchmark"),
    ("bc", "builds a kernel in the benchmark"),
    ("bison", "builds a kernel in the benchmark"),
    ("flex", "builds a kernel in the benchmark"),
    ("libelf-dev", "builds a kernel in the benchmark"),
    ("make", "a hardened build in the tests"),
    (
        "linux-headers-cloud-amd64",
        "builds the kernel module with the known races",
    ),
];

/// The package of the accessibility checker, and its version.
const AXE: &str = "axe-core@4.10.3";

pub(crate) fn run() -> anyhow::Result<()> {
    install_packages()?;
    if !shell::has("cargo-nextest") {
        shell::run("cargo", &["install", "--locked", "cargo-nextest"])?;
    }
    axe()?;
    kernel_package::install()
}

/// The accessibility checker of the tests of pages, from the registry of npm.
fn axe() -> anyhow::Result<()> {
    let folder = shell::target_folder().join("npm");
    if folder.join("axe.min.js").is_file() {
        return Ok(());
    }
    if !shell::has("npm") {
        install_all(&["npm"])?;
    }
    std::fs::create_dir_all(&folder)?;
    let to = folder.display().to_string();
    shell::run("npm", &["pack", "--silent", AXE, "--pack-destination", &to])?;
    let archive = folder.join(format!("{}.tgz", AXE.replace('@', "-")));
    let archive = archive.display().to_string();
    let only = ["--strip-components=1", "package/axe.min.js"];
    shell::run("tar", &["xf", &archive, "-C", &to, only[0], only[1]])
}

fn install_packages() -> anyhow::Result<()> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !is_installed(name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    anyhow::ensure!(
        shell::has("apt-get"),
        "these Debian packages are missing and apt-get is not here to install them: {}",
        missing.join(" ")
    );
    install_all(&missing)
}

fn install_all(packages: &[&str]) -> anyhow::Result<()> {
    shell::run("apt-get", &["update", "-q"])?;
    let mut arguments = vec!["install", "-q", "-y", "--no-install-recommends"];
    arguments.extend(packages);
    shell::run("apt-get", &arguments)
}

fn is_installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["-W", "-f=${db:Status-Status}", package])
        .output()
        .is_ok_and(|output| output.stdout == b"installed")
}
