//! Calls that always fail here as they do on some real kernels, so that programs know how to go on.

use crate::call::{Call, SysResult};
use crate::errno::Errno;
use crate::syscall::table::Entry;
use crate::syscall::{no_such_call, not_permitted};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::refused(
        134,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(136, no_such_call, "ENOSYS: obsolete"),
    Entry::refused(139, no_such_call, "ENOSYS: obsolete"),
    Entry::refused(153, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(154, no_such_call, "ENOSYS: no local descriptor tables"),
    Entry::refused(
        156,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(163, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(167, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(168, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(
        174,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        177,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        178,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        180,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        181,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        182,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        183,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        184,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        185,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(207, no_such_call, "ENOSYS: no asynchronous I/O contexts"),
    Entry::refused(208, no_such_call, "ENOSYS: no asynchronous I/O contexts"),
    Entry::refused(209, no_such_call, "ENOSYS: no asynchronous I/O contexts"),
    Entry::refused(210, no_such_call, "ENOSYS: no asynchronous I/O contexts"),
    Entry::refused(212, no_such_call, "ENOSYS: obsolete"),
    Entry::refused(
        214,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        215,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(219, no_such_call, "ENOSYS: obsolete"),
    Entry::refused(
        236,
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(256, no_such_call, "ENOSYS: not in this kernel"),
    Entry::refused(279, no_such_call, "ENOSYS: not in this kernel"),
    Entry::refused(300, no_such_call, "ENOSYS: no fanotify"),
    Entry::refused(301, no_such_call, "ENOSYS: no fanotify"),
    Entry::refused(303, not_supported, "EOPNOTSUPP: files have no handles"),
    Entry::refused(304, not_supported, "EOPNOTSUPP: files have no handles"),
    Entry::refused(313, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(320, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(333, no_such_call, "ENOSYS: no asynchronous I/O contexts"),
    Entry::refused(431, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(432, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(433, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(440, no_such_call, "ENOSYS: not in this kernel"),
    Entry::refused(442, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(443, not_permitted, "EPERM: for administrators of a machine"),
    Entry::refused(447, no_such_call, "ENOSYS: not in this kernel"),
    Entry::refused(448, no_such_call, "ENOSYS: not in this kernel"),
    Entry::refused(450, no_such_call, "ENOSYS: not in this kernel"),
    Entry::refused(
        451,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        453,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        454,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        455,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        456,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        457,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        458,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        459,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        460,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        461,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        462,
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
];

fn not_supported(_: &mut Call<'_>) -> SysResult {
    Err(Errno::EOPNOTSUPP.into())
}
