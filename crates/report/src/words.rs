//! Counts and lists as people write them, and texts of others as they may be shown.

use std::borrow::Cow;

/// `1 thread`, `2 threads`.
pub fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {}", plural(what)),
    }
}

fn plural(what: &str) -> String {
    let vowels = ['a', 'e', 'i', 'o', 'u'];
    match what.strip_suffix('y') {
        Some(stem) if !stem.ends_with(vowels) => format!("{stem}ies"),
        _ if what.ends_with("ch") => format!("{what}es"),
        _ => format!("{what}s"),
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

/// A text that raddle did not make, as it may be shown: what would steer a terminal, or turn the direction of reading,
/// is spelled out. Lines and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_command(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// A function's name without the arguments of its generics, which can fill pages.
pub fn short_function(name: &str) -> String {
    const LONG: usize = 48;
    if name.len() <= LONG {
        return name.to_owned();
    }
    let mut depth = 0_usize;
    let mut short = String::new();
    for letter in name.chars() {
        match letter {
            '<' => {
                if depth == 0 && !short.is_empty() {
                    short.push_str("<..>");
                }
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => short.push(letter),
            _ => {}
        }
    }
    let short = short.trim_start_matches("::").replace("::<..>", "");
    if short.is_empty() {
        name.chars().take(LONG).chain("..".chars()).collect()
    } else {
        short
    }
}

/// The path of a function without the arguments of generics and without parameters: `<a::B<C>>::f` is `a::B::f`.
pub fn without_generics(name: &str) -> String {
    if let Some(inside) = name.strip_prefix('<')
        && let Some(end) = closing(inside)
    {
        let of = inside[..end].split(" as ").next().unwrap_or_default();
        return without_generics(of) + &without_generics(&inside[end + 1..]);
    }
    let mut depth = 0_usize;
    let mut path = String::new();
    // The brackets of an operator's name open nothing.
    let operator = name.find("operator").unwrap_or(name.len());
    for (at, letter) in name.char_indices() {
        match letter {
            '<' | '>' if at > operator => path.push(letter),
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            _ if depth == 0 => path.push(letter),
            _ => {}
        }
    }
    path
}

/// Where the bracket is closed that was opened before a text.
fn closing(inside: &str) -> Option<usize> {
    let mut depth = 1_usize;
    for (at, letter) in inside.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn is_command(character: char) -> bool {
    let turns = matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    turns || (character.is_control() && !matches!(character, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_things_have_their_plural() {
        for (word, two) in [
            ("step", "2 steps"),
            ("switch", "2 switches"),
            ("history", "2 histories"),
            ("delay", "2 delays"),
        ] {
            assert_eq!(counted(2, word), two);
            assert_eq!(counted(1, word), format!("1 {word}"));
        }
    }

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        assert_eq!(printable("a\tb\nc"), "a\tb\nc");
        assert_eq!(printable("\u{1b}[2Jx\r"), "\\u{1b}[2Jx\\u{d}");
        assert_eq!(printable("ok\u{202e}ko"), "ok\\u{202e}ko");
    }

    #[test]
    fn long_generic_names_lose_their_arguments() {
        assert_eq!(short_function("deposit"), "deposit");
        assert_eq!(
            short_function(
                "core::ptr::drop_in_place::<core::result::Result<std::sync::MutexGuard<()>, ()>>"
            ),
            "core::ptr::drop_in_place"
        );
    }

    #[test]
    fn paths_of_functions_have_neither_generics_nor_parameters() {
        let path = without_generics;
        assert_eq!(
            path("<std::sync::mpsc::Sender<i32>>::send"),
            "std::sync::mpsc::Sender::send"
        );
        assert_eq!(path("<a::B as c::D>::f::<u8>"), "a::B::f::");
        assert_eq!(
            path("std::vector<int>::at(unsigned long) const"),
            "std::vector::at"
        );
        assert_eq!(path("strcpy"), "strcpy");
        assert_eq!(
            path("std::ptr<A>::operator->() const"),
            "std::ptr::operator->"
        );
    }

    #[test]
    fn lists_and_counts_read_as_people_write_them() {
        let items = ["a", "b", "c"].map(String::from);
        assert_eq!(listed(&items), "a, b and c");
        assert_eq!(listed(&items[..2]), "a and b");
        assert_eq!(counted(1, "context switch"), "1 context switch");
        assert_eq!(counted(3, "context switch"), "3 context switches");
    }
}
