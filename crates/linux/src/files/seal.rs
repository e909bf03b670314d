//! What a sealed world shows of the host: the files that were named, the links and folders on the way to them, and
//! nothing else.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Symbolic links followed on the way to one file.
const LINKS_MAX: u32 = 40;

/// The parts of the host that can be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seal {
    /// Files and directories, with everything below them, and the links that lead there. Without links in their own
    /// paths.
    shown: BTreeSet<PathBuf>,
}

/// How much of a path can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// What is there, and everything below.
    Whole,
    /// That it is a directory, and what in it leads to something that is shown.
    Way,
    Nothing,
}

impl Seal {
    /// Shows a file or directory under the path by which it was named, through all links on the way.
    pub(crate) fn show(&mut self, path: &Path) {
        let mut links = 0;
        let mut rest: Vec<PathBuf> = components(path);
        let mut at = PathBuf::from("/");
        while let Some(name) = rest.pop() {
            if name.as_os_str() == ".." {
                at.pop();
                continue;
            }
            at.push(&name);
            let Ok(target) = at.read_link() else {
                continue;
            };
            self.shown.insert(at.clone());
            links += 1;
            if links > LINKS_MAX {
                return;
            }
            if target.is_absolute() {
                at = PathBuf::from("/");
            } else {
                at.pop();
            }
            rest.extend(components(&target));
        }
        // The root itself would be everything.
        if at != Path::new("/") {
            self.shown.insert(at);
        }
    }

    pub(crate) fn sight(&self, path: &Path) -> Sight {
        if path.ancestors().any(|above| self.shown.contains(above)) {
            return Sight::Whole;
        }
        // Those below a path follow it in the order of the set.
        let after = self.shown.range(path.to_path_buf()..).next();
        match after {
            Some(next) if next.starts_with(path) => Sight::Way,
            _ => Sight::Nothing,
        }
    }
}

/// The names of a path, the first one last.
fn components(path: &Path) -> Vec<PathBuf> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_named_is_seen_with_the_way_to_it() {
        let folder = std::env::temp_dir().join(format!("raddle-seal-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("real/sub")).unwrap();
        let folder = folder.canonicalize().unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink("real", &link).unwrap();
        let mut seal = Seal::default();
        seal.show(&link.join("sub/../sub"));
        let sight = |name: &str| seal.sight(&folder.join(name));
        assert_eq!(sight("link"), Sight::Whole);
        assert_eq!(sight("real/sub/anything"), Sight::Whole);
        assert_eq!(sight("real"), Sight::Way);
        assert_eq!(sight("real/other"), Sight::Nothing);
        assert_eq!(sight("rea"), Sight::Nothing);
        assert_eq!(seal.sight(Path::new("/")), Sight::Way);
        assert_eq!(seal.sight(Path::new("/etc/passwd")), Sight::Nothing);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_root_shows_nothing() {
        let mut seal = Seal::default();
        seal.show(Path::new("/.."));
        assert_eq!(seal, Seal::default());
    }
}
