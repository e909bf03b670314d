//! Modules that were parsed, for every world that maps the same file.
//!
//! Every worker of a campaign starts the program by itself, and each would read the symbols and the debug information
//! of the same program and the same libraries again: that took more time than a hundred short schedules.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::debug_file::DebugFileFinder;
use crate::module::Module;

/// Parsed modules by path and content. What is found depends on both alone, so that a store that is shared changes no
/// answer.
#[derive(Debug, Default)]
pub struct ModuleStore {
    known: Mutex<FxHashMap<(Arc<str>, u64), Parsed>>,
}

/// A file and what was made of it; nothing if it is no ELF file.
#[derive(Debug)]
struct Parsed {
    bytes: Arc<[u8]>,
    module: Option<Arc<Module>>,
}

impl ModuleStore {
    /// The module in a file whose content is `bytes`. Its debug files are looked for where debuggers do, and beside
    /// `path`.
    pub fn module(&self, path: &str, bytes: Vec<u8>) -> Option<Arc<Module>> {
        let bytes: Arc<[u8]> = bytes.into();
        let key = (Arc::from(path), raddle_stdx::Digest::of(&bytes));
        // The lock is kept while a file is parsed: another worker that asks for the same file would only do the work again.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parsed) = known.get(&key)
            && parsed.bytes == bytes
        {
            return parsed.module.clone();
        }
        let finder = DebugFileFinder::default().beside(Path::new(path));
        let parsed = Module::parse(Arc::clone(&bytes), &mut |request| finder.fetch(request));
        let module = parsed.ok().map(Arc::new);
        let parsed = Parsed {
            bytes,
            module: module.clone(),
        };
        known.insert(key, parsed);
        module
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_parsed_once_and_another_content_again() {
        let store = ModuleStore::default();
        let own = std::fs::read(std::env::current_exe().expect("the test has a path"))
            .expect("it can be read");
        let first = store
            .module("/bin/own", own.clone())
            .expect("it is an ELF file");
        let again = store.module("/bin/own", own.clone()).expect("it is known");
        assert!(Arc::ptr_eq(&first, &again));
        assert!(store.module("/bin/own", b"text".to_vec()).is_none());
        assert!(store.module("/bin/own", own[..100].to_vec()).is_none());
        let elsewhere = store.module("/bin/other", own).expect("it is an ELF file");
        assert!(!Arc::ptr_eq(&first, &elsewhere));
    }
}
