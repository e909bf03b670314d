//! Hints that a program gives about itself: instructions that do nothing on any processor, found by their bytes.

use raddle_linux::{LinuxWorld, marked_places};
use raddle_world::{ContextId, ImageId, Site};

/// The letter of `raddle_snapshot()` of `raddle.h`.
const SNAPSHOT: u8 = b'S';

/// Where the programs of a world ask for a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    sites: Vec<Site>,
    /// Images and the layouts of their code that were searched.
    searched: Vec<(ImageId, u64)>,
}

impl Hints {
    /// Searches the code that a context can execute, if it has not been searched yet; contexts stop at the hints in it.
    pub(crate) fn look(&mut self, world: &mut LinuxWorld, who: ContextId) {
        let Some((map, _)) = world.memory(who) else {
            return;
        };
        let searched = (world.image(who), map.code_layout());
        if self.searched.contains(&searched) {
            return;
        }
        self.searched.push(searched);
        let symbols = world.symbols(who).unwrap_or_default();
        for (place, letter) in marked_places(&symbols) {
            let site = Site::new(searched.0, place);
            if letter == SNAPSHOT && !self.is_hint(site) {
                world.add_point(site);
                self.sites.push(site);
            }
        }
    }

    pub(crate) fn is_hint(&self, site: Site) -> bool {
        self.sites.contains(&site)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Lets contexts pass again.
    pub(crate) fn forget(&self, world: &mut LinuxWorld) {
        self.sites.iter().for_each(|site| world.remove_point(*site));
    }
}
