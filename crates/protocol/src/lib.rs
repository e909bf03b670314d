//! What clients of a server say, and when its replies are whole: pure functions over bytes.
//!
//! One file for each protocol: `lines` (anything telnet-like), `redis`, `memcached`, `http`, `mysql`, `postgres`.

mod http;
mod lines;
mod memcached;
mod mysql;
mod postgres;
mod redis;

use serde::{Deserialize, Serialize};

/// How a server is spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// A request is a line; the reply ends with these bytes, and is an error if it begins with those.
    Lines { end: String, error: String },
    /// The protocol of Redis; requests are inline commands.
    Redis,
    /// The text protocol of memcached.
    Memcached,
    /// HTTP/1.1: `GET /path`, or a method, a path and a body.
    Http,
    /// The protocol of MySQL and MariaDB; requests are statements. The user logs in without a password.
    Mysql { user: String, database: String },
    /// The protocol of PostgreSQL; requests are statements. The server trusts the user.
    Postgres { user: String, database: String },
}

/// What a client does next before its first request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// It can ask.
    Done,
    /// The server has not said everything yet.
    Wait,
    /// It sends these bytes.
    Say(Vec<u8>),
    /// The server does not want it, and says why.
    Refused(String),
}

/// Everything that is said to a server in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scripts {
    pub protocol: Protocol,
    /// The port of the loopback interface on which the server listens.
    pub port: u16,
    /// Said before schedules begin, one request after the other.
    pub set_up: Vec<String>,
    /// What each client says.
    pub clients: Vec<Vec<String>>,
    /// Said when all clients are done and the server is quiet.
    pub probes: Vec<String>,
    /// A server whose next timer is further away than so many nanoseconds is quiet.
    pub quiet: u64,
}

/// A whole reply at the front of what was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    pub length: usize,
    /// Whether the server itself says that the request failed.
    pub is_error: bool,
}

/// What was received is no reply of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonsense;

/// A reply, nothing if it is not whole yet, or nonsense.
type Parsed = Result<Option<Reply>, Nonsense>;

impl Protocol {
    /// The bytes of a request.
    pub fn request(&self, text: &str) -> Vec<u8> {
        match self {
            Self::Lines { .. } => format!("{text}\n").into_bytes(),
            Self::Redis => format!("{text}\r\n").into_bytes(),
            Self::Memcached => memcached::request(text),
            Self::Http => http::request(text),
            Self::Mysql { .. } => mysql::request(text),
            Self::Postgres { .. } => postgres::request(text),
        }
    }

    /// What a client does before its first request, given what it received since it last said something, and whether it
    /// has said nothing yet; nothing if it just asks.
    ///
    /// # Errors
    /// What was received is nothing that a server says then.
    pub fn login(&self, received: &[u8], is_first: bool) -> Option<Result<Login, Nonsense>> {
        match self {
            Self::Mysql { user, database } => Some(mysql::login((user, database), received)),
            Self::Postgres { user, database } => {
                Some(postgres::login((user, database), received, is_first))
            }
            Self::Lines { .. } | Self::Redis | Self::Memcached | Self::Http => None,
        }
    }

    /// What of a whole reply is compared and shown.
    pub fn content(&self, reply: &[u8]) -> Vec<u8> {
        match self {
            Self::Mysql { .. } => mysql::text(reply).into_bytes(),
            Self::Postgres { .. } => postgres::text(reply).into_bytes(),
            Self::Lines { .. } | Self::Redis | Self::Memcached | Self::Http => reply.to_vec(),
        }
    }

    /// The reply at the front of what was received, if it is whole; nothing more comes if the server `is_closed`.
    ///
    /// # Errors
    /// What was received is no reply.
    pub fn reply(&self, request: &str, received: &[u8], is_closed: bool) -> Parsed {
        match self {
            Self::Lines { end, error } => Ok(lines::reply(end, error, received)),
            Self::Redis => redis::reply(received),
            Self::Memcached => memcached::reply(received),
            Self::Http => http::reply(request, received, is_closed),
            Self::Mysql { .. } => mysql::reply(received),
            Self::Postgres { .. } => postgres::reply(received),
        }
    }
}

/// The first line behind a position, without its end, and where the next one begins.
fn line(bytes: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(from..)?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&rest[..end], from + end + 2))
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Result<T, Nonsense> {
    let text = std::str::from_utf8(text).map_err(|_| Nonsense)?;
    text.trim().parse().map_err(|_| Nonsense)
}

#[cfg(test)]
pub(crate) fn whole(protocol: &Protocol, request: &str, reply: &str, is_error: bool) {
    let bytes = format!("{reply}rest");
    let expected = Reply {
        length: reply.len(),
        is_error,
    };
    assert_eq!(
        protocol.reply(request, bytes.as_bytes(), false),
        Ok(Some(expected)),
        "{reply}"
    );
    for end in 0..reply.len() {
        let begun = protocol.reply(request, &reply.as_bytes()[..end], false);
        assert_eq!(begun, Ok(None), "{}", &reply[..end]);
    }
}
