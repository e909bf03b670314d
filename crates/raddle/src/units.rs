//! Times and sizes as people type them.

use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const UNITS: [(&str, u64); 9] = [
    ("GiB", GIB),
    ("MiB", MIB),
    ("KiB", KIB),
    ("G", GIB),
    ("M", MIB),
    ("K", KIB),
    ("g", GIB),
    ("m", MIB),
    ("k", KIB),
];

/// Bytes of a size with a unit; none if it has none, or is none.
fn with_unit(text: &str) -> Option<u64> {
    let (number, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))?;
    let number: u64 = number.trim_end().parse().ok()?;
    number.checked_mul(unit)
}

/// Whole seconds: `90`, `90s`, `5m`, `1h30m`.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    if let Ok(plain) = text.parse() {
        return Ok(plain);
    }
    let time = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; give seconds, or a time such as 90s, 5m or 1h30m"))?;
    if time.subsec_nanos() != 0 || (time == Duration::ZERO && text.contains("ms")) {
        return Err("times are whole seconds: give one such as 90s, 5m or 1h30m".to_owned());
    }
    Ok(time.as_secs())
}

/// Mebibytes: `256`, `256M`, `2G`, `2GiB`.
pub(crate) fn mebibytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size; give MiB, or a size such as 512M or 2G");
    if let Ok(plain) = text.parse() {
        return Ok(plain);
    }
    let bytes = with_unit(text).ok_or_else(wrong)?;
    if bytes.is_multiple_of(MIB) {
        Ok(bytes / MIB)
    } else {
        Err(format!("`{text}` is no whole number of MiB"))
    }
}

/// Bytes of guest memory: `1073741824`, `512M`, `4G`, `4GiB`.
pub(crate) fn guest_memory(text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .or_else(|| with_unit(text))
        .filter(|bytes| *bytes >= MIB)
        .ok_or_else(|| format!("`{text}` is not a size of at least 1M; write 512M or 4G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_are_seconds() {
        for (text, expected) in [
            ("60", 60),
            ("60s", 60),
            ("5m", 300),
            ("1h", 3600),
            ("1h30m", 5400),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "-1", "5 parsecs", "500ms", "1.5", "0ms"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn guest_memory_is_bytes_or_has_a_unit() {
        for (text, expected) in [
            ("2G", 2 << 30),
            ("512m", 512 << 20),
            ("4 GiB", 4 << 30),
            ("1048576", 1 << 20),
        ] {
            assert_eq!(guest_memory(text), Ok(expected), "{text}");
        }
        for text in ["12", "xM", "512K", "99999999999G"] {
            assert!(guest_memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_units_or_are_mebibytes() {
        for (text, expected) in [
            ("256", 256),
            ("256M", 256),
            ("2G", 2048),
            ("2 GiB", 2048),
            ("1024K", 1),
        ] {
            assert_eq!(mebibytes(text), Ok(expected), "{text}");
        }
        for text in ["", "-1", "5T", "1K", "G", "99999999999999999999G"] {
            assert!(mebibytes(text).is_err(), "{text}");
        }
    }
}
