//! What a program is given: options that all commands share which run one.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use raddle_config::hooks::Hook;
use raddle_linux::{Mapping, Setup};
use raddle_trace::{Inputs, Outside};
use raddle_world::SeededChoices;

use crate::message;
use crate::openmp;
use crate::project::{self, Project};
use crate::sealed;
use crate::suppressed::Suppressions;
use crate::units;

/// The program and its surroundings.
#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    #[command(flatten)]
    surroundings: Surroundings,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<std::ffi::OsString>,
}

/// What a program finds when it starts.
#[derive(Debug, Clone, Args)]
pub(crate) struct Surroundings {
    /// Set a variable of the program's environment (repeatable).
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The program's current directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// What the program reads from standard input; `-` is raddle's own, read to its end first.
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Show a host file or directory at another path (repeatable).
    #[arg(long, value_name = "HOST:GUEST")]
    map: Vec<String>,
    /// Show the program nothing of this machine but itself, its libraries and what --map names; without it, the program
    /// sees all files that you can read, and never changes them.
    #[arg(long)]
    sealed: bool,
    /// Memory of the program, with K, M or G.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = units::guest_memory)]
    max_memory: u64,
    /// Threads and processes at one time.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    max_processes: usize,
    /// Processors that the program is told of.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
    /// The project's configuration: functions that mean locking or allocating (`[[hooks]]`), findings to leave out
    /// (`[[suppress]]`); without it, the nearest
    /// raddle.toml here or above.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Which network the program sees: only `loopback` is possible.
    #[arg(long, value_name = "KIND", default_value = "loopback")]
    net: String,
}

impl Surroundings {
    /// The same in another directory, as cargo runs the tests of a package.
    pub(crate) fn inside(mut self, package: &Path) -> Self {
        self.env
            .push(format!("CARGO_MANIFEST_DIR={}", package.display()));
        self.cwd = Some(self.cwd.unwrap_or_else(|| package.to_owned()));
        self
    }

    /// What the project says about itself.
    pub(crate) fn project(&self) -> anyhow::Result<Project> {
        project::read(self.config.as_deref())
    }

    /// Findings that the project leaves out.
    pub(crate) fn suppressions(&self) -> anyhow::Result<Suppressions> {
        Suppressions::new(self.project()?.config.suppress)
    }
}

/// The environment of every program, unless `--env` says otherwise. Nothing is taken from the host.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("HOME", "/root"),
    ("LANG", "C.UTF-8"),
    ("LOGNAME", "root"),
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("SHELL", "/bin/sh"),
    ("TERM", "dumb"),
    ("TZ", "UTC"),
    ("USER", "root"),
];

