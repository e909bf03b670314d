//! Calls that always fail here as they do on some real kernels, so that programs know how to go on.

use crate::call::{Call, SysResult};
use crate::errno::Errno;
use crate::syscall::table::Entry;
use crate::syscall::{no_such_call, not_permitted};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::refused(
        "uselib",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused("ustat", no_such_call, "ENOSYS: obsolete"),
    Entry::refused("sysfs", no_such_call, "ENOSYS: obsolete"),
    Entry::refused(
        "vhangup",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "modify_ldt",
        no_such_call,
        "ENOSYS: no local descriptor tables",
    ),
    Entry::refused(
        "_sysctl",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "acct",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "swapon",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "swapoff",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "create_module",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "get_kernel_syms",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "query_module",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "nfsservctl",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "getpmsg",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "putpmsg",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "afs_syscall",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "tuxcall",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "security",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "io_destroy",
        no_such_call,
        "ENOSYS: no asynchronous I/O contexts",
    ),
    Entry::refused(
        "io_getevents",
        no_such_call,
        "ENOSYS: no asynchronous I/O contexts",
    ),
    Entry::refused(
        "io_submit",
        no_such_call,
        "ENOSYS: no asynchronous I/O contexts",
    ),
    Entry::refused(
        "io_cancel",
        no_such_call,
        "ENOSYS: no asynchronous I/O contexts",
    ),
    Entry::refused("lookup_dcookie", no_such_call, "ENOSYS: obsolete"),
    Entry::refused(
        "epoll_ctl_old",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused(
        "epoll_wait_old",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused("restart_syscall", no_such_call, "ENOSYS: obsolete"),
    Entry::refused(
        "vserver",
        no_such_call,
        "ENOSYS: as on Linux, which has no such call any more",
    ),
    Entry::refused("migrate_pages", no_such_call, "ENOSYS: not in this kernel"),
    Entry::refused("move_pages", no_such_call, "ENOSYS: not in this kernel"),
    Entry::refused("fanotify_init", no_such_call, "ENOSYS: no fanotify"),
    Entry::refused("fanotify_mark", no_such_call, "ENOSYS: no fanotify"),
    Entry::refused(
        "name_to_handle_at",
        not_supported,
        "EOPNOTSUPP: files have no handles",
    ),
    Entry::refused(
        "open_by_handle_at",
        not_supported,
        "EOPNOTSUPP: files have no handles",
    ),
    Entry::refused(
        "finit_module",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "kexec_file_load",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "io_pgetevents",
        no_such_call,
        "ENOSYS: no asynchronous I/O contexts",
    ),
    Entry::refused(
        "fsconfig",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "fsmount",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "fspick",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "process_madvise",
        no_such_call,
        "ENOSYS: not in this kernel",
    ),
    Entry::refused(
        "mount_setattr",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused(
        "quotactl_fd",
        not_permitted,
        "EPERM: for administrators of a machine",
    ),
    Entry::refused("memfd_secret", no_such_call, "ENOSYS: not in this kernel"),
    Entry::refused(
        "process_mrelease",
        no_such_call,
        "ENOSYS: not in this kernel",
    ),
    Entry::refused(
        "set_mempolicy_home_node",
        no_such_call,
        "ENOSYS: not in this kernel",
    ),
    Entry::refused(
        "cachestat",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "map_shadow_stack",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "futex_wake",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "futex_wait",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "futex_requeue",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "statmount",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "listmount",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "lsm_get_self_attr",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "lsm_set_self_attr",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "lsm_list_modules",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
    Entry::refused(
        "mseal",
        no_such_call,
        "ENOSYS: newer than the kernel that uname names",
    ),
];

fn not_supported(_: &mut Call<'_>) -> SysResult {
    Err(Errno::EOPNOTSUPP.into())
}
