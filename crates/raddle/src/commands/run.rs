//! `raddle run`: runs a program to its end on the deterministic machine.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use raddle_linux::{
    End, LinuxWorld, Mapping, Plain, RunLimits, Setup, StartError, describe_status,
};
use raddle_world::{Event, EventKind, SeededChoices};

use crate::event_text::EventText;
use crate::event_wire::EventWire;
use crate::exit::{Code, Failure};

/// Exit status of errors that are ours and not the program's, as env(1) and timeout(1) have it.
const OWN_ERROR: u8 = 125;

/// Run a program deterministically on raddle's own machine.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle run -- ./program arg\n  raddle run --seed 7 --stats -- /usr/bin/sort --parallel=4 words.txt\n  raddle run --trace=events.bin --env DEBUG=1 -- ./server"
)]
pub(crate) struct Run {
    /// Chooses the interleaving and every random byte.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print instructions, speed, switches, system calls, pages and restores at the end.
    #[arg(long)]
    stats: bool,
    /// Print every event on standard error, or write them to FILE in a compact form.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    trace: Option<Option<PathBuf>>,
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
    /// Write the files that the program made or changed below DIR at the end.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Stop after this many instructions.
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,
    /// Memory of the program, with K, M or G.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_size)]
    max_memory: u64,
    /// Threads and processes at one time.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    max_processes: usize,
    /// Processors that the program is told of.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
    /// Which network the program sees: only `loopback` is possible.
    #[arg(long, value_name = "KIND", default_value = "loopback")]
    net: String,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<std::ffi::OsString>,
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

impl Run {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        self.run_program().map_err(|error| Failure {
            code: Code::Guest(OWN_ERROR),
            error,
        })
    }

    fn run_program(self) -> anyhow::Result<Code> {
        let mut world = LinuxWorld::new(self.setup()?).map_err(|error| match error {
            StartError::Program { .. } => {
                anyhow!("{error}; check the path, or run `file` on it to see what it is")
            }
            other => anyhow!(other),
        })?;
        let mut sink = Sink::new(self.trace.as_ref())?;
        if self.trace.is_some() {
            world.set_tracing(true);
            world.set_hooks(raddle_config::hooks::standard());
        }
        let begun = cpu_time();
        let mut trouble = None;
        let limits = RunLimits {
            instructions: self.max_instructions,
        };
        let end = Plain::default().run(&mut world, limits, &mut |events| {
            let result = events.iter().try_for_each(|event| sink.event(event));
            trouble = result.err();
            trouble.is_none()
        });
        let elapsed = cpu_time().saturating_sub(begun);
        sink.finish(world.run_digest())?;
        if let Some(error) = trouble {
            return Err(error);
        }
        if self.stats {
            print_statistics(&world, elapsed);
        }
        if let Some(directory) = &self.export {
            world
                .export(directory)
                .with_context(|| format!("cannot export to {}", directory.display()))?;
        }
        conclude(end, world.crash())
    }

