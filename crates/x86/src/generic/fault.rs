//! Short names for the exceptions that instructions raise.

use crate::exit::{Fault, Vector};

fn exception(vector: Vector, error_code: u32) -> Fault {
    Fault::Exception { vector, error_code }
}

/// #DE.
pub(crate) fn divide() -> Fault {
    exception(Vector::Divide, 0)
}

/// #UD.
pub(crate) fn undefined() -> Fault {
    exception(Vector::InvalidOpcode, 0)
}

/// #NM.
pub(crate) fn no_device() -> Fault {
    exception(Vector::DeviceNotAvailable, 0)
}

/// #TS with a selector.
pub(crate) fn invalid_tss(code: u32) -> Fault {
    exception(Vector::InvalidTss, code)
}

/// #NP with a selector.
pub(crate) fn not_present(code: u32) -> Fault {
    exception(Vector::SegmentNotPresent, code)
}

/// #SS with an error code.
pub(crate) fn stack(code: u32) -> Fault {
    exception(Vector::StackFault, code)
}

/// #GP with an error code.
pub(crate) fn protection(code: u32) -> Fault {
    exception(Vector::GeneralProtection, code)
}

/// #MF.
pub(crate) fn x87() -> Fault {
    exception(Vector::X87, 0)
}
