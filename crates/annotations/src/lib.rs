//! Marks for `raddle linearize`: where an operation on a shared object begins and ends, what it was given, what it gave.
//!
//! Each mark is one instruction that does nothing on any processor; outside of raddle it costs a nanosecond. The same
//! marks for C and C++ are in `include/raddle.h`.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Mutex;
//!
//! let map = Mutex::new(BTreeMap::new());
//! raddle_annotations::operation("insert", &[&1, &"one"], || {
//!     map.lock().unwrap().insert(1, "one")
//! });
//! raddle_annotations::probe("len", &[], || map.lock().unwrap().len());
//! ```

use std::fmt::{Debug, Display};

mod mark;

/// The header with the same marks for C and C++.
pub const HEADER: &str = include_str!("../include/raddle.h");

/// Does something to a shared object. What it gives is its result, in its debug form.
pub fn operation<T: Debug>(name: &str, arguments: &[&dyn Display], run: impl FnOnce() -> T) -> T {
    mark::begin(name);
    marked(arguments, run)
}

/// Asks a shared object for its state, when all operations are over.
pub fn probe<T: Debug>(name: &str, arguments: &[&dyn Display], run: impl FnOnce() -> T) -> T {
    mark::probe(name);
    marked(arguments, run)
}

fn marked<T: Debug>(arguments: &[&dyn Display], run: impl FnOnce() -> T) -> T {
    for argument in arguments {
        mark::argument(&argument.to_string());
    }
    let result = run();
    mark::result(&format!("{result:?}"));
    mark::end();
    result
}

/// Begins an operation by hand, for what no closure can hold; [`end`] ends it on the same thread.
pub fn begin(name: &str, arguments: &[&dyn Display]) {
    mark::begin(name);
    for argument in arguments {
        mark::argument(&argument.to_string());
    }
}

/// Ends the operation that this thread has begun.
pub fn end(result: &dyn Debug) {
    mark::result(&format!("{result:?}"));
    mark::end();
}

/// Ends the operation that this thread has begun: it says itself that it failed.
pub fn end_with_error(error: &dyn Display) {
    mark::error(&error.to_string());
    mark::end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_raddle_marks_do_nothing() {
        assert_eq!(operation("add", &[&1, &2], || 1 + 2), 3);
        assert_eq!(probe("empty", &[], String::new), "");
        begin("by hand", &[&"x"]);
        end(&Some(1));
        begin("by hand", &[]);
        end_with_error(&"no");
    }

    #[test]
    fn the_header_and_we_agree_on_letters() {
        for letter in mark::LETTERS {
            let written = format!("RADDLE_MARK(\"{:#04x}\"", u32::from(letter));
            assert!(HEADER.contains(&written), "{letter}");
        }
    }
}
