//! Numbers of the programs of a world.
//!
//! A number must be the same in every schedule, whichever program was started first, since what is learned about an
//! instruction in one run is used in others. So it is made from the path; only the first program of a world has the
//! number zero.

use std::sync::Arc;

use raddle_stdx::Digest;
use raddle_world::ImageId;

/// The programs that were started so far: part of the state, so that a run depends on nothing that an earlier one did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Images(Vec<(ImageId, Arc<[u8]>)>);

impl Images {
    /// The number of the program with this canonical path.
    pub(crate) fn number(&mut self, path: &Arc<[u8]>) -> ImageId {
        if let Some((id, _)) = self.0.iter().find(|(_, known)| known == path) {
            return *id;
        }
        let mut id = match self.0.is_empty() {
            true => ImageId::FIRST,
            false => wanted(path),
        };
        // Two paths with one digest: the later one takes the next free number.
        while self.0.iter().any(|(taken, _)| *taken == id) {
            id = ImageId::new(id.number().wrapping_add(1));
        }
        self.0.push((id, Arc::clone(path)));
        id
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The path of a program that was started.
    pub(crate) fn path(&self, id: ImageId) -> Option<&[u8]> {
        let found = self.0.iter().find(|(known, _)| *known == id);
        found.map(|(_, path)| &**path)
    }
}

/// The number that a path asks for.
fn wanted(path: &[u8]) -> ImageId {
    let [low, high, ..] = Digest::of(path).to_le_bytes();
    ImageId::new(u16::from_le_bytes([low, high]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> Arc<[u8]> {
        Arc::from(name.as_bytes())
    }

    #[test]
    fn numbers_do_not_depend_on_the_order_of_starts() {
        let numbers = |names: [&str; 3]| {
            let mut images = Images::default();
            assert_eq!(images.number(&path("/bin/first")), ImageId::FIRST);
            let mut all: Vec<_> = names
                .into_iter()
                .map(|name| (name.to_owned(), images.number(&path(name))))
                .collect();
            all.sort();
            assert_eq!(images.number(&path("/bin/first")), ImageId::FIRST);
            all
        };
        let one = numbers(["/bin/a", "/bin/b", "/bin/c"]);
        assert_eq!(one, numbers(["/bin/c", "/bin/a", "/bin/b"]));
        assert!(one.iter().all(|(_, id)| *id != ImageId::FIRST));
    }

    #[test]
    fn no_two_programs_share_a_number() {
        let mut images = Images::default();
        let mut numbers: Vec<ImageId> = (0..2000)
            .map(|index| images.number(&path(&format!("/bin/{index}"))))
            .collect();
        assert_eq!(images.path(numbers[7]), Some(b"/bin/7".as_slice()));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 2000);
    }
}
