//! `raddle campaign`: rounds go on where they were, whenever it is killed; nothing is lost, and nothing counts twice.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use raddle_stdx::Prng;
use raddle_testkit::{Ran, corpus, number, raddle, run, temporary};
use serde_json::Value;

/// Two programs with bugs and one without, in short rounds whose order does not depend on the clock.
fn make_corpus(folder: &Path) {
    let mut text = String::from("seed = 7\nround-schedules = 120\ncost = \"instructions\"\n");
    for (name, case, variant) in [
        ("log", "apache/log_buffer", "buggy"),
        ("buffer", "classic/bounded_buffer_if", "buggy"),
        ("fixed", "classic/bounded_buffer_if", "fixed"),
    ] {
        let inside = folder.join(name);
        std::fs::create_dir_all(&inside).expect("a folder");
        let program = corpus::build(case, variant, &inside);
        let path = program.strip_prefix(folder).expect("it is in the folder");
        text.push_str(&format!(
            "[[subject]]\nname = \"{name}\"\nrun = [\"explore\", \"--jobs\", \"1\", \"--\", \"./{}\"]\n",
            path.display()
        ));
    }
    std::fs::write(folder.join("corpus.toml"), text).expect("a file");
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = raddle();
    command.current_dir(folder).arg("campaign").args(words);
    command
}

#[track_caller]
fn told(folder: &Path, words: &[&str], code: i32) -> Ran {
    run(&mut command(folder, words)).expect(code)
}

/// What a campaign has done, without what depends on the clock and on the folder.
fn shown(folder: &Path, name: &str) -> Value {
    let ran = told(folder, &["show", name, "--json"], 0);
    let mut shown: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    shown["name"].take();
    for subject in shown["subjects"].as_array_mut().expect("subjects") {
        subject["cpu_milliseconds"].take();
        for finding in subject["findings"].as_array_mut().expect("findings") {
            let replay = finding["replay"].take();
            let replay = replay.as_str().expect("each finding was recorded");
            let file = replay.strip_prefix("raddle replay ").expect("a command");
            assert!(Path::new(file).is_file(), "{file}");
        }
    }
    shown
}

fn begin(folder: &Path, name: &str) -> Child {
    let mut command = command(folder, &["resume", name, "--rounds", "10"]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null());
    command.spawn().expect("it starts")
}

#[test]
fn whenever_it_is_killed_nothing_is_lost_and_nothing_counts_twice() {
    let folder = temporary();
    let folder = folder.path();
    make_corpus(folder);
    for name in ["quiet", "killed"] {
        told(folder, &["create", name, "corpus.toml"], 0);
    }
    told(folder, &["resume", "quiet", "--rounds", "10"], 1);
    let quiet = shown(folder, "quiet");
    assert_eq!(quiet["rounds"], 10);
    let subjects = quiet["subjects"].as_array().expect("subjects");
    let rounds = subjects.iter().map(|subject| subject["rounds"].as_u64());
    assert_eq!(rounds.map(Option::unwrap_or_default).sum::<u64>(), 10);
    for subject in subjects {
        let rounds = subject["rounds"].as_u64().expect("rounds");
        assert!(rounds > 0, "{quiet:#}");
        assert_eq!(subject["schedules"], rounds * 120, "{quiet:#}");
        let findings = subject["findings"].as_array().expect("findings");
        assert_eq!(findings.is_empty(), subject["name"] == "fixed", "{quiet:#}");
    }

    let mut prng = Prng::new(number("RADDLE_CAMPAIGN_SEED", 25));
    for _ in 0..number("RADDLE_CAMPAIGN_KILLS", 8) {
        let mut director = begin(folder, "killed");
        std::thread::park_timeout(Duration::from_millis(20 + prng.below(600)));
        director.kill().expect("it can be killed");
        director.wait().expect("it ends");
        // Whatever the moment, what is there can be read.
        shown(folder, "killed");
    }
    told(folder, &["resume", "killed", "--rounds", "10"], 1);
    assert_eq!(shown(folder, "killed"), quiet);
    let work = folder.join("raddle-campaigns/killed/work");
    let left = work.read_dir().map_or(0, Iterator::count);
    assert_eq!(left, 0, "rounds that were killed are cleared away");
}

#[test]
fn findings_are_kept_when_they_are_found() {
    let folder = temporary();
    let folder = folder.path();
    make_corpus(folder);
    let corpus = std::fs::read_to_string(folder.join("corpus.toml")).expect("a file");
    let long = corpus.replace("round-schedules = 120", "round-schedules = 10000000");
    std::fs::write(folder.join("long.toml"), long).expect("a file");
    told(folder, &["create", "long", "long.toml"], 0);
    let mut director = begin(folder, "long");
    let work = folder.join("raddle-campaigns/long/work");
    let begun = Instant::now();
    while recorded(&work).is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "nothing is found"
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
    director.kill().expect("it can be killed");
    director.wait().expect("it ends");
    // It has had its rounds, so that it only clears up.
    told(folder, &["resume", "long", "--rounds", "0"], 1);
    let shown = shown(folder, "long");
    let finding = &shown["subjects"][0]["findings"][0];
    assert_eq!(finding["rounds_seen"], 0, "{shown:#}");
    assert_eq!(shown["rounds"], 0, "{shown:#}");
}

