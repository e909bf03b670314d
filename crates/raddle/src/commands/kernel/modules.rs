//! Finds the modules that test cases name.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use raddle_kernel::guest::BootModule;
use raddle_kernel::module;
use raddle_kernel::recording::{BootModuleInput, ModuleInput};
use raddle_pc::boot::Compression;
use raddle_stdx::{Digest, regular_file};

use super::guest_options::absolute;

/// Bytes of a packed module at most.
const MODULE_BYTES_MAX: u64 = 1 << 30;

/// Looks for modules and remembers what was found.
#[derive(Debug)]
pub(crate) struct Modules {
    /// Folder of the test case.
    beside: PathBuf,
    /// Roots of the kernel's own modules.
    roots: Vec<PathBuf>,
    /// Whether files that a test case names must lie beside it.
    pub(crate) is_sealed: bool,
    pub(crate) found: Vec<ModuleInput>,
    /// Modules for the boot, in the order of loading.
    pub(crate) for_boot: Vec<(BootModuleInput, BootModule)>,
}

impl Modules {
    pub(crate) fn new(test: &Path, kernel: &Path, given: Option<&Path>) -> Self {
        let folder = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
        let roots = match given {
            Some(root) => vec![root.to_path_buf()],
            None => {
                let boot = folder(kernel);
                vec![
                    boot.join("../lib/modules"),
                    boot.join("../usr/lib/modules"),
                    boot,
                ]
            }
        };
        Self {
            beside: folder(test),
            roots,
            is_sealed: false,
            found: Vec::new(),
            for_boot: Vec::new(),
        }
    }

    /// The unpacked content of a module; the error says where it was looked for.
    pub(crate) fn load(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let path = self.find(name).map_err(|error| format!("{error:#}"))?;
        let packed = regular_file::read(&path, MODULE_BYTES_MAX)
            .map_err(|error| format!("the module {} cannot be read: {error}", path.display()))?;
        let content = match Compression::detect(&packed) {
            Some(compression) => compression
                .unpack(&packed)
                .map_err(|error| format!("the module {}: {error}", path.display()))?,
            None => packed,
        };
        if !content.starts_with(b"\x7FELF") {
            return Err(format!("{} is not a kernel module", path.display()));
        }
        self.found.push(ModuleInput {
            name: name.to_owned(),
            path: absolute(&path).map_err(|error| format!("{error:#}"))?,
            digest: Digest::of(&content),
        });
        Ok(content)
    }

    /// Takes a module for the boot, behind what it depends on.
    pub(crate) fn load_for_boot(
        &mut self,
        name: &str,
        parameters: &str,
        depth: usize,
    ) -> Result<(), String> {
        let content = self.load(name)?;
        let is_known = |own: &Self, wanted: &str| {
            let name = |module: &BootModule| module::name(&module.content);
            own.for_boot
                .iter()
                .any(|(_, module)| name(module).is_some_and(|name| name == wanted))
        };
        if module::name(&content).is_some_and(|name| is_known(self, &name)) {
            return Ok(());
        }
        if depth > DEPTH_MAX {
            return Err("its dependencies are nested too deeply".to_owned());
        }
        let path = self.found.last().map(|found| found.path.clone());
        for needed in module::dependencies(&content) {
            if !is_known(self, &needed) {
                self.load_for_boot(&needed, "", depth + 1)?;
            }
        }
        let input = BootModuleInput {
            path: path.unwrap_or_default(),
            parameters: parameters.trim().to_owned(),
        };
        let module = BootModule {
            content,
            parameters: input.parameters.clone(),
        };
        self.for_boot.push((input, module));
        Ok(())
    }

    /// Whether a path leads to a file in the folder of the test case, or below it.
    fn is_beside(&self, path: &Path) -> bool {
        let folder = if self.beside.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.beside
        };
        match (folder.canonicalize(), path.canonicalize()) {
            (Ok(folder), Ok(path)) => path.starts_with(folder),
            _ => false,
        }
    }

    fn find(&self, name: &str) -> anyhow::Result<PathBuf> {
        if name.contains('/') || name.ends_with(".ko") {
            let path = self.beside.join(name);
            anyhow::ensure!(
                !self.is_sealed || self.is_beside(&path),
                "the module file {} does not lie beside the test case, and with --sealed no other is read",
                path.display()
            );
            anyhow::ensure!(path.is_file(), "there is no module file {}", path.display());
            return Ok(path);
        }
        let wanted = name.replace('-', "_");
        let mut matches = Vec::new();
        for root in &self.roots {
            walk(root, &wanted, &mut matches, 0)
                .with_context(|| format!("cannot look for modules in {}", root.display()))?;
        }
        matches.sort();
        matches.into_iter().next().ok_or_else(|| {
            let roots: Vec<String> = self
                .roots
                .iter()
                .map(|root| root.display().to_string())
                .collect();
            anyhow!(
                "there is no module `{name}` in {}: name its folder with --modules, or the file itself as \"./{name}.ko\"",
                roots.join(", ")
            )
        })
    }
}

/// Deepest folder below a root of modules.
const DEPTH_MAX: usize = 12;

fn walk(
    folder: &Path,
    wanted: &str,
    matches: &mut Vec<PathBuf>,
    depth: usize,
) -> std::io::Result<()> {
    if depth > DEPTH_MAX || !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            walk(&path, wanted, matches, depth + 1)?;
        } else if let Some(file) = path.file_name().and_then(|file| file.to_str())
            && let Some((stem, rest)) = file.split_once(".ko")
            && matches!(rest, "" | ".xz" | ".gz" | ".zst")
            && stem.replace('-', "_") == wanted
        {
            matches.push(path);
        }
    }
    Ok(())
}
