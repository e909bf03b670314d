//! Rows of the table by number and by name.

use crate::call::Call;
use crate::table::TABLE;

/// Numbers that the index has room for.
const SLOTS: usize = 512;

/// By number, made at compile time; two rows for one number do not compile.
static BY_NUMBER: [Option<&Call>; SLOTS] = index();

const fn index() -> [Option<&'static Call>; SLOTS] {
    let mut slots: [Option<&Call>; SLOTS] = [None; SLOTS];
    let mut row = 0;
    while row < TABLE.len() {
        let call = &TABLE[row];
        let slot = call.number as usize;
        assert!(slots[slot].is_none(), "a number has one row");
        slots[slot] = Some(call);
        row += 1;
    }
    slots
}

/// The call with a number; none if Linux has no such call.
pub fn of(number: u32) -> Option<&'static Call> {
    BY_NUMBER.get(number as usize).copied().flatten()
}

/// The call with a name.
pub fn find(name: &str) -> Option<&'static Call> {
    all().find(|call| call.name == name)
}

/// Every call of Linux, by number.
pub fn all() -> impl Iterator<Item = &'static Call> {
    TABLE.iter()
}

/// The name of a call for messages.
pub fn name(number: u32) -> &'static str {
    of(number).map_or("unknown", |call| call.name)
}

/// The number of a call, for constants: a name that no call has does not compile.
pub const fn number(name: &str) -> u32 {
    let mut row = 0;
    while row < TABLE.len() {
        if is_same(TABLE[row].name.as_bytes(), name.as_bytes()) {
            return TABLE[row].number;
        }
        row += 1;
    }
    panic!("no call has this name");
}

/// Equality of constants.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_are_ascending_and_no_name_stands_twice() {
        assert!(TABLE.is_sorted_by_key(|call| call.number));
        let names: BTreeSet<&str> = all().map(|call| call.name).collect();
        assert_eq!(names.len(), TABLE.len());
        assert!(names.iter().all(|name| !name.is_empty()));
    }

    #[test]
    fn a_row_is_found_both_ways() {
        for call in all() {
            assert_eq!(of(call.number), Some(call));
            assert_eq!(find(call.name), Some(call));
            assert_eq!(number(call.name), call.number);
        }
        assert_eq!(number("futex"), 202);
        assert_eq!(name(202), "futex");
    }

    #[test]
    fn numbers_beyond_the_table_are_unknown() {
        assert_eq!(of(u32::MAX), None);
        assert_eq!(of(400), None, "a gap");
        assert_eq!((name(400), name(100_000)), ("unknown", "unknown"));
        assert_eq!(find("unknown"), None);
    }
}
