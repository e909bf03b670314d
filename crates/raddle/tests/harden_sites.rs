//! From and to other commands: inferred oracles become sites, and a line of the log becomes a target.

use std::time::Duration;

use raddle_testkit::harden::{Workshop, raddle, run, succeed};
use raddle_testkit::{corpus, raddle_in};

const LIMIT: Duration = Duration::from_secs(30);

/// Nothing in the source says what is right.
const REPORT: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static long end;
static void *worker(void *unused)
{
    usleep(3000);
    __atomic_store_n(&end, 1700, __ATOMIC_RELEASE);
    return unused;
}
__attribute__((noinline)) static void report(void)
{
    long seen = __atomic_load_n(&end, __ATOMIC_ACQUIRE);
    printf("end %ld\n", seen);
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    report();
    pthread_join(thread, NULL);
    return 0;
}
"#;

fn invariant(expression: &str, support: u64) -> String {
    format!(
        "[[invariant]]\nbuild-id = \"00ff\"\nfunction = \"report\"\nfile = \"report.c\"\nline = 13\n\
         expression = \"{expression}\"\nsupport = {support}\n"
    )
}

#[test]
fn an_inferred_oracle_is_a_site() {
    let workshop = Workshop::open();
    let source = workshop.write("report.c", REPORT);
    let built = |text: &str, level: &str| {
        let oracles = workshop.write("oracles.toml", text);
        let option = format!("--harden-oracles={oracles}");
        let program = workshop.harden("cc", &[level, &option], &[&source], "report");
        run(&program, &[], LIMIT)
    };
    for expression in [
        "value >= 1000",
        "value != 0",
        "value in 1..=9999",
        "value in [2, 1700]",
    ] {
        for level in ["-O0", "-O2"] {
            let ended = built(&invariant(expression, 40), level);
            assert_eq!(
                ended.stdout, "end 1700\n",
                "{expression} {level}: {}",
                ended.stderr
            );
            assert!(
                ended
                    .stderr
                    .contains("report.c:13 (report): oracle recovered"),
                "{}",
                ended.stderr
            );
        }
    }
    // Too little support is no oracle.
    assert_eq!(built(&invariant("value != 0", 1), "-O2").stdout, "end 0\n");
}

#[test]
fn a_file_of_oracles_that_is_none_is_refused() {
    let workshop = Workshop::open();
    let source = workshop.write("report.c", REPORT);
    for (text, expected) in [
        (invariant("value = 3", 9), "write `value != 0`"),
        (
            "[[invariant]]\nline = 3\n".to_owned(),
            "no file of invariants",
        ),
    ] {
        let oracles = workshop.write("oracles.toml", &text);
        let option = format!("--harden-oracles={oracles}");
        let output = raddle()
            .args(["cc", &option, "-c", &source])
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

/// The road of the manual: predicted from runs that end well, then checked in the program that is hardened.
#[test]
fn what_predict_proposes_becomes_a_site() {
    let workshop = Workshop::open();
    let program = corpus::build("mysql/query_null", "buggy", workshop.folder());
    // Where the program was built from.
    let source = workshop.path("buggy.c");
    let mut predict = raddle_in(
        workshop.folder(),
        &["predict", "--invariants", "held.toml", "--"],
    );
    raddle_testkit::run(predict.arg(program)).expect(1);
    let option = format!("--harden-oracles={}", workshop.path("held.toml"));
    let without = workshop.sites(&["-g"], &source);
    assert!(!without.contains("oracle"), "{without}");
    let sites = workshop.sites(&["-g", &option], &source);
    assert!(
        sites.contains("execute") && sites.contains("oracle"),
        "{sites}"
    );
}

/// Two functions with locks in two orders, and much else that threads do.
const PAIR: &str = r#"#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static volatile int noise;
__attribute__((noinline)) static void other_work(void)
{
    for (int i = 0; i < 200; i++)
        noise += i;
}
__attribute__((noinline)) static void forward(void)
{
    pthread_mutex_lock(&one);
    pthread_mutex_lock(&two);
    pthread_mutex_unlock(&two);
    pthread_mutex_unlock(&one);
}
__attribute__((noinline)) static void backward(void)
{
    pthread_mutex_lock(&two);
    pthread_mutex_lock(&one);
    pthread_mutex_unlock(&one);
    pthread_mutex_unlock(&two);
}
static void *run(void *unused)
{
    other_work();
    forward();
    other_work();
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    other_work();
    backward();
    other_work();
    pthread_join(thread, NULL);
    return 0;
}
"#;

#[test]
fn a_line_of_the_log_is_a_target() {
    let workshop = Workshop::open();
    let source = workshop.write("pair.c", PAIR);
    let plain = workshop.plain(&["-O1", "-g"], &source);
    let output = workshop.path("out");
    let explore = |site: &str| {
        raddle()
            .args([
                "explore",
                "--schedules",
                "300",
                "--output",
                &output,
                "--site",
                site,
                "--",
            ])
            .arg(&plain)
            .output()
            .unwrap()
    };
    let survived = "raddle-harden: pair.c:19 (backward): deadlock recovered after 1 retry, 96 us";
    let found = explore(survived);
    let told = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found.status.code(), Some(1), "{told}");
    assert!(told.contains("deadlock"), "{told}");
    for (site, expected) in [
        ("nothing of the kind", "names no place in the code"),
        (
            "raddle-harden: pair.c:19 (sideways): deadlock recovered",
            "sideways",
        ),
    ] {
        let refused = explore(site);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(told.contains(expected), "{told}");
    }
    let help = succeed(raddle().args(["help", "predict"]));
    assert!(help.contains("--site"), "{help}");
}