    fn setup(&self) -> anyhow::Result<Setup> {
        match self.net.as_str() {
            "loopback" => {}
            "host" => bail!(
                "`--net host` is not possible: what arrives from a real network differs from run to run, so no run could be repeated; run both sides inside one world and let them talk over loopback"
            ),
            other => bail!("there is no network called `{other}`; the only one is `loopback`"),
        }
        let directory = self.directory()?;
        let environment = self.environment()?;
        let program = self.program(&directory, &environment)?;
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
            mappings: self.mappings()?,
            memory_max: self.max_memory,
            processes_max: self.max_processes,
            cpus: self.cpus,
            choices: Box::new(SeededChoices::new(self.seed)),
        })
    }

    fn directory(&self) -> anyhow::Result<Vec<u8>> {
        let directory = match &self.cwd {
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
        for text in &self.env {
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
        let Some(path) = &self.stdin else {
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

    fn mappings(&self) -> anyhow::Result<Vec<Mapping>> {
        self.map
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
}

/// `4G`, `512M`, `65536`.
fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|bytes| *bytes >= 1 << 20)
        .ok_or_else(|| format!("`{text}` is not a size of at least 1M; write 512M or 4G"))
}

/// Where events go: output to our own output, everything to the trace.
enum Trace {
    Off,
    Text(EventText),
    Binary {
        file: BufWriter<File>,
        wire: EventWire,
        path: PathBuf,
    },
}

struct Sink {
    trace: Trace,
}

impl Sink {
    fn new(trace: Option<&Option<PathBuf>>) -> anyhow::Result<Self> {
        let trace = match trace {
            None => Trace::Off,
            Some(None) => Trace::Text(EventText::default()),
            Some(Some(path)) => {
                let file = File::create(path)
                    .with_context(|| format!("cannot create {}", path.display()))?;
                let mut file = BufWriter::new(file);
                let wire = EventWire::default();
                file.write_all(&EventWire::HEADER)?;
                Trace::Binary {
                    file,
                    wire,
                    path: path.clone(),
                }
            }
        };
        Ok(Self { trace })
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        if let EventKind::Output { descriptor, bytes } = &event.kind {
            pass_on(*descriptor, bytes)?;
        }
        match &mut self.trace {
            Trace::Off => {}
            Trace::Text(text) => crate::message::trace(&text.line(event)),
            Trace::Binary { file, wire, path } => file
                .write_all(&wire.encode(event))
                .with_context(|| format!("cannot write {}", path.display()))?,
        }
        Ok(())
    }

    fn finish(&mut self, digest: u64) -> anyhow::Result<()> {
        match &mut self.trace {
            Trace::Off => {}
            Trace::Text(_) => crate::message::trace(&format!("digest {digest:016x}")),
            Trace::Binary { file, wire, path } => {
                file.write_all(&wire.encode_end(digest))
                    .and_then(|()| file.flush())
                    .with_context(|| format!("cannot write {}", path.display()))?;
                crate::message::note(&format!("trace digest {digest:016x}"));
            }
        }
        Ok(())
    }
}

/// The program's output is our output; a reader that went away is no error of ours.
fn pass_on(descriptor: i32, bytes: &[u8]) -> anyhow::Result<()> {
    let result = if descriptor == 2 {
        std::io::stderr().write_all(bytes)
    } else {
        let mut stdout = std::io::stdout();
        stdout.write_all(bytes).and_then(|()| stdout.flush())
    };
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot pass the program's output on")
        }
        _ => Ok(()),
    }
}

/// Time that this process has spent on a processor so far: unlike the clock it does not grow while others run.
/// Zero where the kernel does not tell.
fn cpu_time() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    std::time::Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn print_statistics(world: &LinuxWorld, elapsed: std::time::Duration) {
    let statistics = world.statistics();
    let micros = elapsed.as_micros().max(1);
    // Steps per microsecond are millions of instructions per second.
    let mips = u128::from(statistics.steps) / micros;
    let virtual_ms = world.now().0 / 1_000_000;
    crate::message::note(&format!(
        "{} instructions in {:.3} s of CPU time ({mips} MIPS), virtual time {}.{:03} s; {} context switches, {} system calls, {} signals; {} pages used, {} fetched from files; {} restores, {} pages restored; digest {:016x}",
        statistics.steps,
        elapsed.as_secs_f64(),
        virtual_ms / 1000,
        virtual_ms % 1000,
        statistics.switches,
        statistics.syscalls,
        statistics.signals,
        statistics.pages_used,
        statistics.pages_fetched,
        statistics.restores,
        statistics.restored_pages,
        world.run_digest(),
    ));
}

fn conclude(end: End, crash: Option<&str>) -> anyhow::Result<Code> {
    match end {
        End::Exited { status } => {
            if status & 0x7F == 0 {
                return Ok(Code::Guest(u8::try_from(status >> 8 & 0xFF)?));
            }
            let details = crash.map_or_else(String::new, |text| format!("; {text}"));
            let status_text = describe_status(status);
            crate::message::note(&format!("the program was {status_text}{details}"));
            Ok(Code::Guest(u8::try_from(128 + (status & 0x7F))?))
        }
        End::Deadlock { threads } => bail!(
            "deadlock: no thread of the program can ever run again\n  {}",
            threads.join("\n  ")
        ),
        End::Unsupported(text) => bail!("the run cannot go on: {text}"),
        End::OutOfInstructions { limit } => bail!(
            "the program did not end within {limit} instructions; raise the limit with --max-instructions"
        ),
        End::Stopped => bail!("the run was stopped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("1048576"), Ok(1 << 20));
        parse_size("12").unwrap_err();
        parse_size("xM").unwrap_err();
        parse_size("99999999999G").unwrap_err();
    }
}
