//! Campaigns over several workers, against a real nats-server: the same answer as local threads, whatever dies.

#[path = "hub/campaigns.rs"]
mod campaigns;
#[path = "hub/kernels.rs"]
mod kernels;
#[path = "hub/linearize.rs"]
mod linearize;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use raddle_stdx::Prng;
use raddle_testkit::{
    Ran, compile_test_program, corpus, number, raddle, recordings, run, temporary, told_in,
};
use tempfile::TempDir;

/// A process that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        let started = command.stdin(Stdio::null()).spawn();
        Self(started.unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A hub with a folder for everything.
struct Hub {
    folder: TempDir,
    url: String,
    port: u16,
    server: Running,
}

impl Hub {
    fn start() -> Self {
        let folder = temporary();
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|socket| socket.local_addr())
            .expect("the test has files, folders and ports")
            .port();
        let server = Self::server(folder.path(), port);
        Self {
            url: format!("nats://127.0.0.1:{port}"),
            folder,
            port,
            server,
        }
    }

    fn server(folder: &Path, port: u16) -> Running {
        let mut command = raddle();
        command
            .args(["hub", "--listen", &format!("127.0.0.1:{port}"), "--store"])
            .arg(folder.join("hub"))
            .stderr(
                std::fs::File::create(folder.join("hub.log"))
                    .expect("the test has files, folders and ports"),
            );
        let server = Running::start(&mut command);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "no hub");
            std::thread::yield_now();
        }
        server
    }

    fn worker(&self, name: &str) -> Running {
        let log = self.folder.path().join(format!("{name}.log"));
        let mut command = raddle();
        command
            .args(["worker", "--jobs", "1", "--hub", &self.url, "--name", name])
            .arg("--cache")
            .arg(self.folder.path().join("cache"))
            .stderr(
                std::fs::File::options()
                    .create(true)
                    .append(true)
                    .open(log)
                    .expect("the test has files, folders and ports"),
            );
        Running::start(&mut command)
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{name}.log")))
            .expect("the test has files, folders and ports")
    }
}

/// What a campaign told and left, without what depends on the clock.
#[derive(Debug, PartialEq)]
struct Answer {
    code: Option<i32>,
    told: serde_json::Value,
    recordings: Vec<(String, Vec<u8>)>,
}

fn explore(program: &Path, more: &[&str], hub: Option<&Hub>) -> (Command, TempDir) {
    let folder = temporary();
    let mut command = raddle();
    command
        .current_dir(
            program
                .parent()
                .expect("the test has files, folders and ports"),
        )
        .args(["explore", "--json", "--time", "120", "--output"])
        .arg(folder.path());
    if let Some(hub) = hub {
        command.args(["--hub", &hub.url]);
    }
    command.args(more);
    (command, folder)
}

fn answer(ran: &Ran, folder: &Path, program: &Path) -> Answer {
    let text = ran.stdout.replace(&folder.display().to_string(), "OUT");
    let told = serde_json::from_str(&text);
    let told = told.unwrap_or_else(|error| panic!("{error}: {}\n{}", ran.stdout, ran.stderr));
    let files = recordings(folder).into_iter().map(|path| {
        let name = path
            .file_name()
            .expect("the test has files, folders and ports")
            .to_string_lossy()
            .into_owned();
        (
            name,
            std::fs::read(path).expect("the test has files, folders and ports"),
        )
    });
    assert!(program.exists());
    Answer {
        code: ran.code,
        told,
        recordings: files.collect(),
    }
}

fn asked(program: &Path, options: &[&str], hub: Option<&Hub>) -> (Answer, String) {
    let words = [
        options,
        &[
            "--",
            program
                .to_str()
                .expect("the test has files, folders and ports"),
        ],
    ]
    .concat();
    let (mut command, folder) = explore(program, &words, hub);
    let ran = run(&mut command);
    (answer(&ran, folder.path(), program), ran.stderr)
}