/// Recordings in folders of rounds.
fn recorded(work: &Path) -> Vec<PathBuf> {
    let rounds = work.read_dir().into_iter().flatten().flatten();
    let files = rounds.flat_map(|round| round.path().read_dir().into_iter().flatten().flatten());
    let files = files.map(|file| file.path());
    files
        .filter(|file| file.extension().is_some_and(|ending| ending == "raddle"))
        .collect()
}

#[test]
fn a_campaign_is_measured_and_drawn_and_its_findings_can_be_known() {
    let folder = temporary();
    let folder = folder.path();
    make_corpus(folder);
    told(folder, &["create", "nightly", "corpus.toml"], 0);
    let again = told(folder, &["create", "nightly", "corpus.toml"], 2);
    assert!(
        again.stderr.contains("is there already"),
        "{}",
        again.stderr
    );
    told(folder, &["resume", "nightly", "--rounds", "3"], 1);
    let list = told(folder, &["list"], 0).stdout;
    assert!(
        list.contains("nightly: not running, 3 subjects, 3 rounds"),
        "{list}"
    );

    let metrics = told(folder, &["metrics", "nightly"], 0).stdout;
    let sample = "raddle_campaign_schedules_total{campaign=\"nightly\",subject=\"fixed\"} 120\n";
    assert!(
        metrics.contains(sample) && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
    let file = folder.join("raddle-campaigns/nightly/metrics.txt");
    assert_eq!(std::fs::read_to_string(file).expect("metrics"), metrics);

    told(folder, &["show", "nightly", "--log", "log.jsonl"], 0);
    let mut report = raddle();
    let report = report
        .current_dir(folder)
        .args(["report", "log.jsonl", "-o", "page.html"]);
    run(report).expect(0);
    let page = std::fs::read_to_string(folder.join("page.html")).expect("a page");
    assert!(
        page.contains("buffer") && page.contains("1 round of campaign nightly"),
        "{page}"
    );

    // Findings that are known change no exit status, and say why.
    let known = shown(folder, "nightly");
    for subject in known["subjects"].as_array().expect("subjects") {
        for finding in subject["findings"].as_array().expect("findings") {
            let id = finding["fingerprint"].as_str().expect("a fingerprint");
            told(
                folder,
                &["accept", "nightly", id, "--reason", "issue 41"],
                0,
            );
        }
    }
    told(folder, &["resume", "nightly", "--rounds", "3"], 0);
    let text = told(folder, &["show", "nightly"], 0).stdout;
    assert!(text.contains("known: issue 41"), "{text}");
    let unknown = told(folder, &["accept", "nightly", "C-1", "--reason", "x"], 2);
    assert!(
        unknown.stderr.contains("there is no finding `C-1`"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn a_running_campaign_is_alone_and_can_be_paused() {
    let folder = temporary();
    let folder = folder.path();
    make_corpus(folder);
    told(folder, &["create", "nightly", "corpus.toml"], 0);
    // While it runs there is no second one, and no deleting; `pause` ends it after a round.
    let mut command = command(folder, &["resume", "nightly", "--rounds", "1000"]);
    let mut director = command.stderr(Stdio::null()).spawn().expect("it starts");
    let begun = Instant::now();
    while !told(folder, &["list"], 0)
        .stdout
        .contains("nightly: running")
    {
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not run");
    }
    let second = told(folder, &["resume", "nightly"], 2);
    assert!(
        second.stderr.contains("is running already"),
        "{}",
        second.stderr
    );
    let delete = told(folder, &["delete", "nightly"], 2);
    assert!(delete.stderr.contains("is running"), "{}", delete.stderr);
    told(folder, &["pause", "nightly"], 0);
    assert_eq!(director.wait().expect("it ends").code(), Some(1));
    let list = told(folder, &["list"], 0).stdout;
    assert!(list.contains("nightly: paused"), "{list}");
    told(folder, &["delete", "nightly"], 0);
    assert_eq!(
        told(folder, &["list"], 0).stdout,
        "there are no campaigns\n"
    );
    let gone = told(folder, &["show", "nightly"], 2);
    assert!(
        gone.stderr.contains("there is no campaign `nightly`"),
        "{}",
        gone.stderr
    );
}

#[test]
fn a_subject_that_cannot_run_is_left_out_and_told() {
    let folder = temporary();
    let folder = folder.path();
    make_corpus(folder);
    let corpus = std::fs::read_to_string(folder.join("corpus.toml")).expect("a file");
    let broken = "[[subject]]\nname = \"gone\"\nrun = [\"explore\", \"--\", \"./not-there\"]\n";
    std::fs::write(folder.join("corpus.toml"), corpus + broken).expect("a file");
    told(folder, &["create", "c", "corpus.toml"], 0);
    let ran = told(folder, &["resume", "c", "--rounds", "5"], 1);
    assert!(
        ran.stderr.contains("subject gone cannot be explored"),
        "{}",
        ran.stderr
    );
    let text = told(folder, &["show", "c"], 0).stdout;
    assert!(text.contains("cannot be explored: "), "{text}");
    assert!(text.contains("not-there"), "{text}");
    std::fs::write(folder.join("only.toml"), broken).expect("a file");
    told(folder, &["create", "only", "only.toml"], 0);
    let ran = told(folder, &["resume", "only"], 2);
    assert!(
        ran.stderr.contains("none of the subjects can be explored"),
        "{}",
        ran.stderr
    );
}
