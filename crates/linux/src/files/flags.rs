//! Flag values of the Linux x86-64 interface (include/uapi/asm-generic/fcntl.h and friends).

pub(crate) const O_ACCMODE: u32 = 0o3;
pub(crate) const O_WRONLY: u32 = 0o1;
pub(crate) const O_RDWR: u32 = 0o2;
pub(crate) const O_CREAT: u32 = 0o100;
pub(crate) const O_EXCL: u32 = 0o200;
pub(crate) const O_TRUNC: u32 = 0o1000;
pub(crate) const O_APPEND: u32 = 0o2000;
pub(crate) const O_NONBLOCK: u32 = 0o4000;
pub(crate) const O_DSYNC: u32 = 0o10_000;
pub(crate) const O_ASYNC: u32 = 0o20_000;
pub(crate) const O_DIRECT: u32 = 0o40_000;
pub(crate) const O_LARGEFILE: u32 = 0o100_000;
pub(crate) const O_DIRECTORY: u32 = 0o200_000;
pub(crate) const O_NOFOLLOW: u32 = 0o400_000;
pub(crate) const O_NOATIME: u32 = 0o1_000_000;
pub(crate) const O_CLOEXEC: u32 = 0o2_000_000;
pub(crate) const O_SYNC: u32 = 0o4_010_000;
pub(crate) const O_PATH: u32 = 0o10_000_000;
/// Includes `O_DIRECTORY`.
pub(crate) const O_TMPFILE: u32 = 0o20_200_000;

pub(crate) const AT_FDCWD: i32 = -100;
pub(crate) const AT_SYMLINK_NOFOLLOW: u32 = 0x100;
/// `AT_REMOVEDIR` of unlinkat and `AT_EACCESS` of faccessat2.
pub(crate) const AT_REMOVEDIR: u32 = 0x200;
pub(crate) const AT_SYMLINK_FOLLOW: u32 = 0x400;
pub(crate) const AT_NO_AUTOMOUNT: u32 = 0x800;
pub(crate) const AT_EMPTY_PATH: u32 = 0x1000;
pub(crate) const AT_STATX_SYNC_TYPE: u32 = 0x6000;

pub(crate) const POLLIN: u32 = 0x1;
pub(crate) const POLLPRI: u32 = 0x2;
pub(crate) const POLLOUT: u32 = 0x4;
pub(crate) const POLLERR: u32 = 0x8;
pub(crate) const POLLHUP: u32 = 0x10;
pub(crate) const POLLNVAL: u32 = 0x20;
pub(crate) const POLLRDNORM: u32 = 0x40;
pub(crate) const POLLWRNORM: u32 = 0x100;
pub(crate) const POLLRDHUP: u32 = 0x2000;

pub(crate) const PATH_MAX: usize = 4096;
pub(crate) const NAME_MAX: usize = 255;

/// The longest transfer of one call (`MAX_RW_COUNT`).
pub(crate) const TRANSFER_MAX: usize = 0x7FFF_F000;