#[test]
fn two_workers_answer_as_local_threads_do() {
    let hub = Hub::start();
    let _workers = [hub.worker("one"), hub.worker("two")];
    let cases = [
        ("classic/lost_wakeup", "buggy"),
        ("classic/bounded_buffer_if", "buggy"),
        ("classic/bounded_buffer_if", "fixed"),
        ("apache/log_buffer", "buggy"),
        ("mysql/query_null", "buggy"),
    ];
    for (case, variant) in cases {
        let folder = temporary();
        let program = corpus::build(case, variant, folder.path());
        let options = ["--schedules", "300", "--seed", "3"];
        let (local, _) = asked(&program, &options, None);
        let (remote, words) = asked(&program, &options, Some(&hub));
        assert_eq!(remote, local, "{case}: {words}");
        assert!(words.contains("back from"), "{words}");
        assert!(!words.contains("done here"), "{words}");
    }
    // The second time no file has to be sent, and checked work is no other work.
    let folder = temporary();
    let program = corpus::build("apache/log_buffer", "buggy", folder.path());
    let options = ["--schedules", "200", "--until-found"];
    let (local, _) = asked(&program, &options, None);
    asked(&program, &options, Some(&hub));
    let checked = [&options[..], &["--cross-check", "20"]].concat();
    let (remote, words) = asked(&program, &checked, Some(&hub));
    assert_eq!(remote, local, "{words}");
    // The manifest tells how many folders are in the one for temporary files, and other tests make some there.
    let sent = [" 0 files (0 bytes) sent", " 1 file ("];
    assert!(sent.iter().any(|told| words.contains(told)), "{words}");
}

#[test]
fn a_file_that_did_not_travel_is_the_directors_business() {
    let hub = Hub::start();
    let _worker = hub.worker("one");
    let folder = temporary();
    let program = compile_test_program(folder.path(), "hub/peek.c", &["-g", "-pthread"]);
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let words = [
        "--schedules",
        "200",
        "--",
        program.to_str().unwrap(),
        secret.to_str().unwrap(),
    ];
    let told = [None, Some(&hub)].map(|hub| {
        let (mut command, output) = explore(&program, &words, hub);
        let ran = run(&mut command);
        (answer(&ran, output.path(), &program), ran.stderr)
    });
    assert_eq!(told[1].0, told[0].0);
    assert_eq!(told[0].0.code, Some(1));
    let words = &told[1].1;
    assert!(words.contains("jobs were done here"), "{words}");
    assert!(words.contains("did not travel with it"), "{words}");
}

#[test]
fn whoever_dies_nothing_is_lost_and_nothing_counts_twice() {
    let mut hub = Hub::start();
    let mut prng = Prng::new(number("RADDLE_HUB_SEED", 25));
    let kills: u64 = number("RADDLE_HUB_KILLS", 6);
    let folder = temporary();
    let program = corpus::build("classic/bounded_buffer_if", "fixed", folder.path());
    let schedules = (kills * 700).to_string();
    let options = ["--schedules", &schedules, "--", program.to_str().unwrap()];
    let (mut command, output) = explore(&program, &options, None);
    let local = answer(&run(&mut command), output.path(), &program);

    let mut workers = [hub.worker("one"), hub.worker("two")];
    let resumed = [&["--resume"], &options[..]].concat();
    let (mut command, output) = explore(&program, &options, Some(&hub));
    let mut director = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    for kill in 0..kills {
        std::thread::park_timeout(Duration::from_millis(100 + prng.below(500)));
        match kill % 3 {
            0 => {
                let one = usize::from(prng.chance(1, 2));
                workers[one].kill();
                workers[one] = hub.worker(["one", "two"][one]);
            }
            1 => {
                hub.server.kill();
                hub.server = Hub::server(hub.folder.path(), hub.port);
            }
            _ => {
                director.kill();
                let (mut again, _) = explore(&program, &resumed, Some(&hub));
                director = Running::start(again.stdout(Stdio::null()).stderr(Stdio::null()));
            }
        }
    }
    director.kill();
    drop(output);
    let (mut command, output) = explore(&program, &resumed, Some(&hub));
    let ran = run(&mut command);
    let remote = answer(&ran, output.path(), &program);
    assert_eq!(remote, local, "{}", ran.stderr);
}

