//! Where LLVM 22 and our plugin are.

use std::path::{Path, PathBuf};

/// The LLVM release that the plugin is built for.
pub const LLVM: u32 = 22;

/// Which front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    C,
    Cpp,
}

/// Programs and files that hardening needs.
#[derive(Debug, Clone)]
pub struct Toolchain {
    pub clang: PathBuf,
    pub linker: PathBuf,
    pub opt: PathBuf,
    pub plugin: PathBuf,
}

/// What is missing, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error(
        "`{program}` was not found; hardening needs LLVM {LLVM}: install it with `apt-get install --no-install-recommends clang-{LLVM} lld-{LLVM} llvm-{LLVM} llvm-{LLVM}-dev`, then build raddle again so that its plugin is compiled"
    )]
    Program { program: String },
    #[error(
        "the plugin {name} was not found next to the raddle program nor in ../lib/raddle; it is built together with raddle when the headers of LLVM {LLVM} are there: `apt-get install --no-install-recommends clang-{LLVM} lld-{LLVM} llvm-{LLVM} llvm-{LLVM}-dev`, then `cargo build --workspace`"
    )]
    Plugin { name: String },
}

/// File name of the plugin.
pub const PLUGIN: &str = "libraddle_harden_plugin.so";

/// Finds everything. `search` are the folders of the search path, `program` is the running raddle.
pub fn find(language: Language, search: &[PathBuf], program: &Path) -> Result<Toolchain, Missing> {
    let clang = match language {
        Language::C => "clang",
        Language::Cpp => "clang++",
    };
    Ok(Toolchain {
        clang: find_program(clang, search)?,
        linker: find_program("ld.lld", search)?,
        opt: find_program("opt", search)?,
        plugin: find_plugin(program)?,
    })
}

fn find_program(name: &str, search: &[PathBuf]) -> Result<PathBuf, Missing> {
    let versioned = format!("{name}-{LLVM}");
    let own_folder = PathBuf::from(format!("/usr/lib/llvm-{LLVM}/bin"));
    search
        .iter()
        .map(|folder| folder.join(&versioned))
        .chain([own_folder.join(name)])
        .find(|path| path.is_file())
        .ok_or(Missing::Program { program: versioned })
}

/// The plugin lies next to the program or in `../lib/raddle`. In a build folder the one in `deps` is newer than the one
/// next to the program when only tests were built.
fn find_plugin(program: &Path) -> Result<PathBuf, Missing> {
    let folder = program.parent().unwrap_or(Path::new("."));
    [
        folder.join("deps").join(PLUGIN),
        folder.join(PLUGIN),
        folder.join("../lib/raddle").join(PLUGIN),
    ]
    .into_iter()
    .find(|path| path.is_file())
    .ok_or_else(|| Missing::Plugin {
        name: PLUGIN.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_install_is_said() {
        let error = find_program("nothing-like-this", &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("apt-get install"), "{error}");
        let error = find_plugin(Path::new("/nowhere/raddle"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("cargo build"), "{error}");
    }
}
