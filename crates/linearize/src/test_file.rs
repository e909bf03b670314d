//! The test of a server: how it starts, what its clients say, what is asked afterwards, what may deviate.

use raddle_protocol::{Protocol, Scripts};
use raddle_trace::{Mask, SerialRule, SerialRules};
use serde::Deserialize;
use thiserror::Error;

/// Bytes of a request at most: what a socket takes at once.
const REQUEST_MAX: usize = 128 << 10;
const NANOSECONDS_PER_MILLISECOND: u64 = 1_000_000;

/// Why a test cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TestError {
    #[error("{0}")]
    Syntax(String),
    #[error("`server` is empty: it names the program and its arguments")]
    NoServer,
    #[error("`clients` has {0}: a test needs at least two, each with at least one request")]
    TooFewClients(usize),
    #[error("client {0} says nothing: give it a request or leave it out")]
    SilentClient(usize),
    #[error("a request has {0} bytes: the most is 131072")]
    LongRequest(usize),
    #[error("`port` is 0: name the port on which the server listens")]
    NoPort,
}

/// The file as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    server: Vec<String>,
    port: u16,
    protocol: Named,
    /// For `lines`: how a reply ends, and how one begins that is an error.
    #[serde(default = "newline")]
    reply_end: String,
    #[serde(default = "error")]
    reply_error: String,
    /// For `mysql` and `postgres`: who logs in, without a password, and to what.
    user: Option<String>,
    database: Option<String>,
    #[serde(default)]
    set_up: Vec<String>,
    #[serde(default)]
    clients: Vec<Vec<String>>,
    #[serde(default)]
    probes: Vec<String>,
    #[serde(default)]
    continuation: Vec<String>,
    #[serde(default = "quiet")]
    quiet_milliseconds: u64,
    /// Files that are state, beside what the probes give.
    #[serde(default)]
    state_files: Vec<String>,
    /// How many times the steps of its slowest serial run a request may take.
    slower_than: Option<u64>,
    #[serde(default)]
    rule: Vec<SerialRule>,
    #[serde(default)]
    mask: Vec<Mask>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Named {
    Lines,
    Redis,
    Memcached,
    Http,
    Mysql,
    Postgres,
}

fn newline() -> String {
    "\n".to_owned()
}

fn error() -> String {
    "ERR".to_owned()
}

fn quiet() -> u64 {
    10
}

/// A test that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTest {
    /// The program and its arguments.
    pub server: Vec<String>,
    pub scripts: Scripts,
    /// How many of the probes must not change anything; those behind them may.
    pub pure_probes: usize,
    pub rules: SerialRules,
}

impl ServerTest {
    /// # Errors
    /// The text is not such a file, or says too little.
    pub fn parse(text: &str) -> Result<Self, TestError> {
        let file: File =
            toml::from_str(text).map_err(|error| TestError::Syntax(error.to_string()))?;
        if file.clients.len() < 2 {
            return Err(TestError::TooFewClients(file.clients.len()));
        }
        Self::of(file)
    }

    /// The same for a file whose clients do not count.
    ///
    /// # Errors
    /// The text is not such a file.
    pub fn template(text: &str) -> Result<Self, TestError> {
        let file: File =
            toml::from_str(text).map_err(|error| TestError::Syntax(error.to_string()))?;
        Self::of(file)
    }

    fn of(file: File) -> Result<Self, TestError> {
        if file.server.is_empty() {
            return Err(TestError::NoServer);
        }
        if file.port == 0 {
            return Err(TestError::NoPort);
        }
        if let Some(silent) = file.clients.iter().position(Vec::is_empty) {
            return Err(TestError::SilentClient(silent + 1));
        }
        let said = file.clients.iter().flatten().chain(&file.set_up);
        let said = said.chain(&file.probes).chain(&file.continuation);
        if let Some(long) = said.map(String::len).find(|length| *length > REQUEST_MAX) {
            return Err(TestError::LongRequest(long));
        }
        let protocol = match file.protocol {
            Named::Lines => Protocol::Lines {
                end: file.reply_end,
                error: file.reply_error,
            },
            Named::Redis => Protocol::Redis,
            Named::Memcached => Protocol::Memcached,
            Named::Http => Protocol::Http,
            Named::Mysql => Protocol::Mysql {
                user: file.user.unwrap_or_else(|| "root".to_owned()),
                database: file.database.unwrap_or_else(|| "test".to_owned()),
            },
            Named::Postgres => Protocol::Postgres {
                user: file.user.unwrap_or_else(|| "postgres".to_owned()),
                database: file.database.unwrap_or_else(|| "postgres".to_owned()),
            },
        };
        Ok(Self {
            server: file.server,
            pure_probes: file.probes.len(),
            scripts: Scripts {
                protocol,
                port: file.port,
                set_up: file.set_up,
                clients: file.clients,
                probes: [file.probes, file.continuation].concat(),
                quiet: file
                    .quiet_milliseconds
                    .saturating_mul(NANOSECONDS_PER_MILLISECOND),
            },
            rules: SerialRules {
                rules: file.rule,
                masks: file.mask,
                slower_than: file.slower_than,
                state_files: file.state_files,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = r#"
server = ["./server", "4000"]
port = 4000
protocol = "lines"
clients = [["A"], ["B", "C"]]
probes = ["P"]
continuation = ["Q"]

[[rule]]
operation = "P"
compare = "unordered"
reason = "a set"
"#;

    #[test]
    fn a_test_says_who_says_what() {
        let test = ServerTest::parse(TEST).unwrap();
        assert_eq!(test.scripts.probes, ["P", "Q"]);
        assert_eq!((test.pure_probes, test.scripts.quiet), (1, 10_000_000));
        assert_eq!(test.rules.rules.len(), 1);
    }

    #[test]
    fn what_is_wrong_with_a_test_is_said() {
        let error = |from: &str, to: &str| ServerTest::parse(&TEST.replace(from, to)).unwrap_err();
        let said = error("continuation", "continuations").to_string();
        assert!(said.contains("unknown field `continuations`"), "{said}");
        assert_eq!(
            error("[[\"A\"], [\"B\", \"C\"]]", "[[\"A\"]]"),
            TestError::TooFewClients(1)
        );
        assert_eq!(error("[\"A\"]", "[]"), TestError::SilentClient(1));
        assert_eq!(error("port = 4000", "port = 0"), TestError::NoPort);
        assert_eq!(error("[\"./server\", \"4000\"]", "[]"), TestError::NoServer);
    }
}
