//! Oracles that were inferred: what a value that is read at a place has been in every run that ended well.
//!
//! `raddle predict --invariants FILE` writes such a file and `--harden-oracles=FILE` reads it:
//!
//! ```toml
//! [[invariant]]
//! build-id = "d41d8cd98f00b204"   # of the program in which it was seen; not needed to harden
//! function = "report"
//! offset = 23                     # of the read in that function; not needed to harden
//! file = "fft.c"
//! line = 21
//! expression = "value >= 1000"
//! support = 120                   # reads that agreed
//! broken-by = 0                   # what the read found in the run that failed, and
//! failure = "2cd4a8f0"            # the id of that failure; not needed to harden
//! ```

use serde::{Deserialize, Serialize};

/// Reads that must have agreed before an invariant is taken for one.
pub const SUPPORT_MIN: u64 = 3;

/// What a read is expected to yield.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Invariant {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    pub function: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Nothing if the program had no line numbers: a user who reads it still has the function and the offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    pub expression: Expression,
    #[serde(default)]
    pub support: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_by: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A condition on the value read, as a signed number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Expression {
    Compare(Comparison, i64),
    /// Both ends count.
    Between(i64, i64),
    /// Never empty.
    OneOf(Vec<i64>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// A text that is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no condition on a value that is read; write `value != 0`, `value == 3`, `value in 1..=8` or `value in [1, 2, 4]`"
)]
pub struct ExpressionError(String);

impl TryFrom<String> for Expression {
    type Error = ExpressionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parse(&text).ok_or(ExpressionError(text))
    }
}

fn parse(text: &str) -> Option<Expression> {
    let rest = text.trim().strip_prefix("value")?.trim_start();
    if let Some(range) = rest.strip_prefix("in ") {
        let range = range.trim();
        if let Some(list) = range.strip_prefix('[') {
            let numbers = list.strip_suffix(']')?.split(',').map(number);
            return numbers.collect::<Option<_>>().map(Expression::OneOf);
        }
        let (low, high) = range.split_once("..=")?;
        let (low, high) = (number(low)?, number(high)?);
        return (low <= high).then_some(Expression::Between(low, high));
    }
    let (comparison, behind) = COMPARISONS
        .iter()
        .find_map(|(sign, comparison)| Some((*comparison, rest.strip_prefix(sign)?)))?;
    Some(Expression::Compare(comparison, number(behind)?))
}

fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        // An address may use the highest bit.
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        match expression {
            Expression::Between(low, high) => format!("value in {low}..={high}"),
            Expression::OneOf(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
                format!("value in [{}]", numbers.join(", "))
            }
            Expression::Compare(wanted, number) => {
                let sign = COMPARISONS
                    .iter()
                    .find(|(_, comparison)| *comparison == wanted)
                    .map_or("==", |(sign, _)| sign);
                format!("value {sign} {number}")
            }
        }
    }
}

/// A file of invariants that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("it is no file of invariants ([[invariant]] tables with function and expression): {0}")]
pub struct FileError(#[from] toml::de::Error);

/// What is in a file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    #[serde(default)]
    invariant: Vec<Invariant>,
}

/// Reads a file of invariants; those with too little support are left out.
///
/// # Errors
/// If the text is not TOML, or a table of it is no invariant.
pub fn read(text: &str) -> Result<Vec<Invariant>, FileError> {
    let file: File = toml::from_str(text)?;
    let all = file.invariant.into_iter();
    Ok(all
        .filter(|invariant| invariant.support == 0 || invariant.support >= SUPPORT_MIN)
        .collect())
}

/// The text of a file of invariants; one without entries says that there are none.
///
/// # Errors
/// If a number is too large for TOML.
pub fn write(invariant: Vec<Invariant>) -> Result<String, toml::ser::Error> {
    let entries = toml::to_string_pretty(&File { invariant })?;
    Ok(format!(
        "# Held whenever the program ended well, and was broken when it failed. `value` is what the read finds.\n{entries}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(text: &str) -> Result<Expression, ExpressionError> {
        text.to_owned().try_into()
    }

    #[test]
    fn conditions_are_read_and_written() {
        for text in [
            "value != 0",
            "value == 3",
            "value in 1..=8",
            "value >= -4",
            "value in [-1, 2, 9]",
        ] {
            assert_eq!(String::from(expression(text).unwrap()), text);
        }
        let address = expression("value != 0xffffffffffffffff").unwrap();
        assert_eq!(address, Expression::Compare(Comparison::NotEqual, -1));
        for wrong in [
            "value",
            "value = 3",
            "x == 3",
            "value in 8..=1",
            "value in []",
            "value in [1, 2",
            "value == y",
        ] {
            let error = expression(wrong).unwrap_err().to_string();
            assert!(error.contains("value != 0"), "{error}");
        }
    }

    #[test]
    fn a_file_is_read_and_weak_support_left_out() {
        let table = |support: u64| {
            format!(
                "[[invariant]]\nbuild-id = \"ab\"\nfunction = \"f\"\nfile = \"a.c\"\nline = 3\n\
                 expression = \"value != 0\"\nsupport = {support}\n"
            )
        };
        let all = read(&format!("{}{}", table(12), table(1))).unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].line, all[0].support), (Some(3), 12));
        let error = read("[[invariant]]\nfile = 3\n").unwrap_err().to_string();
        assert!(error.contains("no file of invariants"), "{error}");
        assert_eq!(read("").unwrap(), []);
    }
    #[test]
    fn what_is_written_is_read() {
        let all = vec![
            Invariant {
                build_id: Some("ab".to_owned()),
                function: "f".to_owned(),
                offset: Some(4),
                file: Some("a.c".to_owned()),
                line: Some(3),
                expression: Expression::OneOf(vec![2, 9]),
                support: 12,
                broken_by: Some(-1),
                failure: Some("00ff".to_owned()),
            },
            Invariant {
                build_id: None,
                function: "g".to_owned(),
                offset: None,
                file: None,
                line: None,
                expression: Expression::Compare(Comparison::NotEqual, 0),
                support: 3,
                broken_by: None,
                failure: None,
            },
        ];
        let text = write(all.clone()).unwrap();
        assert_eq!(read(&text).unwrap(), all, "{text}");
        assert_eq!(read(&write(Vec::new()).unwrap()).unwrap(), []);
    }
}
