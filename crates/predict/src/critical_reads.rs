//! The reads that decide whether a program comes to one of its failure sites (ConSeq).

use std::sync::Arc;

use raddle_code::{FailureSites, Fate, IndexRead, IndexReads, SiteKind, SiteNames};
use raddle_symbols::{LinkAddr, Module};
use raddle_world::{ImageId, Site};
use rustc_hash::FxHashMap;

/// Steps of data or control dependence between a critical read and its failure site (ConSeq's MaxDistance).
pub const DISTANCE_MAX: u32 = 4;

/// Computations between a read and the address that its value becomes (ConMem 4.2.5).
const STEPS_MAX: u32 = 3;

/// Code of the program, and where it lies.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub image: ImageId,
    /// What is added to an address of the file.
    pub bias: u64,
    pub module: Arc<Module>,
}

/// What is known of a program's code.
#[derive(Debug, Default)]
pub struct ProgramCode {
    pub critical: CriticalReads,
    pub indices: Indices,
}

/// Reads whose values become addresses (ConMem's Con-Overflow).
#[derive(Debug, Default)]
pub struct Indices {
    modules: Vec<(Loaded, IndexReads)>,
}

impl Indices {
    pub fn of(loaded: &[Loaded]) -> Self {
        let modules = loaded.iter().map(|loaded| {
            let reads = IndexReads::new(&loaded.module, STEPS_MAX);
            (loaded.clone(), reads)
        });
        Self {
            modules: modules.collect(),
        }
    }

    /// What becomes of the value of a read.
    pub(crate) fn use_of(&mut self, read: Site) -> Option<IndexRead> {
        self.modules.iter_mut().find_map(|(loaded, reads)| {
            let is_own = loaded.image == read.image();
            let link = LinkAddr(read.pc().checked_sub(loaded.bias)?);
            is_own.then(|| reads.of(link)).flatten()
        })
    }
}

/// Reads with the failure sites that depend on them.
#[derive(Debug, Default)]
pub struct CriticalReads {
    modules: Vec<(Loaded, FailureSites)>,
    /// Module and failure site by reading instruction.
    of: FxHashMap<Site, Vec<(usize, usize)>>,
}

/// A failure site that depends on a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endangered {
    pub kind: SiteKind,
    pub at: Site,
    /// Whether control comes there if the read gives the value that was asked for.
    pub fate: Fate,
    /// Steps of dependence between the read and the site.
    pub steps: u32,
}

impl CriticalReads {
    /// Those of some modules, no more than `most` steps away from their sites.
    pub fn of(loaded: Vec<Loaded>, names: &SiteNames, most: u32) -> Self {
        let mut critical = Self::default();
        for loaded in loaded {
            let sites = FailureSites::new(&loaded.module, names, most);
            let number = critical.modules.len();
            for (index, site) in sites.sites.iter().enumerate() {
                for read in site.reads.keys() {
                    let known = critical.of.entry(loaded.site(*read)).or_default();
                    known.push((number, index));
                }
            }
            critical.modules.push((loaded, sites));
        }
        critical
    }

    /// Whether a read decides about another round of a loop.
    pub(crate) fn decides_loop(&self, read: Site) -> bool {
        let sites = self.of.get(&read).into_iter().flatten();
        let mut kinds = sites.map(|&(module, index)| self.modules[module].1.sites[index].kind);
        kinds.any(|kind| kind == SiteKind::Loop)
    }

    /// Failure sites that were found.
    pub fn sites(&self) -> usize {
        let modules = self.modules.iter();
        modules.map(|(_, sites)| sites.sites.len()).sum()
    }

    /// Reads that were found.
    pub fn reads(&self) -> usize {
        self.of.len()
    }

    /// The failure sites that a read may lead to if it gives another value.
    pub(crate) fn endangered(&mut self, read: Site, value: Option<u64>) -> Vec<Endangered> {
        let Some(known) = self.of.get(&read) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for &(module, index) in known {
            let (loaded, sites) = &mut self.modules[module];
            let site = sites.sites[index].clone();
            let link = LinkAddr(read.pc().wrapping_sub(loaded.bias));
            let fate = value.map_or(Fate::Unknown, |value| sites.fate(&site, link, value));
            found.push(Endangered {
                kind: site.kind,
                at: loaded.site(site.at),
                fate,
                steps: site.reads.get(&link).copied().unwrap_or_default(),
            });
        }
        found.retain(|site| site.fate != Fate::Misses);
        found
    }
}

impl Loaded {
    fn site(&self, address: LinkAddr) -> Site {
        Site::new(self.image, self.bias.wrapping_add(address.0))
    }
}
