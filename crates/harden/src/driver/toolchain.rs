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
    #[error("hardening needs LLVM {LLVM}, and `{program}` was not found; {REMEDY}")]
    Program { program: String },
    #[error(
        "the hardening plugin {PLUGIN} was not found next to the raddle program nor in ../lib/raddle; {REMEDY}"
    )]
    Plugin,
    #[error(
        "the hardening plugin {path} is empty, because the headers of LLVM {LLVM} were not there when raddle was built; {REMEDY}"
    )]
    EmptyPlugin { path: String },
}

const REMEDY: &str = "install it with `apt-get install --no-install-recommends clang-22 lld-22 llvm-22 llvm-22-dev` (or `cargo xtask setup`), then build raddle again: `cargo xtask install` installs it together with its plugin";

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
    .ok_or(Missing::Plugin)
}

/// A plugin that was built without LLVM lacks the entry point that compilers look for. Reads the whole file, so ask
/// after a failure or once per build, not at each compilation.
pub fn check_plugin(path: &Path) -> Result<(), Missing> {
    const ENTRY: &[u8] = b"llvmGetPassPluginInfo\0";
    let has_entry = std::fs::read(path)
        .is_ok_and(|bytes| bytes.windows(ENTRY.len()).any(|window| window == ENTRY));
    if has_entry {
        Ok(())
    } else {
        Err(Missing::EmptyPlugin {
            path: path.display().to_string(),
        })
    }
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
        assert!(error.contains("cargo xtask install"), "{error}");
    }

    #[test]
    fn a_plugin_without_its_entry_point_is_told_from_a_working_one() {
        let folder = std::env::temp_dir().join(format!("raddle-plugin-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(PLUGIN);
        std::fs::write(&path, b"\x7fELF nothing else").unwrap();
        let found = find_plugin(&folder.join("raddle")).unwrap();
        let error = check_plugin(&found).unwrap_err();
        assert!(matches!(error, Missing::EmptyPlugin { .. }), "{error}");
        assert!(!error.to_string().contains('\n'), "one paragraph: {error}");
        std::fs::write(&path, b"\x7fELF\0llvmGetPassPluginInfo\0").unwrap();
        assert_eq!(check_plugin(&found), Ok(()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
