//! Counts and lists as people write them.

/// `1 thread`, `2 threads`.
pub fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ if what.ends_with("switch") => format!("{count} {what}es"),
        _ => format!("{count} {what}s"),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_counts_read_as_people_write_them() {
        let items = ["a", "b", "c"].map(String::from);
        assert_eq!(listed(&items), "a, b and c");
        assert_eq!(listed(&items[..2]), "a and b");
        assert_eq!(counted(1, "context switch"), "1 context switch");
        assert_eq!(counted(3, "context switch"), "3 context switches");
    }
}
