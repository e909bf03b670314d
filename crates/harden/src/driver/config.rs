//! From `raddle.toml` and options to the plugin's settings.

use std::ffi::OsString;

use raddle_config::harden::Harden;
use raddle_report::Finding;

use crate::analysis::plan::Reach;
use crate::settings::{
    AllocFunctions, Checks, LockFunctions, Mechanism, Mode, Settings, SitePlace, SitePlaceError,
    Undo,
};

/// Our options on a compiler command line begin with this.
pub const PREFIX: &str = "--harden-";

/// What the options of a command line say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub settings: Settings,
    /// Trouble is an error instead of a plain compilation.
    pub is_strict: bool,
    /// The inputs hold bitcode, though nothing on the command line says so (rustc).
    pub links_bitcode: bool,
    /// Paths of finding files whose places are the sites of fix mode.
    pub findings: Vec<String>,
    /// Paths of files with invariants.
    pub oracles: Vec<String>,
    pub config: Option<String>,
}

/// An option of ours that is wrong.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OptionError {
    #[error(
        "there is no option `{0}`; see `raddle help cc` for the options that begin with {PREFIX}"
    )]
    Unknown(String),
    #[error("`{option}` needs a number, not `{value}`")]
    NotANumber { option: String, value: String },
    #[error("`{option}` is one of {allowed}, not `{value}`")]
    NotAllowed {
        option: String,
        value: String,
        allowed: &'static str,
    },
    #[error(transparent)]
    Site(#[from] SitePlaceError),
}

/// Takes our options out of a compiler command line.
pub fn take_options(
    arguments: Vec<OsString>,
    options: &mut Options,
) -> Result<Vec<OsString>, OptionError> {
    let mut rest = Vec::new();
    for argument in arguments {
        match argument.to_str().and_then(|text| text.strip_prefix(PREFIX)) {
            Some(option) => take_option(option, options)?,
            None => rest.push(argument),
        }
    }
    Ok(rest)
}

fn take_option(option: &str, options: &mut Options) -> Result<(), OptionError> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let settings = &mut options.settings;
    match name {
        "mode" => settings.mode = mode(value)?,
        "site" => {
            settings.mode = Mode::Fix;
            settings.sites.push(value.parse()?);
        }
        "finding" => {
            settings.mode = Mode::Fix;
            options.findings.push(value.into());
        }
        "oracles" => options.oracles.push(value.into()),
        "report" => settings.report = Some(value.into()),
        "config" => options.config = Some(value.into()),
        "pointer-bound" => settings.pointer_bound = number(name, value)?,
        "caller-levels" => settings.caller_levels = number(name, value)?,
        "volatile-is-io" => settings.volatile_is_io = true,
        "harmless" => settings.harmless.push(value.into()),
        "undo" => {
            settings.undo = match value {
                "never" => Undo::Never,
                "proven" => Undo::Proven,
                "plain" => Undo::Plain,
                _ => return Err(not_allowed(name, value, "never, proven, plain")),
            }
        }
        "assertion" => settings.assertions.push(value.into()),
        "output" => settings.outputs.push(value.into()),
        "strict" => options.is_strict = true,
        "bitcode" => options.links_bitcode = true,
        "inject" => settings.inject = true,
        "no-pruning" => settings.prunes = false,
        "count-points" => settings.count_points = true,
        "regions" => {
            settings.reach = Some(match value {
                "cheap" => Reach::Cheap,
                "longest" => Reach::Longest,
                _ => return Err(not_allowed(name, value, "cheap, longest")),
            });
        }
        "checks" => {
            settings.checks = Some(match value {
                "fault" => Checks::Fault,
                "compare" => Checks::Compare,
                _ => return Err(not_allowed(name, value, "fault, compare")),
            });
        }
        "mechanism" => {
            settings.mechanism = match value {
                "branch" => Mechanism::Branch,
                "setjmp" => Mechanism::Setjmp,
                _ => return Err(not_allowed(name, value, "branch, setjmp")),
            }
        }
        _ => return Err(OptionError::Unknown(format!("{PREFIX}{name}"))),
    }
    Ok(())
}

fn mode(value: &str) -> Result<Mode, OptionError> {
    match value {
        "survival" => Ok(Mode::Survival),
        "fix" => Ok(Mode::Fix),
        _ => Err(not_allowed("mode", value, "survival, fix")),
    }
}

fn not_allowed(name: &str, value: &str, allowed: &'static str) -> OptionError {
    OptionError::NotAllowed {
        option: format!("{PREFIX}{name}"),
        value: value.into(),
        allowed,
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, OptionError> {
    value.parse().map_err(|_error| OptionError::NotANumber {
        option: format!("{PREFIX}{name}"),
        value: value.into(),
    })
}

/// Adds what the project's configuration says; options that were given stay.
pub fn add_config(settings: &mut Settings, config: &Harden) {
    let defaults = Settings::default();
    settings
        .assertions
        .extend(config.assertions.iter().cloned());
    settings.outputs.extend(config.outputs.iter().cloned());
    settings.harmless.extend(config.harmless.iter().cloned());
    settings
        .locks
        .extend(config.locks.iter().map(|lock| LockFunctions {
            lock: lock.lock.clone(),
            unlock: lock.unlock.clone(),
            timed: lock.timed.clone(),
        }));
    settings
        .allocators
        .extend(config.allocators.iter().map(|one| AllocFunctions {
            alloc: one.alloc.clone(),
            free: one.free.clone(),
        }));
    if let Some(bound) = config.pointer_bound
        && settings.pointer_bound == defaults.pointer_bound
    {
        settings.pointer_bound = bound;
    }
    if let Some(levels) = config.caller_levels
        && settings.caller_levels == defaults.caller_levels
    {
        settings.caller_levels = levels;
    }
    settings.volatile_is_io |= config.volatile_is_io;
}

/// The places of a finding are the sites of fix mode: whichever of them can fail is hardened.
pub fn add_finding(settings: &mut Settings, finding: &Finding) {
    for step in &finding.steps {
        let place = SitePlace {
            file: step.place.file.clone(),
            line: step.place.line,
        };
        if place.line != 0 && !place.file.is_empty() && !settings.sites.contains(&place) {
            settings.sites.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(line: &str) -> (Options, Vec<OsString>) {
        let mut options = Options::default();
        let rest =
            take_options(line.split(' ').map(OsString::from).collect(), &mut options).unwrap();
        (options, rest)
    }

    #[test]
    fn our_options_are_taken_and_the_others_stay() {
        let (options, rest) = take("--harden-site=a.c:3 -c a.c --harden-strict");
        assert_eq!(options.settings.mode, Mode::Fix);
        assert_eq!(options.settings.sites.len(), 1);
        assert!(options.is_strict);
        assert_eq!(rest, ["-c", "a.c"]);
    }

    #[test]
    fn wrong_options_are_refused() {
        let mut options = Options::default();
        for wrong in [
            "--harden-sight=a.c:3",
            "--harden-mode=surviving",
            "--harden-pointer-bound=x",
        ] {
            take_options(vec![wrong.into()], &mut options).unwrap_err();
        }
    }

    #[test]
    fn configuration_yields_to_options() {
        let (mut options, _) = take("--harden-pointer-bound=4096");
        let config = Harden {
            pointer_bound: Some(1),
            caller_levels: Some(1),
            ..Harden::default()
        };
        add_config(&mut options.settings, &config);
        assert_eq!(options.settings.pointer_bound, 4096);
        assert_eq!(options.settings.caller_levels, 1);
    }
}
