//! The `[kernel]` table: what `raddle kernel explore --races` is told of a kernel's functions.

use serde::Deserialize;

/// What a project says about its kernel; everything has a default, made for Linux.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Kernel {
    /// Functions whose own accesses are synchronisation; `*` stands for any characters. Replaces the built-in list.
    pub locks: Option<Vec<String>>,
    /// Further ones, beside the built-in list.
    pub more_locks: Vec<String>,
    /// Functions whose races are on purpose, beside the built-in ones.
    pub benign: Vec<Known>,
    /// Functions whose races are none, because what orders them is not seen; beside the built-in ones.
    pub ordered: Vec<Known>,
}

/// A function whose races are known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Known {
    /// `*` stands for any characters.
    pub function: String,
    pub why: String,
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_project_adds_and_replaces() {
        let config = crate::parse(
            "version = 1\n[kernel]\nmore-locks = [\"my_lock\"]\nbenign = [{ function = \"f\", why = \"w\" }]\n",
        )
        .unwrap();
        assert_eq!(config.kernel.more_locks, ["my_lock"]);
        assert_eq!(config.kernel.benign[0].why, "w");
        let config = crate::parse("version = 1\n[kernel]\nlocks = [\"only\"]\n").unwrap();
        assert_eq!(config.kernel.locks, Some(vec!["only".to_owned()]));
        let error = crate::parse("version = 1\n[kernel]\nlock = 1\n").unwrap_err();
        assert!(error.to_string().contains("lock"), "{error}");
    }
}
