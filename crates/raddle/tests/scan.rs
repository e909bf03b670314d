//! `raddle scan` from the outside: what it prints, and its exit codes.

#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use raddle_testkit::{git, output_in as raddle, raddle_in, root, text};

fn out(output: &Output) -> String {
    text(&output.stdout)
}

fn err(output: &Output) -> String {
    text(&output.stderr)
}

fn data(name: &str) -> PathBuf {
    root().join("crates/scan/test_data").join(name)
}

/// A folder with one buggy file called `x.c`.
fn with(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(data(name), folder.path().join("x.c")).unwrap();
    folder
}

#[test]
fn a_finding_shows_all_its_parts() {
    let folder = with("paper/xt_hashlimit_buggy.c");
    // A pattern that is mostly wrong on other code is shown when it is asked for.
    let named = ["scan", "x.c", "--only", "misused-test-and-set"];
    let output = raddle(folder.path(), &named);
    let text = out(&output);
    for part in [
        "finding 1 of 1: `atomic_dec_and_test(&hinfo->use)` is tested before `hashlimit_lock` is taken",
        "pattern 1 tests atomic_dec_and_test(&hinfo->use)",
        "x.c:30  htable_put",
        "pattern 2 updates hinfo->use",
        "holds hashlimit_lock",
        "another thread may change what was tested",
        "spin_lock_bh(&hashlimit_lock);  ◀ (2)",
        "entry point: hashlimit_mt_destroy (x.c:50) -> htable_put",
        "$w = hinfo->use",
        "object xt_hashlimit_htable.use",
        "explain:   raddle explain misused-test-and-set",
        "scanned 1 files",
    ] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    assert_eq!(output.status.code(), Some(1));
    let unasked = raddle(folder.path(), &["scan", "x.c"]);
    assert_eq!(unasked.status.code(), Some(0), "{}", out(&unasked));
}

