//! The shared libraries that a program of the host needs, so that it runs in the guest too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf};
use raddle_stdx::regular_file;

/// Bytes of a program or library at most.
const LIBRARY_BYTES_MAX: u64 = 4 << 30;

/// Where Debian and others keep libraries, in the order in which the loader looks.
const FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Why a program cannot be taken into the guest.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("{} cannot be read: {reason}", path.display())]
    Read {
        path: PathBuf,
        reason: std::io::Error,
    },
    #[error(
        "{} is no x86-64 ELF program: a script needs its interpreter as --program and itself as --file",
        path.display()
    )]
    NotAProgram { path: PathBuf },
    #[error(
        "{} needs {library}, which is in none of {}: give it with --file GUEST=HOST, under one of these folders",
        path.display(),
        FOLDERS.join(", ")
    )]
    Missing { path: PathBuf, library: String },
}

/// The files that a program needs, itself first: path in the guest without a slash in front, and path on the host.
/// The loader finds each library in the guest where it finds it here.
pub fn with_libraries(program: &Path) -> Result<Vec<(String, PathBuf)>, LibraryError> {
    let mut files = vec![(in_guest(program), program.to_path_buf())];
    let mut known = BTreeSet::new();
    let mut at = 0;
    while at < files.len() {
        let path = files[at].1.clone();
        at += 1;
        let needs = needs_of(&path)?;
        if let Some(interpreter) = needs.interpreter
            && known.insert(interpreter.clone())
        {
            let host = PathBuf::from(&interpreter);
            files.push((in_guest(&host), host));
        }
        for library in needs.libraries {
            if !known.insert(library.clone()) {
                continue;
            }
            let origin = path.parent().unwrap_or(Path::new("/"));
            let named = needs.folders.iter().map(|folder| in_origin(folder, origin));
            let host = named
                .chain(FOLDERS.iter().map(PathBuf::from))
                .map(|folder| folder.join(&library))
                .find(|candidate| candidate.is_file())
                .ok_or_else(|| LibraryError::Missing {
                    path: path.clone(),
                    library: library.clone(),
                })?;
            if files.iter().all(|(_, known)| *known != host) {
                files.push((in_guest(&host), host));
            }
        }
    }
    Ok(files)
}

fn in_guest(path: &Path) -> String {
    path.to_string_lossy().trim_start_matches('/').to_owned()
}

/// What one file asks for.
struct Needs {
    interpreter: Option<String>,
    libraries: Vec<String>,
    /// Where the file itself says that they are.
    folders: Vec<String>,
}

/// `$ORIGIN` is the folder of the file that asks.
fn in_origin(folder: &str, origin: &Path) -> PathBuf {
    let origin = origin.to_string_lossy();
    let folder = folder.replace("$ORIGIN", &origin);
    folder.replace("${ORIGIN}", &origin).into()
}

fn needs_of(path: &Path) -> Result<Needs, LibraryError> {
    let content =
        regular_file::read(path, LIBRARY_BYTES_MAX).map_err(|reason| LibraryError::Read {
            path: path.to_path_buf(),
            reason,
        })?;
    parse(&content).ok_or_else(|| LibraryError::NotAProgram {
        path: path.to_path_buf(),
    })
}

fn parse(content: &[u8]) -> Option<Needs> {
    let file = ElfFile64::<Endianness>::parse(content).ok()?;
    let endian = file.endian();
    if file.elf_header().e_machine(endian) != elf::EM_X86_64 {
        return None;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let interpreter = file
        .elf_program_headers()
        .iter()
        .find_map(|header| header.interpreter(endian, content).ok().flatten())
        .map(text);
    let sections = file.elf_section_table();
    let (mut libraries, mut folders) = (Vec::new(), Vec::new());
    if let Ok(Some((entries, link))) = sections.dynamic(endian, content) {
        let strings = sections.strings(endian, content, link).ok()?;
        for entry in entries {
            let tag = u32::try_from(entry.d_tag.get(endian)).unwrap_or(elf::DT_NULL);
            let offset = u32::try_from(entry.d_val.get(endian)).ok();
            let name = offset.and_then(|offset| strings.get(offset).ok());
            match (tag, name) {
                (elf::DT_NEEDED, Some(name)) => libraries.push(text(name)),
                (elf::DT_RPATH | elf::DT_RUNPATH, Some(list)) => {
                    folders.extend(text(list).split(':').map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    Some(Needs {
        interpreter,
        libraries,
        folders,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_with_its_loader_and_libraries() {
        let files = with_libraries(Path::new("/bin/sh")).expect("the shell is a program");
        let has = |part: &str| files.iter().any(|(guest, _)| guest.contains(part));
        assert_eq!(files[0].0, "bin/sh");
        assert!(has("libc.so.6") && has("ld-linux-x86-64.so.2"), "{files:?}");
        assert!(
            files
                .iter()
                .all(|(guest, host)| !guest.starts_with('/') && host.is_file())
        );
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let error = with_libraries(Path::new("/etc/passwd")).expect_err("it is a text");
        assert!(
            error.to_string().contains("is no x86-64 ELF program"),
            "{error}"
        );
        let error = with_libraries(Path::new("/nowhere")).expect_err("it does not exist");
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
}
