//! What detectors find is what campaigns look for.

use raddle_detect::{Failure, Race};
use raddle_world::Site;

use crate::subject::{Sighting, Symptom};

impl Symptom for Failure {
    fn fingerprint(&self) -> String {
        Self::fingerprint(self)
    }

    fn is_hang(&self) -> bool {
        matches!(self, Self::Hang { .. })
    }

    fn is_vague(&self) -> bool {
        matches!(self, Self::WrongExit { .. } | Self::WrongOutput { .. })
    }
}

impl Sighting for Race {
    fn pair(&self) -> (Site, Site) {
        let (first, second) = (self.first.site, self.second.site);
        (first.min(second), first.max(second))
    }

    /// One that nothing orders at all says more than one that is handed over.
    fn add(&mut self, later: &Self) -> bool {
        let is_better = self.handed_over.is_some() && later.handed_over.is_none();
        if is_better {
            *self = *later;
        }
        is_better
    }
}