#[test]
fn clean_files_exit_with_zero() {
    let folder = with("paper/xt_hashlimit_fixed.c");
    let output = raddle(folder.path(), &["scan", "."]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    assert!(out(&output).contains("0 findings"));
}

#[test]
fn output_is_the_same_for_any_number_of_jobs() {
    let folder = data("");
    let of = |jobs: &str| out(&raddle(&folder, &["scan", ".", "--all", "--jobs", jobs]));
    let one = of("1");
    assert!(one.contains("finding 1 of"));
    assert_eq!(one, of("4"));
    assert_eq!(one, of("1"));
}

#[test]
fn json_is_a_baseline_for_later_runs() {
    let folder = with("lock-leak/buggy.c");
    let json = out(&raddle(folder.path(), &["scan", "--all", "x.c", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema_version"], 2);
    assert_eq!(value["findings"][0]["kind"], "lock-leak");
    assert_eq!(value["summary"]["files"], 1);
    fs::write(folder.path().join("old.json"), json).unwrap();
    // Lines move, the finding stays the same.
    let text = fs::read_to_string(folder.path().join("x.c")).unwrap();
    fs::write(folder.path().join("x.c"), format!("/* new */\n\n\n{text}")).unwrap();
    let output = raddle(
        folder.path(),
        &["scan", "--all", "x.c", "--baseline", "old.json"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    assert!(out(&output).contains("1 known from the baseline"));
}

#[test]
fn sarif_names_the_rule_and_the_line() {
    let folder = with("lock-leak/buggy.c");
    let text = out(&raddle(folder.path(), &["scan", "--all", "x.c", "--sarif"]));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let result = &value["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "lock-leak");
    assert_eq!(
        result["relatedLocations"][1]["physicalLocation"]["region"]["startLine"],
        13
    );
    let rules = value["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap();
    assert!(rules.iter().any(|rule| rule["id"] == "lock-leak"));
}

#[test]
fn findings_can_be_suppressed_in_the_code_and_in_the_configuration() {
    let folder = with("lock-leak/buggy.c");
    let path = folder.path().join("x.c");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace(
            "return -ENOSPC; //~ lock-leak",
            "return -ENOSPC; // raddle-ignore: on purpose",
        ),
    )
    .unwrap();
    let output = raddle(folder.path(), &["scan", "--all", "x.c"]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    assert!(out(&output).contains("1 suppressed"));

    fs::write(&path, text).unwrap();
    fs::write(
        folder.path().join("raddle.toml"),
        "version = 1\n[[scan.suppress]]\nkind = \"lock-leak\"\nfunction = \"table_add\"\nreason = \"known\"\n",
    )
    .unwrap();
    let output = raddle(folder.path(), &["scan", "--all", "x.c"]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
}

#[test]
fn the_configuration_teaches_new_locks() {
    let folder = tempfile::tempdir().unwrap();
    let source = "struct t { struct my_lock l; int n; };\n\
        int f(struct t *t)\n{\n\tmy_take(&t->l);\n\tif (t->n)\n\t\treturn -EINVAL;\n\tmy_give(&t->l);\n\treturn 0;\n}\n";
    fs::write(folder.path().join("x.c"), source).unwrap();
    let clean = raddle(folder.path(), &["scan", "--all", "x.c"]);
    assert_eq!(clean.status.code(), Some(0));
    fs::write(
        folder.path().join("raddle.toml"),
        "version = 1\n[[scan.idioms.locks]]\nname = \"mine\"\nargument = 0\nacquire = [\"my_take\"]\nrelease = [\"my_give\"]\n",
    )
    .unwrap();
    let found = raddle(folder.path(), &["scan", "--all", "x.c"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(
        out(&found).contains("`t.l` is still held"),
        "{}",
        out(&found)
    );
}

#[test]
fn own_patterns_and_their_errors() {
    let folder = with("lock-leak/buggy.c");
    let pattern = folder.path().join("own.pdl");
    fs::write(
        &pattern,
        "bug too-many { title \"`$x` grows\"; pattern 1 { fun $f { lock $l; a: update $x; } } where name($x) == \"count\"; }",
    )
    .unwrap();
    let output = raddle(
        folder.path(),
        &[
            "scan",
            "--all",
            "x.c",
            "--pattern",
            "own.pdl",
            "--only",
            "too-many",
        ],
    );
    assert!(
        out(&output).contains("`t->count` grows"),
        "{}{}",
        out(&output),
        err(&output)
    );

    fs::write(&pattern, "bug x {\n  pattern 1 { fun $f { wirte $x; } }\n}").unwrap();
    let output = raddle(
        folder.path(),
        &["scan", "--all", "x.c", "--pattern", "own.pdl"],
    );
    assert_eq!(output.status.code(), Some(2));
    let message = err(&output);
    assert!(message.contains("own.pdl:2:24"), "{message}");
    assert!(message.contains("^^^^^"), "{message}");

    fs::write(&pattern, "pattern 1 { fun $f { call @no_such_class; } }").unwrap();
    let output = raddle(
        folder.path(),
        &["scan", "--all", "x.c", "--pattern", "own.pdl"],
    );
    assert!(err(&output).contains("@no_such_class"), "{}", err(&output));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn sub_patterns_must_be_able_to_overlap_unless_locks_are_said_not_to_matter() {
    let folder = tempfile::tempdir().unwrap();
    let source = "struct t { struct mutex l; int n; };\n\
        int f(struct t *t)\n{\n\tmutex_lock(&t->l);\n\tt->n = 1;\n\tmutex_unlock(&t->l);\n\treturn 0;\n}\n\
        int g(struct t *t)\n{\n\tmutex_lock(&t->l);\n\tt->n = 2;\n\tmutex_unlock(&t->l);\n\treturn 0;\n}\n";
    fs::write(folder.path().join("x.c"), source).unwrap();
    let pattern = folder.path().join("own.pdl");
    let scan = |conditions: &str| {
        let text = format!(
            "bug two-writers {{ title \"`$x`\"; pattern 1 {{ fun $f {{ write $x; }} }} pattern 2 {{ fun $g {{ write $y; }} }} \
             where alias($x, $y), different_function($f, $g){conditions}; }}"
        );
        fs::write(&pattern, text).unwrap();
        raddle(
            folder.path(),
            &[
                "scan",
                "x.c",
                "--pattern",
                "own.pdl",
                "--only",
                "two-writers",
            ],
        )
    };
    let kept_apart = scan("");
    assert_eq!(kept_apart.status.code(), Some(0), "{}", out(&kept_apart));
    let any = scan(", any_locks()");
    assert_eq!(any.status.code(), Some(1), "{}{}", out(&any), err(&any));
}

#[test]
fn tables_can_say_which_lock_their_callers_hold() {
    let folder = tempfile::tempdir().unwrap();
    let source = "struct t { struct mutex l; struct ops *p; };\n\
        struct ops { int n; };\n\
        static int set(struct t *t)\n{\n\tif (t->p)\n\t\treturn t->p->n;\n\treturn 0;\n}\n\
        static int drop(struct t *t)\n{\n\tmy_take();\n\tt->p = NULL;\n\tmy_give();\n\treturn 0;\n}\n\
        static const struct my_ops my_ops = { .set = set };\n\
        static const struct other_ops other_ops = { .drop = drop };\n";
    fs::write(folder.path().join("x.c"), source).unwrap();
    let lock = "version = 1\n[[scan.idioms.locks]]\nname = \"mine\"\nacquire = [\"my_take\"]\nrelease = [\"my_give\"]\n";
    fs::write(folder.path().join("raddle.toml"), lock).unwrap();
    let without = raddle(folder.path(), &["scan", "x.c", "--only", "double-fetch"]);
    assert_eq!(without.status.code(), Some(1), "{}", out(&without));
    let held = format!(
        "{lock}[[scan.idioms.starters]]\nstructs = [\"my_ops\"]\ncontext = \"entry\"\nholds = [\"mine\"]\n"
    );
    fs::write(folder.path().join("raddle.toml"), held).unwrap();
    let with = raddle(folder.path(), &["scan", "x.c", "--only", "double-fetch"]);
    assert_eq!(with.status.code(), Some(0), "{}", out(&with));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = raddle_in(&root(), &["explain", "--list"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(err(&output), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn patterns_are_tested_by_marks() {
    let output = raddle(&data(""), &["scan", "--test-patterns", "lock-leak"]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    let folder = with("lock-leak/buggy.c");
    let text = fs::read_to_string(folder.path().join("x.c")).unwrap();
    fs::write(folder.path().join("x.c"), text.replace("//~ lock-leak", "")).unwrap();
    let output = raddle(folder.path(), &["scan", "--test-patterns", "."]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        out(&output).contains("lock-leak was not expected"),
        "{}",
        out(&output)
    );
}

/// The callee unlocks on both ways; without that the caller, which does not change, keeps the lock.
const UNLOCKS_IN_CALLEE: &str = "
struct t { struct mutex m; int n; };
static void done(struct t *t) { t->n = 1; mutex_unlock(&t->m); }
int f(struct t *t)
{
    mutex_lock(&t->m);
    if (t->n) {
        done(t);
        return -EBUSY;
    }
    mutex_unlock(&t->m);
    return 0;
}
";

#[test]
fn only_what_a_change_brings_is_reported_with_diff() {
    let folder = with("lock-leak/buggy.c");
    fs::write(folder.path().join("y.c"), UNLOCKS_IN_CALLEE).unwrap();
    let git = |arguments: &[&str]| git(folder.path(), arguments);
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "old"]);
    let unchanged = raddle(folder.path(), &["scan", "--all", "--diff", "HEAD"]);
    assert_eq!(unchanged.status.code(), Some(0), "{}", out(&unchanged));
    let without = UNLOCKS_IN_CALLEE.replace("t->n = 1; mutex_unlock(&t->m);", "t->n = 1;");
    fs::write(folder.path().join("y.c"), without).unwrap();
    let changed = raddle(folder.path(), &["scan", "--all", "--diff", "HEAD"]);
    let shown = out(&changed);
    assert_eq!(changed.status.code(), Some(1), "{shown}");
    assert!(shown.contains("finding 1 of 1"), "{shown}");
    assert!(shown.contains("y.c:9"), "{shown}");
    let bad = raddle(
        folder.path(),
        &["scan", "--all", "--diff", "no-such-revision"],
    );
    assert_eq!(bad.status.code(), Some(2));
}

#[test]
fn classes_are_listed_with_their_tables() {
    let folder = with("lock-leak/buggy.c");
    fs::write(
        folder.path().join("raddle.toml"),
        "version = 1\n[scan.idioms.classes]\nsleeps = [\"my_wait\"]\n",
    )
    .unwrap();
    let listed = raddle(folder.path(), &["scan", "--all", "--list-class", "sleeps"]);
    assert_eq!(listed.status.code(), Some(0), "{}", err(&listed));
    let shown = out(&listed);
    assert!(
        shown.contains("my_wait") && shown.contains("raddle.toml"),
        "{shown}"
    );
    assert!(
        shown.contains("msleep") && shown.contains("linux.toml"),
        "{shown}"
    );
    let unknown = raddle(
        folder.path(),
        &["scan", "--all", "--list-class", "no-such-class"],
    );
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn lost_functions_are_named() {
    let folder = with("lock-leak/buggy.c");
    fs::write(
        folder.path().join("y.c"),
        "int 5 broken(int a) { a++; }\nint fine(void) { return 0; }\n",
    )
    .unwrap();
    let output = raddle(folder.path(), &["scan", "--all", "."]);
    let shown = out(&output);
    assert!(shown.contains("not understood: y.c: broken"), "{shown}");
}

#[test]
fn odd_files_get_a_note_and_the_run_goes_on() {
    let folder = with("lock-leak/buggy.c");
    let path = folder.path();
    fs::write(path.join("binary.c"), [0_u8, 1, 2, 3, 0xFF, 0]).unwrap();
    fs::write(
        path.join("latin.c"),
        b"/* gr\xFC\xDFe */ int f(void) { return 1; }\n",
    )
    .unwrap();
    fs::write(path.join("deep.c"), "{".repeat(200_000)).unwrap();
    fs::write(
        path.join("deep2.c"),
        format!("int f(void) {{ return {}1; }}", "(".repeat(100_000)),
    )
    .unwrap();
    let line = format!(
        "int x(void) {{ {} return 0; }}",
        "a = b + c * d; ".repeat(700_000)
    );
    assert!(line.len() > 10_000_000);
    fs::write(path.join("line.c"), line).unwrap();
    std::os::unix::fs::symlink(path, path.join("loop")).unwrap();
    std::os::unix::fs::symlink(path.join("nowhere"), path.join("gone.c")).unwrap();
    let output = raddle(path, &["scan", "--all", "."]);
    let text = out(&output);
    assert!(text.contains("`table.lock` is still held"), "{text}");
    assert!(text.contains("not read: binary.c: binary data"), "{text}");
    assert_eq!(
        text.matches("is still held").count(),
        1,
        "the loop was followed:\n{text}"
    );
    let missing = raddle(path, &["scan", "--all", "no/such/path"]);
    let errors = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(2), "{errors}");
    assert!(errors.contains("cannot scan no/such/path"), "{errors}");
}

#[test]
fn every_shipped_pattern_is_listed_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let list = out(&raddle(folder.path(), &["scan", "--list-patterns"]));
    assert!(list.lines().count() >= 14, "{list}");
    for name in list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
    {
        let output = raddle(folder.path(), &["explain", name]);
        assert_eq!(output.status.code(), Some(0));
        assert!(
            out(&output).contains("Fix:") || out(&output).contains("Found by"),
            "{name}"
        );
    }
    let output = raddle(folder.path(), &["scan"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn why_tells_where_a_pattern_stopped() {
    let folder = with("unlocked-access/fixed.c");
    let ask = |wanted: &str| {
        let arguments = ["scan", "x.c", "--only", "unlocked-access", "--why", wanted];
        raddle(folder.path(), &arguments)
    };
    let output = ask("x.c:dev_report");
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    for part in [
        "dev_report in x.c",
        "uses dev.mode at line",
        "usually under dev.lock",
        "stopped by `lacks_usual(a, $x)` ($x = dev->mode)",
    ] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let unknown = ask("x.c:dev_nothing");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(err(&unknown).contains("has no function called `dev_nothing`"));
}
