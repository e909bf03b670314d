//! Concurrent tests from sequential scripts: the script is cut where two requests touch common memory.
//!
//! ```text
//!   script ──requests──▶ r0 r1 r2 r3 r4 ──profile──▶ (1, 3) touch common memory
//!                                       ──▶ set-up r0, client A: r1, client B: r2 r3
//! ```
//! What comes before the earlier request is the set-up; what comes up to the later one is the other client's, in its
//! order, so that no request misses what the script did for it.

use raddle_campaign::pairs::Pair;
use raddle_protocol::Protocol;
use thiserror::Error;

/// Requests of the second client at most: with more, too little happens at the same time as the first one's.
const APART_MAX: usize = 8;

/// Words with which statements of SQL begin; other words are commands of the program that runs a script.
const STATEMENTS: [&str; 31] = [
    "ALTER", "ANALYZE", "BEGIN", "CALL", "CHECK", "COMMIT", "CREATE", "DELETE", "DESC", "DESCRIBE",
    "DO", "DROP", "EXPLAIN", "FLUSH", "HANDLER", "INSERT", "KILL", "LOCK", "OPTIMIZE", "RENAME",
    "REPAIR", "REPLACE", "RESET", "ROLLBACK", "SELECT", "SET", "SHOW", "START", "TRUNCATE",
    "UNLOCK", "UPDATE",
];
/// Commands of memcached that are followed by a line with what is stored.
const STORES: [&str; 6] = ["set", "add", "replace", "append", "prepend", "cas"];

/// Why a script gives no tests.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImportError {
    #[error("the script has {0} requests that can be used: at least two are needed")]
    TooFew(usize),
    #[error("the template is no test file: {0}")]
    Template(String),
}

/// The requests of a script, as a protocol has them.
pub fn requests(protocol: &Protocol, script: &str) -> Vec<String> {
    match protocol {
        Protocol::Mysql { .. } | Protocol::Postgres { .. } => statements(script),
        Protocol::Memcached => stores(script),
        Protocol::Lines { .. } | Protocol::Redis | Protocol::Http => {
            lines(script).map(str::to_owned).collect()
        }
    }
}

/// Lines that say something.
fn lines(script: &str) -> impl Iterator<Item = &str> {
    let lines = script.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn stores(script: &str) -> Vec<String> {
    let mut requests = Vec::new();
    let mut lines = lines(script);
    while let Some(line) = lines.next() {
        let first = line.split(' ').next().unwrap_or_default();
        let value = STORES.contains(&first).then(|| lines.next()).flatten();
        requests.push(match value {
            Some(value) => format!("{line}\n{value}"),
            None => line.to_owned(),
        });
    }
    requests
}

/// Plain statements of an SQL file or of a mysqltest script; what is not plain is left out.
fn statements(script: &str) -> Vec<String> {
    // A line that begins with two dashes is a comment, or a command of mysqltest.
    let lines = script.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with("--") && !line.starts_with('#')
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut all = Vec::new();
    let mut current = String::new();
    let mut quote = None;
    let mut is_escaped = false;
    for letter in text.chars() {
        if quote.is_none() && letter == ';' {
            all.push(std::mem::take(&mut current));
            continue;
        }
        match quote {
            Some(open) if letter == open && !is_escaped => quote = None,
            None if matches!(letter, '\'' | '"' | '`') => quote = Some(letter),
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
        current.push(if letter == '\n' { ' ' } else { letter });
    }
    all.push(current);
    let plain = all.iter().map(|text| text.trim()).filter(|text| {
        let first = text.split([' ', '(']).next().unwrap_or_default();
        // A dollar is a variable of mysqltest.
        STATEMENTS.contains(&first.to_ascii_uppercase().as_str()) && !text.contains('$')
    });
    plain.map(str::to_owned).collect()
}

/// How a script is cut for a pair: how many requests are the set-up, and the two clients.
pub fn cut<'a>(requests: &'a [String], pair: &Pair) -> Option<(&'a [String], [&'a [String]; 2])> {
    let (first, second) = (pair.first, pair.second);
    (second - first <= APART_MAX).then(|| {
        let clients = [&requests[first..=first], &requests[first + 1..=second]];
        (&requests[..first], clients)
    })
}

