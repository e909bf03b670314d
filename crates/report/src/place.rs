//! Where in a program something is.

use serde::{Deserialize, Serialize};

use crate::words::short_function;

/// Where in the source something is; unknown parts are empty or zero.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// The path as the analysis knows it: that of debug information, or that of a scanned file. For code without lines
    /// the program or library.
    pub file: String,
    /// One-based; 0 if unknown.
    pub line: u32,
    /// One-based; 0 if unknown.
    pub column: u32,
    pub function: String,
}

impl Place {
    /// A file's own name if its path is absolute: the folder is noise in a column. Relative paths are short enough, and
    /// the user has named them so.
    pub fn short_file(&self) -> &str {
        if self.file.starts_with('/') {
            self.file.rsplit('/').next().unwrap_or_default()
        } else {
            &self.file
        }
    }

    /// `file.c:12 function`.
    pub fn describe(&self) -> String {
        let file = self.file.rsplit('/').next().unwrap_or_default();
        let function = short_function(&self.function);
        match (file, self.line) {
            ("", _) => function,
            (_, 0) => format!("{function} in {file}"),
            (_, line) => format!("{file}:{line} {function}"),
        }
    }

    /// Whether it names a line of source.
    pub fn has_line(&self) -> bool {
        self.line != 0 && !self.file.is_empty()
    }
}

/// One frame of a call stack; an inlined call is a frame, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Frame {
    #[serde(flatten)]
    pub place: Place,
    /// Code of the C library or of a language's standard library, not the reader's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_library: bool,
}

impl Frame {
    /// A frame of the reader's own code.
    pub fn own(place: Place) -> Self {
        Self {
            place,
            is_library: false,
        }
    }
}

/// An instruction under a name that outlives the run: the program or library, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Code {
    pub image: String,
    pub offset: Word,
}

/// A number of up to 64 bits, written as `0x1f`: numbers of JSON lose digits above 53 bits in many readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Word(pub u64);

impl From<Word> for String {
    fn from(word: Word) -> Self {
        format!("{:#x}", word.0)
    }
}

impl TryFrom<String> for Word {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Self)
            .ok_or_else(|| format!("`{text}` is no number such as 0x1f"))
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Word {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A number of up to 64 bits in hexadecimal: numbers of JSON lose digits above 53 bits in many readers.",
            "type": "string",
            "pattern": "^0x[0-9a-f]{1,16}$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_short_where_nobody_has_named_the_folder() {
        let place = |file: &str, line| Place {
            file: file.into(),
            line,
            column: 0,
            function: "f".into(),
        };
        assert_eq!(place("/home/me/a.c", 3).short_file(), "a.c");
        assert_eq!(place("fs/a.c", 3).short_file(), "fs/a.c");
        assert_eq!(place("fs/a.c", 3).describe(), "a.c:3 f");
        assert_eq!(place("/lib/libx.so", 0).describe(), "f in libx.so");
        assert_eq!(Place::default().describe(), "");
    }

    #[test]
    fn words_keep_all_their_bits() {
        let text = serde_json::to_string(&Word(u64::MAX)).unwrap();
        assert_eq!(text, "\"0xffffffffffffffff\"");
        assert_eq!(serde_json::from_str::<Word>(&text).unwrap().0, u64::MAX);
        serde_json::from_str::<Word>("\"12\"").unwrap_err();
    }
}
