//! Servers whose replies or state no serial order of their requests explains.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{build, folder, has_line, raddle};

/// The server of the corpus, and its tests.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/table_server");

fn build_server(folder: &Path) {
    let status = Command::new("gcc")
        .args(["-g", "-O1", "-pthread", "-o"])
        .arg(folder.join("server"))
        .arg(format!("{CORPUS}/server.c"))
        .status()
        .expect("gcc is installed");
    assert!(status.success());
}

/// A test of the corpus, changed a little.
fn test(folder: &Path, name: &str, change: impl Fn(String) -> String) -> String {
    let text = std::fs::read_to_string(format!("{CORPUS}/tests/{name}.toml")).expect("a test");
    let file = format!("{name}.toml");
    std::fs::write(folder.join(&file), change(text)).expect("a file");
    file
}

fn run(folder: &Path, file: &str) -> (Option<i32>, Value, String) {
    let options = ["linearize", "--schedules", "150", "--json", file];
    let (status, document, errors) = raddle(folder, &options);
    let document = serde_json::from_str(&document);
    (
        status,
        document.unwrap_or_else(|_| panic!("{file}: {errors}")),
        errors,
    )
}

/// Without its switch, every run is serializable.
fn without_switches(text: String) -> String {
    let (first, rest) = text.split_once('\n').expect("lines");
    assert!(first.starts_with("server"));
    format!("server = [\"./server\", \"4000\"]\n{rest}")
}

