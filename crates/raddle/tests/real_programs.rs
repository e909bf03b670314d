//! Programs as Debian ships them: the same output and status under raddle as natively.

#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use raddle_testkit::{compile, temporary};
use tempfile::TempDir;

/// A directory of its own for each test, removed at the end.
struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        Self(temporary())
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn native(directory: &Path, command: &[&str]) -> Output {
    Command::new(command[0])
        .args(&command[1..])
        .current_dir(directory)
        .env_clear()
        .envs([
            (
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            ),
            ("HOME", "/root"),
            ("LC_ALL", "C"),
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; `cargo xtask setup` installs it", command[0]))
}

fn raddle(directory: &Path, options: &[&str], command: &[&str]) -> Output {
    raddle_testkit::raddle()
        .arg("run")
        .args(["--env", "LC_ALL=C", "--env", "HOME=/root", "--cwd"])
        .arg(directory)
        .args(options)
        .arg("--")
        .args(command)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn check(command: &[&str]) {
    check_in(&Scratch::new(), command);
}

#[track_caller]
fn check_in(scratch: &Scratch, command: &[&str]) {
    // Raddle goes first: its changes stay in its overlay, so that both begin with the same files.
    let ours = raddle(scratch.0.path(), &[], command);
    let theirs = native(scratch.0.path(), command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(
        text(&ours.stdout),
        text(&theirs.stdout),
        "standard error was:\n{}",
        text(&ours.stderr)
    );
    assert_eq!(text(&ours.stderr), text(&theirs.stderr));
    assert_eq!(ours.status.code(), theirs.status.code());
}

#[track_caller]
fn check_script(script: &str) {
    check(&["/bin/bash", "-c", script]);
}

#[test]
fn coreutils() {
    // Newer host files show the fixed epoch of our world, so dates are left out.
    check(&[
        "/bin/ls",
        "-la",
        "--time-style=+",
        "/usr/share/common-licenses",
    ]);
    check(&["/bin/ls", "-l", "/usr/share/common-licenses/GPL-3"]);
    check(&[
        "/usr/bin/sort",
        "--parallel=4",
        "/usr/share/common-licenses/GPL-3",
    ]);
    check(&[
        "/usr/bin/sha256sum",
        "/usr/share/common-licenses/GPL-2",
        "/bin/bash",
    ]);
    check(&[
        "/usr/bin/wc",
        "/usr/share/common-licenses/GPL-1",
        "/does/not/exist",
    ]);
    check_script(
        "mkdir d; cp -r /usr/share/common-licenses d/; du -s --apparent-size d | cut -f2; rm -r d; ls",
    );
    check_script(
        "seq 1 1000 | tac | head -n 3 | od -c; expr 6 '*' 7; printf '%5.2f|%e\\n' 3.14159 1e10",
    );
}

#[test]
fn bash_with_pipes_and_jobs() {
    check_script(
        "for i in 1 2 3; do echo $i | cat; done; (sleep 0.2; echo late) & echo early; wait; echo status $?",
    );
    check_script("trap 'echo trapped; exit 5' TERM; kill -TERM $$; echo not reached");
    check_script(
        "set -o pipefail; false | true; echo $?; seq 1 100000 | head -n 1; echo ${PIPESTATUS[@]}",
    );
    check_script(
        "sleep 100 & kill %1; wait %1; echo $?; x=$(cat <(echo one) <(echo two)); echo $x",
    );
}

#[test]
fn perl() {
    check(&[
        "/usr/bin/perl",
        "-e",
        "my %h = map { $_ => $_ ** 2 } 1 .. 50; print join(',', sort { $a <=> $b } values %h), \"\\n\"; print `echo child`; printf \"%.12f\\n\", sin(1) * exp(2); die 'the end'",
    ]);
}

#[test]
fn python_threads_subprocess_json_sqlite() {
    let program = r#"
import json, math, queue, sqlite3, subprocess, threading
results = queue.Queue()
def work(number):
    results.put((number, math.sqrt(number), sum(range(number * 100))))
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(results.queue))
print(json.dumps({"list": [1, 2.5, None, "text"], "nested": {"a": True}}, sort_keys=True))
print(subprocess.run(["sort"], input=b"b\na\n", capture_output=True).stdout)
db = sqlite3.connect(":memory:")
db.execute("create table t (a integer, b real)")
db.executemany("insert into t values (?, ?)", [(i, i / 7) for i in range(1000)])
print(db.execute("select sum(a), round(avg(b), 6), count(*) from t where a % 3 = 0").fetchone())
raise SystemExit(4)
"#;
    check(&["/usr/bin/python3", "-c", program]);
}

#[test]
fn sqlite_shell() {
    let script = "create table t(a integer primary key, b text); with recursive c(x) as (select 1 union all select x + 1 from c where x < 3000) insert into t select x, hex(x * x) from c; create index i on t(b); select count(*), max(b), avg(length(b)) from t where b > '3'; select round(1.0 / 3, 10), 1e15 + 0.3;";
    check(&["/usr/bin/sqlite3", "test.db", script]);
}

#[test]
fn xz_and_pbzip2_round_trips() {
    check_script(
        "cat /usr/share/common-licenses/GPL-* > in; xz -T4 -k in; ls -s in.xz | wc -l; xz -dc in.xz | sha256sum",
    );
    check_script(
        "head -c 400000 /bin/bash > in; pbzip2 -p4 -k -1 in; pbzip2 -dc -p2 in.bz2 | cmp - in && echo same",
    );
}

#[test]
fn gcc_compiles_and_links() {
    let scratch = Scratch::new();
    scratch.file(
        "a.c",
        "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 3; }\n",
    );
    check_in(
        &scratch,
        &["/bin/bash", "-c", "gcc -O2 -Wall a.c -o a && ./a; echo $?"],
    );
}

#[test]
fn git_init_commit_log() {
    check_script(
        "export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_GLOBAL=/dev/null; git init -q -b main r; cd r; git config user.email a@example.org; git config user.name A; echo text > f; git add f; git commit -qm 'first commit'; echo more >> f; git commit -qam second; git log --format='%H %s'; git diff HEAD~1 --stat; git fsck --strict",
    );
}

#[test]
fn rust_test_binary() {
    let scratch = Scratch::new();
    let source = scratch.file(
        "t.rs",
        "use std::{sync::*, thread};\n#[test] fn mutex() { let m = Arc::new(Mutex::new(0)); let h: Vec<_> = (0..4).map(|_| { let m = m.clone(); thread::spawn(move || for _ in 0..100 { *m.lock().unwrap() += 1; }) }).collect(); for x in h { x.join().unwrap(); } assert_eq!(*m.lock().unwrap(), 400); }\n#[test] fn channel() { let (s, r) = mpsc::channel(); thread::spawn(move || for i in 0..10 { s.send(i).unwrap(); }); assert_eq!(r.iter().sum::<i32>(), 45); }\n#[test] #[should_panic(expected = \"boom\")] fn panics() { panic!(\"boom\"); }\n",
    );
    let program = scratch.0.path().join("t");
    let built = Command::new("rustc")
        .args(["--test", "-O", &source, "-o"])
        .arg(&program)
        .status()
        .unwrap();
    assert!(built.success());
    let output = raddle(scratch.0.path(), &[], &[program.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("test result: ok. 3 passed; 0 failed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn go_program_with_goroutines() {
    let scratch = Scratch::new();
    let source = scratch.file(
        "a.go",
        "package main\nimport (\"fmt\"; \"sync\")\nfunc main() {\n\tvar wg sync.WaitGroup\n\tc := make(chan int, 4)\n\tfor i := 0; i < 8; i++ { wg.Add(1); go func(i int) { defer wg.Done(); c <- i * i }(i) }\n\tgo func() { wg.Wait(); close(c) }()\n\tsum := 0\n\tfor v := range c { sum += v }\n\tfmt.Println(\"sum\", sum)\n}\n",
    );
    let program = scratch.0.path().join("a");
    compile(Path::new(&source), &program, &[]);
    check_in(&scratch, &[program.to_str().unwrap()]);
}

#[test]
fn redis_server_and_client() {
    check_script(
        "redis-server --port 7391 --save '' --appendonly no >/dev/null 2>&1 & for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do redis-cli -p 7391 ping >/dev/null 2>&1 && break; sleep 0.2; done; c='redis-cli -p 7391'; $c set k hello; $c get k; for i in 1 2 3; do $c incr n; done; $c lpush l a b c; $c lrange l 0 -1; $c eval 'return redis.call(\"get\", \"k\")' 0; $c shutdown nosave; wait; echo end",
    );
}

#[test]
fn memcached_and_scripted_client() {
    check_script(
        "memcached -u root -p 7392 -l 127.0.0.1 -t 4 & server=$!; sleep 0.5; exec 3<>/dev/tcp/127.0.0.1/7392; printf 'set a 0 0 5\\r\\nhello\\r\\nget a\\r\\nset x 0 0 1\\r\\n5\\r\\nincr x 3\\r\\ndelete a\\r\\nget a\\r\\nquit\\r\\n' >&3; cat <&3; kill $server; wait $server; echo $?",
    );
}

/// The digest that `--stats` prints.
fn digest(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let at = text
        .rfind("digest ")
        .unwrap_or_else(|| panic!("no digest in:\n{text}"));
    text[at + 7..].split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_run_depends_on_nothing_but_program_input_and_seed() {
    let scratch = Scratch::new();
    let programs: [&[&str]; 4] = [
        &[
            "/usr/bin/sort",
            "--parallel=4",
            "/usr/share/common-licenses/GPL-3",
        ],
        &[
            "/bin/bash",
            "-c",
            "for i in 1 2 3; do echo $RANDOM | wc -c & done; wait; date; echo $$",
        ],
        &[
            "/usr/bin/python3",
            "-c",
            "import threading, random, os, time\nfor t in [threading.Thread(target=lambda: random.random()) for _ in range(4)]: t.start()\nprint(os.getpid(), time.time() > 0, hash('x'))",
        ],
        &[
            "/bin/bash",
            "-c",
            "head -c 300000 /bin/bash | pbzip2 -p4 -c | sha256sum",
        ],
    ];
    for program in programs {
        let first = raddle(scratch.0.path(), &["--stats"], program);
        let busy: Vec<_> = (0..3)
            .map(|_| {
                Command::new("sh")
                    .args(["-c", "while :; do :; done"])
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut command = raddle_testkit::raddle();
        let other = command
            .current_dir("/")
            .env("UNRELATED", "value")
            .env("LANG", "xx_XX.UTF-8")
            .args([
                "run",
                "--env",
                "LC_ALL=C",
                "--env",
                "HOME=/root",
                "--stats",
                "--trace=/dev/null",
                "--cwd",
            ])
            .arg(scratch.0.path())
            .arg("--")
            .args(program)
            .stdin(Stdio::null())
            .output();
        for mut child in busy {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let other = other.unwrap();
        assert_eq!(first.stdout, other.stdout, "{program:?}");
        assert_eq!(digest(&first), digest(&other), "{program:?}");
    }
}

#[test]
fn other_seeds_give_other_interleavings() {
    let scratch = Scratch::new();
    let program = [
        "/bin/bash",
        "-c",
        "head -c 300000 /bin/bash | pbzip2 -p4 -c | sha256sum",
    ];
    let of_seed = |seed: &str| {
        let output = raddle(scratch.0.path(), &["--stats", "--seed", seed], &program);
        (output.stdout.clone(), digest(&output))
    };
    let (one, two) = (of_seed("1"), of_seed("2"));
    assert_eq!(
        one.0, two.0,
        "the result does not depend on the interleaving"
    );
    assert_ne!(one.1, two.1);
}
