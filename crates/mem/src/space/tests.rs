//! Tests of mapping, splitting, copy on write and gaps.

use super::*;

fn anonymous(start: u64, end: u64, perm: Perm) -> Vma {
    Vma {
        start: PageNo(start),
        end: PageNo(end),
        perm,
        shared: false,
        backing: Backing::Anonymous,
        label: "".into(),
    }
}

fn fixture() -> (Frames, AddressSpace) {
    (Frames::new(1 << 20).unwrap(), AddressSpace::default())
}

fn ranges(space: &AddressSpace) -> Vec<(u64, u64, Perm)> {
    space
        .vmas()
        .iter()
        .map(|vma| (vma.start.0, vma.end.0, vma.perm))
        .collect()
}

#[test]
fn neighbours_join_and_holes_split() {
    let (mut frames, mut space) = fixture();
    space.map(&mut frames, anonymous(10, 12, Perm::RW));
    space.map(&mut frames, anonymous(12, 14, Perm::RW));
    assert_eq!(ranges(&space), [(10, 14, Perm::RW)]);
    space.unmap(&mut frames, PageNo(11), PageNo(12));
    assert_eq!(ranges(&space), [(10, 11, Perm::RW), (12, 14, Perm::RW)]);
    assert!(space.protect(PageNo(13), PageNo(14), Perm::R));
    assert_eq!(
        ranges(&space),
        [(10, 11, Perm::RW), (12, 13, Perm::RW), (13, 14, Perm::R)]
    );
    assert!(space.protect(PageNo(13), PageNo(14), Perm::RW));
    assert_eq!(ranges(&space), [(10, 11, Perm::RW), (12, 14, Perm::RW)]);
    assert!(
        !space.protect(PageNo(10), PageNo(14), Perm::R),
        "page 11 is a hole"
    );
}

#[test]
fn split_object_areas_keep_their_offsets() {
    let (mut frames, mut space) = fixture();
    let object = ObjectId(7);
    let backing = Backing::Object {
        object,
        first_page: 100,
    };
    space.map(
        &mut frames,
        Vma {
            backing,
            ..anonymous(10, 20, Perm::R)
        },
    );
    space.unmap(&mut frames, PageNo(12), PageNo(15));
    let fault = space
        .translate(&mut frames, PageNo(16), Access::Read)
        .unwrap_err();
    assert_eq!(fault, PageFault::NeedsObject { object, page: 106 });
}

#[test]
fn private_object_pages_are_copied_on_write() {
    let (mut frames, mut space) = fixture();
    let backing = Backing::Object {
        object: ObjectId(1),
        first_page: 0,
    };
    space.map(
        &mut frames,
        Vma {
            backing,
            ..anonymous(4, 5, Perm::RW)
        },
    );
    let original = frames.alloc_pinned(b"file").unwrap();
    space.install(&mut frames, PageNo(4), original);
    let read = space
        .translate(&mut frames, PageNo(4), Access::Read)
        .unwrap();
    assert_eq!((read.frame, read.writable), (original, false));
    space.write(&mut frames, GuestAddr(0x4001), b"X").unwrap();
    let copy = space
        .translate(&mut frames, PageNo(4), Access::Read)
        .unwrap();
    assert_ne!(copy.frame, original);
    assert_eq!(&frames.bytes(copy.frame)[..4], b"fXle");
    assert_eq!(&frames.bytes(original)[..4], b"file");
}

#[test]
fn fork_shares_until_one_side_writes() {
    let (mut frames, mut parent) = fixture();
    parent.map(&mut frames, anonymous(1, 3, Perm::RW));
    parent
        .write(&mut frames, GuestAddr(0x1000), b"both")
        .unwrap();
    let mut child = parent.fork(&mut frames);
    child
        .write(&mut frames, GuestAddr(0x1000), b"kid!")
        .unwrap();
    parent.write(&mut frames, GuestAddr(0x1004), b"!").unwrap();
    let mut bytes = [0; 5];
    parent
        .read(&mut frames, GuestAddr(0x1000), &mut bytes)
        .unwrap();
    assert_eq!(&bytes, b"both!");
    child
        .read(&mut frames, GuestAddr(0x1000), &mut bytes)
        .unwrap();
    assert_eq!(&bytes, b"kid!\0");
    child.clear(&mut frames);
    parent.clear(&mut frames);
    assert_eq!(frames.in_use(), 0);
}

#[test]
fn accesses_across_pages_name_the_faulting_address() {
    let (mut frames, mut space) = fixture();
    space.map(&mut frames, anonymous(1, 2, Perm::RW));
    let error = space
        .write(&mut frames, GuestAddr(0x1FFE), b"abcd")
        .unwrap_err();
    assert_eq!(error, (GuestAddr(0x2000), PageFault::NotMapped));
}

#[test]
fn gaps_are_found_from_the_top() {
    let (mut frames, mut space) = fixture();
    let gap = |space: &AddressSpace, count| {
        space
            .find_gap(count, PageNo(1), PageNo(100))
            .map(|page| page.0)
    };
    assert_eq!(gap(&space, 10), Some(90));
    space.map(&mut frames, anonymous(90, 100, Perm::RW));
    assert_eq!(gap(&space, 10), Some(80));
    space.map(&mut frames, anonymous(70, 85, Perm::RW));
    assert_eq!(gap(&space, 5), Some(85));
    assert_eq!(gap(&space, 6), Some(64));
    assert_eq!(gap(&space, 90), None);
}

#[test]
fn moved_pages_keep_their_content() {
    let (mut frames, mut space) = fixture();
    space.map(&mut frames, anonymous(1, 3, Perm::RW));
    space
        .write(&mut frames, GuestAddr(0x2000), b"here")
        .unwrap();
    space.relocate(&mut frames, PageNo(1), PageNo(3), PageNo(8));
    let mut bytes = [0; 4];
    space
        .read(&mut frames, GuestAddr(0x9000), &mut bytes)
        .unwrap();
    assert_eq!(&bytes, b"here");
    assert_eq!(
        space.translate(&mut frames, PageNo(2), Access::Read),
        Err(PageFault::NotMapped)
    );
    assert_eq!(ranges(&space), [(8, 10, Perm::RW)]);
}

#[test]
fn code_layout_is_equal_for_equal_objects_only() {
    let (mut frames, mut one) = fixture();
    let mut two = AddressSpace::default();
    let text = |object| Vma {
        backing: Backing::Object {
            object: ObjectId(object),
            first_page: 0,
        },
        ..anonymous(1, 2, Perm::RX)
    };
    one.map(&mut frames, text(5));
    two.map(&mut frames, text(5));
    two.map(&mut frames, anonymous(8, 9, Perm::RW));
    assert_eq!(one.code_layout(), two.code_layout());
    two.map(&mut frames, text(6));
    assert_ne!(one.code_layout(), two.code_layout());
    one.map(&mut frames, anonymous(3, 4, Perm::RWX));
    two.map(&mut frames, text(5));
    two.map(&mut frames, anonymous(3, 4, Perm::RWX));
    assert_ne!(
        one.code_layout(),
        two.code_layout(),
        "anonymous code is never shared"
    );
}
