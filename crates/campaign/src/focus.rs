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
    fn ranges_that_touch_become_one() {
        assert_eq!(merged(vec![5..7, 1..3, 3..4, 6..9]), [1..4, 5..9]);
    }
}
