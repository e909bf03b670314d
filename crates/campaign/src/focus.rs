//! Code on which decisions are concentrated.

use std::ops::Range;

/// A function or a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Focus {
    Function(String),
    Line { file: String, line: u32 },
}

impl std::str::FromStr for Focus {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((file, line)) = text.rsplit_once(':')
            && let Ok(line) = line.parse()
            && !file.ends_with(':')
        {
            return Ok(Self::Line {
                file: file.to_owned(),
                line,
            });
        }
        Ok(Self::Function(text.to_owned()))
    }
}

impl std::fmt::Display for Focus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Function(name) => f.write_str(name),
            Self::Line { file, line } => write!(f, "{file}:{line}"),
        }
    }
}

/// A line that holds no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no place in the code; give a line of the log of a hardened program, as in \
     `--site 'raddle-harden: queue.c:120 (push): deadlock recovered after 1 retry, 96 us'`, or FILE:LINE (FUNCTION)"
)]
pub struct NoSite(String);

/// The functions that a line of the log of a hardened program names: where it failed and, of a deadlock, where the other
/// threads took their locks. A bare `FILE:LINE` is a place, too.
///
/// # Errors
/// If the text holds no place.
pub fn of_site(text: &str) -> Result<Vec<Focus>, NoSite> {
    let mut found: Vec<Focus> = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(" (") {
        let before = rest[..open].rsplit(' ').next().unwrap_or_default();
        let behind = &rest[open + 2..];
        let place: Focus = before.parse().unwrap_or_else(|never| match never {});
        // A C++ name has brackets of its own.
        let name = closed(behind).map(|end| &behind[..end]);
        if let (Focus::Line { .. }, Some(name)) = (&place, name) {
            let function = Focus::Function(without_parameters(name).to_owned());
            if !found.contains(&function) {
                found.push(function);
            }
        }
        rest = behind;
    }
    if found.is_empty()
        && let Ok(line @ Focus::Line { .. }) = text.trim().parse()
    {
        found.push(line);
    }
    if found.is_empty() {
        return Err(NoSite(text.to_owned()));
    }
    Ok(found)
}

/// Where a bracket that was opened before the text is closed.
fn closed(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.bytes().position(|byte| {
        depth += match byte {
            b'(' => 1,
            b')' => -1,
            _ => 0,
        };
        depth == 0
    })
}

/// `ns::f(int)` is `ns::f` where functions are named.
fn without_parameters(name: &str) -> &str {
    match name.find('(') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Ranges in their order, without overlaps.
pub fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_functions_or_lines() {
        let places = ["main", "a.c:12", "ns::f", "C::g:x"].map(|text| {
            let Ok(place) = text.parse::<Focus>();
            place
        });
        assert_eq!(places[0], Focus::Function("main".to_owned()));
        let line = Focus::Line {
            file: "a.c".to_owned(),
            line: 12,
        };
        assert_eq!(places[1], line);
        assert_eq!(places[2], Focus::Function("ns::f".to_owned()));
        assert_eq!(places[3], Focus::Function("C::g:x".to_owned()));
    }

    #[test]
    fn the_places_of_a_log_line_are_found() {
        let names = |text: &str| -> Vec<String> {
            of_site(text)
                .unwrap()
                .iter()
                .map(Focus::to_string)
                .collect()
        };
        let survived =
            "raddle-harden: src/queue.c:12 (push): deadlock recovered after 1 retry, 96 us";
        assert_eq!(names(survived), ["push"]);
        let told = "raddle-harden: a.c:17 (right): deadlock of 2 threads cannot be recovered from: thread 1 waits for \
                    lock 0x55, taken by thread 2 at a.c:7 (left); thread 2 waits for lock 0x56, taken by thread 1 at \
                    a.c:15 (right)";
        assert_eq!(names(told), ["right", "left"]);
        let cpp = "raddle-harden: q.cpp:3 (ns::Queue::push(int, char const*)): assertion failed, re-executing";
        assert_eq!(names(cpp), ["ns::Queue::push"]);
        assert_eq!(names("queue.c:12"), ["queue.c:12"]);
        let error = of_site("no place here").unwrap_err().to_string();
        assert!(error.contains("--site"), "{error}");
    }

    #[test]
    fn ranges_that_touch_become_one() {
        assert_eq!(merged(vec![5..7, 1..3, 3..4, 6..9]), [1..4, 5..9]);
    }
}
