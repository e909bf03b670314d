//! Error numbers of Linux x86-64.

/// An error number; system calls return its negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) u16);

macro_rules! errno {
    ($($name:ident = $value:literal),* $(,)?) => {
        #[expect(dead_code, reason = "the list is complete, whether each is used or not")]
        impl Errno {
            $(pub(crate) const $name: Self = Self($value);)*
        }

        impl Errno {
            /// The symbolic name.
            pub(crate) fn name(self) -> &'static str {
                match self.0 {
                    $($value => stringify!($name),)*
                    _ => "E?",
                }
            }
        }
    };
}

errno! {
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, E2BIG = 7, ENOEXEC = 8, EBADF = 9,
    ECHILD = 10, EAGAIN = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, EBUSY = 16, EEXIST = 17, EXDEV = 18,
    ENODEV = 19, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23, EMFILE = 24, ENOTTY = 25, ETXTBSY = 26,
    EFBIG = 27, ENOSPC = 28, ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, EDOM = 33, ERANGE = 34,
    EDEADLK = 35, ENAMETOOLONG = 36, ENOLCK = 37, ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, ENOMSG = 42, EIDRM = 43,
    ENODATA = 61,
    EOVERFLOW = 75, EILSEQ = 84, EUSERS = 87, ENOTSOCK = 88, EDESTADDRREQ = 89, EMSGSIZE = 90, EPROTOTYPE = 91,
    ENOPROTOOPT = 92, EPROTONOSUPPORT = 93, EOPNOTSUPP = 95, EAFNOSUPPORT = 97, EADDRINUSE = 98,
    EADDRNOTAVAIL = 99, ENETUNREACH = 101, ECONNABORTED = 103, ECONNRESET = 104, ENOBUFS = 105, EISCONN = 106,
    ENOTCONN = 107, ETIMEDOUT = 110, ECONNREFUSED = 111, EHOSTUNREACH = 113, EALREADY = 114, EINPROGRESS = 115,
    ECANCELED = 125, EOWNERDEAD = 130,
}

impl Errno {
    /// The value for RAX.
    pub(crate) fn result(self) -> u64 {
        (-i64::from(self.0)).cast_unsigned()
    }
}

impl Errno {
    /// What strerror(3) says, for the errors that our own messages can show.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::EPERM => "operation not permitted",
            Self::ENOENT => "no such file or directory",
            Self::EACCES => "permission denied",
            Self::ENOTDIR => "a part of the path is not a directory",
            Self::EISDIR => "it is a directory",
            Self::ELOOP => "too many levels of symbolic links or scripts",
            Self::ENAMETOOLONG => "the name is too long",
            Self::ENOMEM => "there is not enough guest memory",
            Self::E2BIG => "arguments and environment are too long",
            Self::ENOEXEC => "it is not a program",
            other => other.name(),
        }
    }
}