/// One input of Table 5.2: its kind, and for each of the two orders whether results and state are the same.
#[track_caller]
fn table_5_2(name: &str, kind: &str, [first, second]: [(&str, &str); 2]) {
    let folder = folder();
    let folder = folder.path();
    build_server(folder);
    let (status, document, errors) = run(folder, &test(folder, name, |text| text));
    assert_eq!(status, Some(1), "{name}: {document:#}{errors}");
    let kinds: Vec<&Value> = document["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| &finding["kind"])
        .collect();
    assert_eq!(kinds, [kind], "{name}: {document:#}");
    for (order, (results, state)) in [("A B", first), ("B A", second)] {
        let row = format!("serial order {order}: same results: {results}, same state: {state}");
        assert!(
            has_line(&document, kind, &row),
            "{name}: {row}: {document:#}"
        );
    }
    let (status, document, errors) = run(folder, &test(folder, name, without_switches));
    assert_eq!(status, Some(0), "{name}: {document:#}{errors}");
}

#[test]
fn insert_into_a_table_without_data_is_an_error() {
    let matrix = [("no", "no"), ("no", "yes")];
    table_5_2("create_like", "unexpected-error", matrix);
    table_5_2("create_like_other_state", "unexpected-error", matrix);
}

#[test]
fn stale_answers_in_the_query_cache_are_latent() {
    let matrix = [("no", "no"), ("yes", "no")];
    for name in ["all", "sum", "max", "count", "merge"] {
        table_5_2(&format!("insert_select_{name}"), "latent-error", matrix);
    }
}

#[test]
fn stale_keys_and_tables_are_latent() {
    let matrix = [("yes", "no"), ("no", "no")];
    table_5_2("insert_select_key", "latent-error", matrix);
    table_5_2("truncate_select", "latent-error", matrix);
}

#[test]
fn wrong_answers_and_wrong_order_in_the_log() {
    table_5_2(
        "drop_show",
        "not-linearizable",
        [("no", "yes"), ("no", "yes")],
    );
    table_5_2(
        "create_select_drop",
        "not-linearizable",
        [("no", "no"), ("no", "no")],
    );
    table_5_2(
        "optimize_drop",
        "latent-error",
        [("yes", "no"), ("no", "yes")],
    );
}

/// A deliberate deviation is found without its rule and vanishes with it.
#[track_caller]
fn false_positive(name: &str, rule: &str) {
    let folder = folder();
    let folder = folder.path();
    build_server(folder);
    let (status, document, errors) = run(folder, &test(folder, name, |text| text));
    assert_eq!(status, Some(1), "{name}: {document:#}{errors}");
    let with_rule = |text| format!("{text}\n{rule}reason = \"on purpose\"\n");
    let (status, document, errors) = run(folder, &test(folder, name, with_rule));
    assert_eq!(status, Some(0), "{name}: {document:#}{errors}");
}

#[test]
fn deliberate_deviations_vanish_with_one_rule_each() {
    let compare = |probe: &str, how: &str| {
        format!("[[rule]]\noperation = \"{probe}\"\ncompare = \"{how}\"\n")
    };
    false_positive(
        "false_query_cache",
        &compare("SHOW QUERIES", "concurrent-in-serial"),
    );
    false_positive(
        "false_table_cache",
        &compare("SHOW OPEN", "serial-in-concurrent"),
    );
    false_positive(
        "false_replies",
        "[[mask]]\npattern = '''at [0-9]+ by [0-9a-f]+\\n'''\n",
    );
    false_positive("false_log_order", FLUSH);
}

const FLUSH: &str = "[[mask]]\npattern = '''FLUSH TABLES\\n'''\n";

#[test]
fn a_true_log_order_bug_stays_found_under_the_rule_for_a_harmless_one() {
    let folder = folder();
    let folder = folder.path();
    build_server(folder);
    let with_rule =
        |text| format!("{text}\n{FLUSH}reason = \"its place in the log does not matter\"\n");
    let (status, document, errors) = run(folder, &test(folder, "optimize_drop", with_rule));
    assert_eq!(status, Some(1), "{document:#}{errors}");
    assert!(
        has_line(&document, "latent-error", "SHOW LOG"),
        "{document:#}"
    );
}

#[test]
fn what_varies_by_itself_is_shown_for_approval() {
    let folder = folder();
    let folder = folder.path();
    build_server(folder);
    let (_, _, errors) = run(folder, &test(folder, "false_replies", |text| text));
    assert!(errors.contains("with another seed"), "{errors}");
}

#[test]
fn findings_of_servers_are_replayed_and_the_same_every_time() {
    let folder = folder();
    let folder = folder.path();
    build_server(folder);
    let file = test(folder, "insert_select_sum", |text| text);
    let (_, first, _) = run(folder, &file);
    let (_, second, _) = run(folder, &file);
    assert_eq!(first["findings"], second["findings"]);
    let command = first["findings"][0]["recording"]["command"]
        .as_str()
        .expect("a recording");
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    let (status, text, errors) = raddle(folder, &arguments);
    assert_eq!(status, Some(1), "{text}{errors}");
    assert!(text.contains("latent error"), "{text}");
}

#[test]
fn a_server_of_http_loses_an_update() {
    let folder = folder();
    let folder = folder.path();
    for (switches, expected) in [(&["BUGGY"][..], 1), (&[], 0)] {
        let server = build(folder, "http_counter", switches);
        let test = format!(
            "server = [{server:?}]\nport = 8080\nprotocol = \"http\"\nclients = [[\"POST /add 1\"], [\"POST /add 10\"]]\nprobes = [\"GET /\"]\n"
        );
        std::fs::write(folder.join("http.toml"), test).expect("a file");
        let (status, document, errors) = run(folder, "http.toml");
        assert_eq!(status, Some(expected), "{document:#}{errors}");
        let is_lost = has_line(&document, "not-linearizable", "+ B: POST /add 10");
        assert_eq!(is_lost, expected == 1, "{document:#}");
    }
}

/// Redis with threads for input and output, and memcached, as Debian ships them: what they do is serializable.
#[test]
fn real_servers_run_and_are_clean() {
    let folder = folder();
    for name in ["redis", "memcached"] {
        let file = format!("{}/tests/linearize/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let options = ["linearize", "--schedules", "60", "--json", &file];
        let (status, document, errors) = raddle(folder.path(), &options);
        assert_eq!(status, Some(0), "{name}: {document}{errors}");
        let document: Value = serde_json::from_str(&document).expect("JSON");
        // Both clients speak to threads of their own.
        assert!(
            document["summary"]["histories"].as_u64() > Some(3),
            "{document:#}"
        );
    }
}

#[test]
fn several_tests_are_one_report() {
    let folder = folder();
    let folder = folder.path();
    build_server(folder);
    let clean = test(folder, "drop_show", without_switches);
    let buggy = test(folder, "insert_select_sum", |text| text);
    let explored = |files: &[&str]| {
        let options = ["linearize", "--schedules", "60", "--json"];
        raddle(folder, &[&options, files].concat())
    };
    let (status, document, errors) = explored(&[&clean, &buggy]);
    assert_eq!(status, Some(1), "{errors}");
    assert!(
        errors.contains("test 1 of 2: drop_show")
            && errors.contains("test 2 of 2: insert_select_sum"),
        "{errors}"
    );
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let tests = document["summary"]["tests"].as_array().expect("both tests");
    let failing = tests.iter().map(|test| test["failing"] != 0);
    assert_eq!(failing.collect::<Vec<_>>(), [false, true], "{document:#}");
    let title = document["findings"][0]["title"].as_str().expect("a title");
    assert!(title.starts_with("test `insert_select_sum`: "), "{title}");

    // What a test found is told though the next one cannot be run.
    let broken = test(folder, "insert_select_count", |text| {
        text.replace("port = 4000", "port = 4001")
    });
    let (status, document, errors) = explored(&[&buggy, &broken]);
    assert_eq!(status, Some(4), "{errors}");
    assert!(document.contains("insert_select_sum"), "{document}");
    assert!(errors.contains("does not listen on port 4001"), "{errors}");
}

/// What is said of a test that cannot be run: the exit status, and part of the one paragraph.
#[track_caller]
fn complaint(from: &str, to: &str, status: i32, part: &str) {
    let folder = folder();
    let folder = folder.path();
    build_server(folder);
    let file = test(folder, "drop_show", |text| {
        assert!(text.contains(from), "{text}");
        text.replace(from, to)
    });
    let (code, text, errors) = raddle(folder, &["linearize", &file]);
    assert_eq!((code, text.as_str()), (Some(status), ""), "{errors}");
    assert!(errors.contains(part), "{errors}");
}

#[test]
fn tests_that_cannot_be_run_are_refused() {
    complaint(
        "port = 4000",
        "port = 4001",
        4,
        "does not listen on port 4001",
    );
    complaint("show_status", "no_such_switch", 4, "ended (exit status 2)");
    complaint("probes", "probe", 2, "unknown field `probe`");
    complaint("SHOW KEYS", "CREATE TABLE t9", 2, "asked again");
    complaint(
        "CREATE TABLE t1",
        "DROP TABLE t1",
        2,
        "`DROP TABLE t1` of the set-up gives error",
    );
    complaint("[[\"DROP TABLE t1\"], ", "[", 2, "at least two");
    complaint("./server", "./no_server", 2, "no_server");
}
