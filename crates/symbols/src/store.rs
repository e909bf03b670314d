//! Modules that were parsed, for every world that maps the same file.
//!
//! Every worker of a campaign starts the program by itself, and each would read the symbols and the debug information
//! of the same program and the same libraries again: that took more time than a hundred short schedules.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::debug_file::DebugFileFinder;
use crate::module::Module;

/// What is at a place where debug information may be.
#[derive(Debug)]
pub enum Lookup {
    Here(Vec<u8>),
    Absent,
    /// The asked side cannot tell: what is parsed without an answer is not kept.
    Unknown,
}

/// Parsed modules by path and content. What is found depends on both alone, so that a store that is shared changes no
/// answer.
#[derive(Debug, Default)]
pub struct ModuleStore {
    known: Mutex<FxHashMap<(Arc<str>, u64), Parsed>>,
}

/// A file and what was made of it.
#[derive(Debug)]
struct Parsed {
    bytes: Arc<[u8]>,
    found: Found,
}

/// What was made of a file.
#[derive(Debug, Clone)]
pub struct Found {
    /// Nothing if it is no ELF file.
    pub module: Option<Arc<Module>>,
    /// The places that were looked at for debug information, and whether there was a file.
    pub asked: Arc<[(PathBuf, bool)]>,
}

impl ModuleStore {
    /// The module in a file whose content is `bytes`. Its debug files are looked for where debuggers do, and beside
    /// `path`; `read` says what is there.
    pub fn module(
        &self,
        path: &str,
        bytes: Vec<u8>,
        read: &mut dyn FnMut(&Path) -> Lookup,
    ) -> Found {
        let bytes: Arc<[u8]> = bytes.into();
        let key = (Arc::from(path), raddle_stdx::Digest::of(&bytes));
        // The lock is kept while a file is parsed: another worker that asks for the same file would only do the work again.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parsed) = known.get(&key)
            && parsed.bytes == bytes
        {
            return parsed.found.clone();
        }
        let (found, is_whole) = parse(path, &bytes, read);
        if is_whole {
            let found = found.clone();
            known.insert(key, Parsed { bytes, found });
        }
        found
    }
}

/// Parses a file, and says whether every question about its debug files was answered.
fn parse(path: &str, bytes: &Arc<[u8]>, read: &mut dyn FnMut(&Path) -> Lookup) -> (Found, bool) {
    let finder = DebugFileFinder::default().beside(Path::new(path));
    let mut asked = Vec::new();
    let mut is_whole = true;
    let parsed = Module::parse(Arc::clone(bytes), &mut |request| {
        let places = finder.candidates(request);
        places.into_iter().find_map(|place| {
            let (is_there, content) = match read(&place) {
                Lookup::Here(content) => (true, Some(content)),
                Lookup::Absent => (false, None),
                Lookup::Unknown => {
                    is_whole = false;
                    return None;
                }
            };
            asked.push((place, is_there));
            content
        })
    });
    let found = Found {
        module: parsed.ok().map(Arc::new),
        asked: asked.into(),
    };
    (found, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<u8> {
        let path = std::env::current_exe().expect("the test has a path");
        std::fs::read(path).expect("it can be read")
    }

    #[test]
    fn a_file_is_parsed_once_and_another_content_again() {
        let store = ModuleStore::default();
        let own = own();
        let module = |path: &str, bytes: Vec<u8>| {
            let found = store.module(path, bytes, &mut |_| Lookup::Absent);
            found.module
        };
        let first = module("/bin/own", own.clone()).expect("it is an ELF file");
        let again = module("/bin/own", own.clone()).expect("it is known");
        assert!(Arc::ptr_eq(&first, &again));
        assert!(module("/bin/own", b"text".to_vec()).is_none());
        assert!(module("/bin/own", own[..100].to_vec()).is_none());
        let elsewhere = module("/bin/other", own).expect("it is an ELF file");
        assert!(!Arc::ptr_eq(&first, &elsewhere));
    }

    #[test]
    fn what_was_asked_is_told_again_and_kept_only_with_all_answers() {
        let store = ModuleStore::default();
        // A program of the system: stripped, with a build-id.
        let own = std::fs::read("/bin/true").expect("coreutils are there");
        let mut questions = 0;
        let mut ask = |lookup: fn() -> Lookup| {
            let found = store.module("/bin/own", own.clone(), &mut |_| {
                questions += 1;
                lookup()
            });
            (found.asked, questions)
        };
        let (unanswered, first) = ask(|| Lookup::Unknown);
        assert!(
            first > 0,
            "what has a build-id and nothing more has a debug file"
        );
        assert_eq!(unanswered.len(), 0);
        let (answered, second) = ask(|| Lookup::Absent);
        assert!(second > first);
        assert!(!answered.is_empty() && answered.iter().all(|(_, is_there)| !is_there));
        let (known, third) = ask(|| Lookup::Unknown);
        assert_eq!((known, third), (answered, second));
    }
}