impl ProgramOptions {
    /// A program without arguments.
    pub(crate) fn of(program: &Path, surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            command: vec![program.as_os_str().to_owned()],
        }
    }

    /// The program and its arguments, to be shown.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = self.command.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// The one word that is given instead of a program.
    pub(crate) fn single(&self) -> Option<PathBuf> {
        match &self.command[..] {
            [only] => Some(PathBuf::from(only)),
            _ => None,
        }
    }

    /// The files that are named instead of a program, if all of them end so.
    pub(crate) fn only_files(&self, extension: &str) -> Option<Vec<PathBuf>> {
        let files = self.command.iter().map(PathBuf::from);
        let files = files.filter(|path| path.extension().is_some_and(|known| known == extension));
        let files: Vec<PathBuf> = files.collect();
        (files.len() == self.command.len()).then_some(files)
    }

    /// The same surroundings for another program.
    pub(crate) fn of_command(&self, command: &[String]) -> Self {
        Self {
            surroundings: self.surroundings.clone(),
            command: command.iter().map(Into::into).collect(),
        }
    }

    /// An error if a program is to find something that a recording says already.
    pub(crate) fn refuse_surroundings(&self) -> anyhow::Result<()> {
        let Surroundings {
            env,
            cwd,
            stdin,
            map,
            sealed,
            ..
        } = &self.surroundings;
        let given = [
            ("--env", !env.is_empty()),
            ("--cwd", cwd.is_some()),
            ("--stdin", stdin.is_some()),
            ("--map", !map.is_empty()),
            ("--sealed", *sealed),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => bail!(
                "`{option}` does not go with a recorded run, which has its own surroundings: leave it out, or name the program instead of the recording"
            ),
            None => Ok(()),
        }
    }

    pub(crate) fn has_arguments(&self) -> bool {
        self.command.len() > 1
    }

    /// What makes a world.
    pub(crate) fn setup(&self, seed: u64) -> anyhow::Result<Setup> {
        self.check_network()?;
        let directory = self.directory()?;
        let mut environment = self.environment()?;
        let program = self.program(&directory, &environment)?;
        for (name, value) in self.waiting(&directory, &program) {
            environment.push(format!("{name}={value}").into_bytes());
        }
        let visible = self.visible(&directory, &program)?;
        Ok(Setup {
            program,
            arguments: self
                .command
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect(),
            environment,
            directory,
            stdin: self.stdin_bytes()?,
            mappings: parse_mappings(&self.surroundings.map)?,
            visible,
            elsewhere: None,
            memory_max: self.surroundings.max_memory,
            processes_max: self.surroundings.max_processes,
            cpus: self.surroundings.cpus,
            choices: Box::new(SeededChoices::new(seed)),
        })
    }

    /// The same in a form that a recording keeps. The directory is absolute, so that a replay does not depend
    /// on where it is started.
    pub(crate) fn inputs(&self, seed: u64) -> anyhow::Result<Inputs> {
        let setup = self.setup(seed)?;
        if let [(name, value), ..] = self.waiting(&setup.directory, &setup.program) {
            message::note(&format!(
                "the program uses OpenMP: its threads sleep where they would wait in a loop ({name}={value}); `--env {name}=active` lets them spin"
            ));
        }
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).map_err(|error| {
                anyhow!(
                    "`{}` is not UTF-8: recordings hold only text; rename it",
                    String::from_utf8_lossy(error.as_bytes())
                )
            })
        };
        let list = |all: Vec<Vec<u8>>| all.into_iter().map(text).collect::<anyhow::Result<_>>();
        Ok(Inputs {
            scripts: None,
            outside: Outside::default(),
            program: text(setup.program)?,
            arguments: list(setup.arguments)?,
            environment: list(setup.environment)?,
            directory: text(setup.directory)?,
            stdin: setup.stdin,
            mappings: setup
                .mappings
                .into_iter()
                .map(|mapping| {
                    Ok(raddle_trace::Mapping {
                        host: text(mapping.host.into_os_string().into_encoded_bytes())?,
                        guest: text(mapping.guest)?,
                    })
                })
                .collect::<anyhow::Result<_>>()?,
            visible: setup
                .visible
                .map(|paths| {
                    let paths = paths.into_iter();
                    let bytes = paths.map(|path| path.into_os_string().into_encoded_bytes());
                    list(bytes.collect())
                })
                .transpose()?,
            memory_max: setup.memory_max,
            processes_max: setup.processes_max,
            cpus: setup.cpus,
            seed,
            hooks: self.hooks()?,
        })
    }

    /// Functions of the project that mean synchronisation or allocation.
    pub(crate) fn hooks(&self) -> anyhow::Result<Vec<Hook>> {
        Ok(self.project()?.config.hooks)
    }

    /// What the project says about itself.
    pub(crate) fn project(&self) -> anyhow::Result<Project> {
        self.surroundings.project()
    }

    /// Findings that the project leaves out.
    pub(crate) fn suppressions(&self) -> anyhow::Result<Suppressions> {
        self.surroundings.suppressions()
    }

    /// The program's own name, without folders.
    pub(crate) fn name(&self) -> String {
        let path = Path::new(&self.command[0]);
        path.file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned()
    }

    fn check_network(&self) -> anyhow::Result<()> {
        match self.surroundings.net.as_str() {
            "loopback" => Ok(()),
            "host" => bail!(
                "`--net host` is not possible: what arrives from a real network differs from run to run, so no run could be repeated; run both sides inside one world and let them talk over loopback"
            ),
            other => bail!("there is no network called `{other}`; the only one is `loopback`"),
        }
    }

    fn directory(&self) -> anyhow::Result<Vec<u8>> {
        let directory = match &self.surroundings.cwd {
            Some(directory) => std::path::absolute(directory)?,
            None => std::env::current_dir().context("cannot find the current directory")?,
        };
        Ok(directory.as_os_str().as_bytes().to_vec())
    }

    fn environment(&self) -> anyhow::Result<Vec<Vec<u8>>> {
        let mut variables: Vec<(String, String)> = ENVIRONMENT
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        for text in &self.surroundings.env {
            let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                bail!("`--env {text}` has no name or no `=`; write `--env NAME=VALUE`");
            };
            variables.retain(|(known, _)| known != name);
            variables.push((name.to_owned(), value.to_owned()));
        }
        Ok(variables
            .into_iter()
            .map(|(name, value)| format!("{name}={value}").into_bytes())
            .collect())
    }

    /// A name without a slash is looked for on the program's own PATH.
    fn program(&self, directory: &[u8], environment: &[Vec<u8>]) -> anyhow::Result<Vec<u8>> {
        let name = self.command[0].as_bytes();
        if name.contains(&b'/') {
            return Ok(name.to_vec());
        }
        let path = environment
            .iter()
            .find_map(|text| text.strip_prefix(b"PATH="))
            .unwrap_or_default();
        let directory = Path::new(std::ffi::OsStr::from_bytes(directory));
        for folder in path.split(|byte| *byte == b':') {
            let folder = directory.join(std::ffi::OsStr::from_bytes(folder));
            let candidate = folder.join(&self.command[0]);
            if candidate.is_file() {
                return Ok(candidate.as_os_str().as_bytes().to_vec());
            }
        }
        bail!(
            "cannot find `{}` on the program's PATH; give a path with a slash, or set `--env PATH=...`",
            self.command[0].display()
        )
    }

    fn stdin_bytes(&self) -> anyhow::Result<Vec<u8>> {
        let Some(path) = &self.surroundings.stdin else {
            return Ok(Vec::new());
        };
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .context("cannot read standard input")?;
            return Ok(bytes);
        }
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// How threads of a program with OpenMP wait, where `--env` does not say it.
    fn waiting(&self, directory: &[u8], program: &[u8]) -> &'static [(&'static str, &'static str)] {
        let directory = Path::new(std::ffi::OsStr::from_bytes(directory));
        let program = directory.join(std::ffi::OsStr::from_bytes(program));
        // A program that cannot be read is told by the attempt to run it.
        let files = sealed::visible(&program).unwrap_or_default();
        let is_said = |(name, _): &(&str, &str)| {
            let mut said = self.surroundings.env.iter();
            said.any(|text| text.split_once('=').is_some_and(|(said, _)| said == *name))
        };
        let variables = openmp::environment(&files);
        if variables.iter().any(is_said) {
            &[]
        } else {
            variables
        }
    }

    /// What a sealed program sees.
    fn visible(&self, directory: &[u8], program: &[u8]) -> anyhow::Result<Option<Vec<PathBuf>>> {
        if !self.surroundings.sealed {
            return Ok(None);
        }
        let directory = Path::new(std::ffi::OsStr::from_bytes(directory));
        let program = directory.join(std::ffi::OsStr::from_bytes(program));
        sealed::visible(&program).map(Some)
    }
}

/// What `--map` names.
pub(crate) fn parse_mappings(texts: &[String]) -> anyhow::Result<Vec<Mapping>> {
    texts
        .iter()
        .map(|text| {
            let (host, guest) = text
                .rsplit_once(':')
                .filter(|(host, guest)| !host.is_empty() && guest.starts_with('/'))
                .ok_or_else(|| {
                    anyhow!("`--map {text}` is not HOST:GUEST with an absolute GUEST path")
                })?;
            let host = std::path::absolute(host)?;
            if !host.exists() {
                bail!("`--map {text}`: {} does not exist", host.display());
            }
            Ok(Mapping {
                host,
                guest: guest.as_bytes().to_vec(),
            })
        })
        .collect()
}
