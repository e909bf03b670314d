//! What the files of all recordings have in common.
//!
//! ```text
//!   <magic> <format> <checksum of the rest>\n
//!   { JSON }
//! ```
//! The text is meant to be readable: a schedule of three deviations is three lines.

use raddle_stdx::Digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A recording that is kept in a file.
pub trait Enveloped: Serialize + DeserializeOwned {
    /// How the file begins.
    const MAGIC: &'static str;
    /// How the names of such files end.
    const EXTENSION: &'static str;
    /// Version of the file's form.
    const FORMAT: u32;
    /// Version of what the content means. Raised whenever an old recording would run differently.
    const SEMANTICS: u32;

    /// What a replay may need and this raddle has, beside what every recording of this format needs. A recording
    /// names its needs, so that what later versions add (store-buffer drains, messages) does not change the format of recordings that do without.
    const ABILITIES: &'static [&'static str] = &[];

    /// The version of what this content means.
    fn semantics(&self) -> u32;

    /// What was run: two recordings of one subject replace each other, those of different ones never do.
    fn subject(&self) -> String;

    /// What makes no sense in it, if anything: its maker may have written anything into it.
    fn nonsense(&self) -> Option<&'static str>;

    /// The file's text.
    fn to_text(&self) -> String {
        let body = serde_json::to_string_pretty(self).expect("plain data can be written") + "\n";
        let checksum = Digest::of(body.as_bytes());
        format!("{} {} {checksum:016x}\n{body}", Self::MAGIC, Self::FORMAT)
    }

    /// Whether a text that begins so would be of this kind, whatever its version and state.
    fn is_kind_of(start: &str) -> bool {
        start
            .strip_prefix(Self::MAGIC)
            .is_some_and(|rest| rest.starts_with(' '))
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// It is not such a file, of another version, or damaged.
    fn parse(text: &str) -> Result<Self, RecordingError> {
        let (head, body) = text
            .split_once('\n')
            .filter(|_| Self::is_kind_of(text))
            .ok_or(RecordingError::NotARecording { magic: Self::MAGIC })?;
        let mut words = head.split(' ').skip(1);
        let format = words.next().unwrap_or_default();
        if format.parse() != Ok(Self::FORMAT) {
            return Err(RecordingError::Format {
                found: format.to_owned(),
                ours: Self::FORMAT,
            });
        }
        let stated = words.next().unwrap_or_default();
        let computed = Digest::of(body.as_bytes());
        if stated != format!("{computed:016x}") {
            return Err(RecordingError::Damaged {
                stated: stated.to_owned(),
                computed,
            });
        }
        let malformed = |error: serde_json::Error| RecordingError::Content(error.to_string());
        let demands: Demands = serde_json::from_str(body).map_err(malformed)?;
        demands.check(Self::SEMANTICS, Self::ABILITIES)?;
        let recording: Self = serde_json::from_str(body).map_err(malformed)?;
        match recording.nonsense() {
            Some(what) => Err(RecordingError::Content(what.to_owned())),
            None => Ok(recording),
        }
    }
}

/// What is asked before the rest of the content is read, which may have parts that this version does not know.
#[derive(Debug, Deserialize)]
struct Demands {
    semantics: u32,
    #[serde(default)]
    needs: Vec<String>,
}

impl Demands {
    fn check(self, ours: u32, abilities: &[&str]) -> Result<(), RecordingError> {
        if self.semantics != ours {
            return Err(RecordingError::Semantics {
                found: self.semantics,
                ours,
            });
        }
        let mut needs = self.needs.into_iter();
        match needs.find(|need| !abilities.contains(&need.as_str())) {
            Some(need) => Err(RecordingError::Need(need)),
            None => Ok(()),
        }
    }
}

/// Why a file is no recording that we can replay.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RecordingError {
    #[error("it is not a recording: the first line does not begin with `{magic}`")]
    NotARecording { magic: &'static str },
    #[error(
        "it has format version {found}, this raddle reads version {ours}: replay it with the raddle that made it, or \
         explore again"
    )]
    Format { found: String, ours: u32 },
    #[error("it is damaged: the checksum is {computed:016x} and should be {stated}")]
    Damaged { stated: String, computed: u64 },
    #[error(
        "it was made by a raddle whose runs go differently (semantics {found}, this one has {ours}); explore again"
    )]
    Semantics { found: u32, ours: u32 },
    #[error("its replay needs `{0}`, which this raddle does not have: use a newer one")]
    Need(String),
    #[error("its content is malformed: {0}")]
    Content(String),
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Small {
        semantics: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        needs: Vec<String>,
        steps: u32,
    }

    impl Enveloped for Small {
        const MAGIC: &'static str = "small";
        const EXTENSION: &'static str = "small";
        const FORMAT: u32 = 2;
        const SEMANTICS: u32 = 3;
        const ABILITIES: &'static [&'static str] = &["history"];

        fn semantics(&self) -> u32 {
            self.semantics
        }

        fn subject(&self) -> String {
            "small".to_owned()
        }

        fn nonsense(&self) -> Option<&'static str> {
            (self.steps == 0).then_some("no steps")
        }
    }

    const SAMPLE: Small = Small {
        semantics: 3,
        needs: Vec::new(),
        steps: 9,
    };

    #[test]
    fn a_recording_is_refused_by_name_for_what_a_replay_lacks() {
        let needing = |need: &str| Small {
            needs: vec![need.to_owned()],
            ..SAMPLE
        };
        let known = needing("history");
        assert_eq!(Small::parse(&known.to_text()), Ok(known));
        let text = needing("store-drains").to_text();
        // Content that only the version with this ability could read must not hide the reason.
        let body = text
            .split_once('\n')
            .unwrap()
            .1
            .replace("9", "{\"drain\": [0]}");
        let text = format!("small 2 {:016x}\n{body}", Digest::of(body.as_bytes()));
        let refused = Small::parse(&text);
        assert_eq!(refused, Err(RecordingError::Need("store-drains".into())));
    }

    #[test]
    fn text_and_back() {
        assert_eq!(Small::parse(&SAMPLE.to_text()), Ok(SAMPLE));
    }

    #[test]
    fn damage_and_foreign_files_are_told_apart() {
        let text = SAMPLE.to_text();
        assert!(matches!(
            Small::parse(&text.replace("\"steps\": 9", "\"steps\": 8")),
            Err(RecordingError::Damaged { .. })
        ));
        for foreign in ["\u{7f}ELF\n", "small-other 2 0\n{}", "small"] {
            assert!(!Small::is_kind_of(foreign), "{foreign}");
            assert_eq!(
                Small::parse(foreign),
                Err(RecordingError::NotARecording { magic: "small" })
            );
        }
        assert!(Small::is_kind_of(&text));
        assert!(matches!(
            Small::parse(&text.replacen(" 2 ", " 1 ", 1)),
            Err(RecordingError::Format { .. })
        ));
        let empty = Small { steps: 0, ..SAMPLE };
        assert_eq!(
            Small::parse(&empty.to_text()),
            Err(RecordingError::Content("no steps".to_owned()))
        );
        let other = Small {
            semantics: 99,
            ..SAMPLE
        };
        assert_eq!(
            Small::parse(&other.to_text()),
            Err(RecordingError::Semantics { found: 99, ours: 3 })
        );
    }
}