#[test]
fn strange_messages_are_thrown_away_and_told() {
    let hub = Hub::start();
    let mut worker = hub.worker("one");
    let folder = temporary();
    let program = corpus::build("apache/log_buffer", "buggy", folder.path());
    let (local, _) = asked(&program, &["--schedules", "300"], None);

    // A stranger with access to the hub can say anything to all others.
    let stream = TcpStream::connect(("127.0.0.1", hub.port)).unwrap();
    let mut out = stream.try_clone().unwrap();
    // Payloads are no text.
    let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
    let mut lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    out.write_all(b"CONNECT {\"verbose\":false,\"echo\":false}\r\nSUB raddle.jobs.> 1\r\nSUB raddle.outcomes.> 2\r\nPING\r\n").unwrap();
    let say = |out: &mut TcpStream, subject: &str, bytes: &[u8]| {
        let head = format!("PUB {subject} {}\r\n", bytes.len());
        out.write_all(&[head.as_bytes(), bytes, b"\r\n"].concat())
            .unwrap();
    };
    let words = ["--schedules", "300", "--", program.to_str().unwrap()];
    let (mut command, output) = explore(&program, &words, Some(&hub));
    let director = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let director = director.spawn().unwrap();
    let mut said = 0;
    while said < 40 {
        let Some(line) = lines.next() else { break };
        let Some(subject) = line
            .strip_prefix("MSG ")
            .and_then(|rest| rest.split(' ').next())
        else {
            continue;
        };
        for bytes in [
            &b"hello"[..],
            b"RDH1",
            b"RDH1\xff\xff\xff\xff\xff\xff\xff\x7fxx",
            b"",
        ] {
            say(&mut out, subject, bytes);
        }
        say(&mut out, "raddle.hello", b"RDH1 hello");
        said += 1;
    }
    let output_of = director.wait_with_output().unwrap();
    let ran = Ran {
        code: output_of.status.code(),
        stdout: raddle_testkit::text(&output_of.stdout),
        stderr: raddle_testkit::text(&output_of.stderr),
    };
    assert_eq!(
        answer(&ran, output.path(), &program),
        local,
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("was refused"), "{}", ran.stderr);
    assert!(hub.log("one").contains("was refused"), "{}", hub.log("one"));
    assert!(worker.0.try_wait().unwrap().is_none(), "the worker ended");
}

#[test]
fn what_cannot_be_is_told_in_a_sentence() {
    let folder = temporary();
    let (code, told) = told_in(
        folder.path(),
        &["explore", "--hub", "nats://127.0.0.1:1", "--", "/bin/true"],
    );
    assert_eq!(code, 2, "{told}");
    assert!(
        told.contains("no hub answers at nats://127.0.0.1:1"),
        "{told}"
    );
    let (code, told) = told_in(folder.path(), &["hub", "--print", "--user", "me"]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("is not NAME:PASSWORD"), "{told}");
    let (code, told) = told_in(
        folder.path(),
        &[
            "hub",
            "--print",
            "--user",
            "me:secret",
            "--store",
            "/srv/hub",
        ],
    );
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("store_dir: \"/srv/hub/jetstream\""), "{told}");
    let hub = Hub::start();
    for (option, words) in [
        (
            ["--oracle", "true"],
            "workers run nothing outside of the guest",
        ),
        (["--seed", "1"], "nothing was interleaved"),
    ] {
        let (mut command, _output) = explore(Path::new("/bin/true"), &option, Some(&hub));
        let ran = run(command.args(["--", "/bin/true"]));
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}