/// The text of a test: the template with a longer set-up and other clients.
///
/// # Errors
/// The template is no TOML.
pub fn test_text(
    template: &str,
    comment: &str,
    (set_up, clients): (&[String], [&[String]; 2]),
) -> Result<String, ImportError> {
    let wrong = |error: &dyn std::fmt::Display| ImportError::Template(error.to_string());
    let mut table: toml::Table = toml::from_str(template).map_err(|error| wrong(&error))?;
    let list = |requests: &[String]| -> toml::Value {
        let requests = requests.iter().cloned().map(toml::Value::String);
        toml::Value::Array(requests.collect())
    };
    let before = table.remove("set-up");
    let before = before.and_then(|before| before.as_array().cloned());
    let mut whole = before.unwrap_or_default();
    whole.extend(set_up.iter().cloned().map(toml::Value::String));
    table.insert("set-up".to_owned(), toml::Value::Array(whole));
    let clients = clients.map(list).to_vec();
    table.insert("clients".to_owned(), toml::Value::Array(clients));
    let text = toml::to_string(&table).map_err(|error| wrong(&error))?;
    Ok(format!("# {comment}\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerTest;

    fn mysql() -> Protocol {
        Protocol::Mysql {
            user: "root".into(),
            database: "test".into(),
        }
    }

    #[test]
    fn plain_statements_of_a_mysqltest_script_are_taken() {
        let script = "--source include/have_x.inc\n--disable_warnings\ndrop table if exists t1;\n# note\nCREATE TABLE t1 (a INT,\n  b TEXT);\nINSERT INTO t1 VALUES (1, 'a;b');\nlet $x= 1;\neval SELECT $x;\nSELECT * FROM t1 WHERE a = $x;\nSELECT 'it\\'s';\nconnection default;\n";
        assert_eq!(
            requests(&mysql(), script),
            [
                "drop table if exists t1",
                "CREATE TABLE t1 (a INT,   b TEXT)",
                "INSERT INTO t1 VALUES (1, 'a;b')",
                "SELECT 'it\\'s'",
            ]
        );
    }

    #[test]
    fn other_scripts_are_lines() {
        let redis = "# a comment\nSET a 1\n\nINCR a\n";
        assert_eq!(requests(&Protocol::Redis, redis), ["SET a 1", "INCR a"]);
        let memcached = "set a 0 0 1\nx\nget a\nincr a 1\n";
        assert_eq!(
            requests(&Protocol::Memcached, memcached),
            ["set a 0 0 1\nx", "get a", "incr a 1"]
        );
        assert_eq!(
            requests(&Protocol::Http, "GET /a\nPUT /a x y\n"),
            ["GET /a", "PUT /a x y"]
        );
    }

    #[test]
    fn a_script_is_cut_before_the_earlier_request() {
        let all: Vec<String> = (0..12).map(|number| format!("r{number}")).collect();
        let pair = |first, second| Pair {
            first,
            second,
            new: 1,
            all: 1,
        };
        let (set_up, [one, other]) = cut(&all, &pair(1, 3)).expect("they are near");
        assert_eq!((set_up, one, other), (&all[..1], &all[1..2], &all[2..4]));
        assert_eq!(cut(&all, &pair(0, 9)), None);
        let template =
            "server = [\"s\"]\nport = 1\nprotocol = \"redis\"\nset-up = [\"x\"]\nclients = []\n";
        let text = test_text(template, "why", (set_up, [one, other])).expect("a test");
        let test = ServerTest::parse(&text).expect("a test");
        assert_eq!(test.scripts.set_up, ["x", "r0"]);
        assert_eq!(test.scripts.clients, [vec!["r1"], vec!["r2", "r3"]]);
        assert!(text.starts_with("# why\n"), "{text}");
    }
}
