//! Hardened programs in all the ways they are built and in the places where failures are awkward: link-time
//! optimisation, shared and static libraries, CMake, autoconf, fork, signal handlers, a program's own fault handler.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a surprise ends the test"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use raddle_testkit::harden::{Workshop, number, raddle, run, succeed};
use raddle_testkit::{raddle_path, scratch};

const LIMIT: Duration = Duration::from_secs(30);

/// A function that fails until a thread has come round to `ready`, and a program that prints what it returns.
const LIBRARY: &str = "struct box { long pad[5]; long value; };
struct box *shared;
long (*shared_function)(long);
__attribute__((noinline)) static long inner(struct box *from) { return from->value; }
long direct(void) { return shared->value; }
long below(void) { return inner(shared); }
long indexed(unsigned char at) { return shared->pad[at]; }
long called(long value) { return shared_function(value) + 1; }
void stored(long value) { shared->value = value; }
void nothing(void) { shared = 0; shared_function = 0; }
";

/// What is missing comes when the runtime has logged the failure, so that there is always something to recover from.
const MAIN: &str = "#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
struct box { long pad[5]; long value; };
extern struct box *shared;
extern long (*shared_function)(long);
long direct(void), below(void), indexed(unsigned char), called(long);
void stored(long), nothing(void);
static struct box box = {{10, 20, 30, 40, 50}, 7}, spare;
static long twice(long value) { return 2 * value; }
static long direct_twice(long value) { return value; }
static long already;
static long logged(void)
{
    struct stat log;
    return stat(getenv(\"RADDLE_HARDEN_LOG\"), &log) == 0 ? (long)log.st_size : 0;
}
static void *ready(void *unused)
{
    while (logged() == already)
        usleep(500);
    shared = unused ? &spare : &box;
    shared_function = unused ? direct_twice : twice;
    return unused;
}
static void again(pthread_t *thread)
{
    nothing();
    already = logged();
    pthread_create(thread, 0, ready, 0);
}
int main(void)
{
    pthread_t thread;
    again(&thread); printf(\"%ld \", direct()); pthread_join(thread, 0);
    again(&thread); printf(\"%ld \", below()); pthread_join(thread, 0);
    again(&thread); printf(\"%ld \", indexed(3)); pthread_join(thread, 0);
    again(&thread); printf(\"%ld \", called(4)); pthread_join(thread, 0);
    again(&thread); stored(5); pthread_join(thread, 0);
    printf(\"%ld\\n\", box.value);
    return 0;
}
";

const RESULT: &str = "7 7 40 9 5\n";

fn recovers(program: &Path, what: &str) {
    let log = program.with_extension("log");
    for _ in 0..number("RADDLE_BUILD_RUNS", 1) {
        std::fs::write(&log, "").unwrap();
        let ended = run(
            program,
            &[("RADDLE_HARDEN_LOG", log.to_str().unwrap())],
            LIMIT,
        );
        assert_eq!(ended.stdout, RESULT, "{what}: {ended:?}");
        let log = std::fs::read_to_string(&log).unwrap();
        let recoveries = log.matches(" recovered after ").count();
        assert_eq!(recoveries, 5, "{what}: {log}");
    }
}

fn sources(workshop: &Workshop) -> (String, String) {
    (
        workshop.write("library.c", LIBRARY),
        workshop.write("main.c", MAIN),
    )
}

#[test]
fn every_kind_of_access_recovers_at_every_level() {
    let workshop = Workshop::open();
    let (library, main) = sources(&workshop);
    for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
        for checks in ["--harden-checks=fault", "--harden-checks=compare"] {
            let sources = [library.as_str(), &main];
            let program = workshop.harden("cc", &[level, checks], &sources, "program");
            recovers(&program, &format!("{level} {checks}"));
        }
    }
}

#[test]
fn accesses_are_their_own_checks() {
    let workshop = Workshop::open();
    let (library, _) = sources(&workshop);
    let assembly = |checks: &str| {
        let output = workshop.harden("cc", &["-O2", checks, "-S"], &[&library], "library.s");
        std::fs::read_to_string(output).unwrap()
    };
    let comparisons = |text: &str| text.matches("$10000").count();
    let (fault, compare) = (
        assembly("--harden-checks=fault"),
        assembly("--harden-checks=compare"),
    );
    assert_eq!(comparisons(&compare), 5, "{compare}");
    // Only the call of a pointer in tail position keeps its comparison, if the compiler makes it one.
    assert!(comparisons(&fault) <= 1, "{fault}");
    assert!(fault.contains("raddle_faults") && !compare.contains("raddle_faults"));
}

#[test]
fn fix_mode_without_a_site_here_is_the_plain_program() {
    let workshop = Workshop::open();
    let source = format!(
        "{LIBRARY}#include <signal.h>\nint main(void) {{ signal(SIGUSR1, SIG_IGN); return direct(); }}\n"
    );
    let source = workshop.write("program.c", &source);
    let plain = std::fs::read(workshop.plain(&["-O2"], &source)).unwrap();
    let built = |option: &str| {
        let program = workshop.harden("cc", &["-O2", option], &[&source], "fix");
        std::fs::read(program).unwrap()
    };
    assert!(built("--harden-mode=fix") == plain);
    assert!(built("--harden-site=other.c:5") == plain);
    assert!(built("--harden-site=program.c:5") != plain);
}

#[test]
fn link_time_optimisation_shared_and_static_libraries_recover() {
    let workshop = Workshop::open();
    let (library, main) = sources(&workshop);
    let both = [library.as_str(), &main];
    let build = |options: &[&str], sources: &[&str], name: &str| {
        workshop.harden("cc", &[&["-O2"], options].concat(), sources, name)
    };
    recovers(&build(&["-flto"], &both, "lto"), "LTO");
    // Thin LTO leaves callee and caller in two modules, where callers are not re-executed.
    build(&["-flto=thin", "-c"], &[&library], "library.o");
    build(&["-flto=thin", "-c", "-Dbelow=direct"], &[&main], "main.o");
    let objects = [workshop.path("library.o"), workshop.path("main.o")];
    let thin = build(&["-flto=thin"], &[&objects[0], &objects[1]], "thin");
    recovers(&thin, "thin LTO");
    build(&["-shared", "-fPIC"], &[&library], "libbox.so");
    let shared = workshop.path("libbox.so");
    recovers(&build(&[], &[&main, &shared], "dynamic"), "shared library");
    recovers(&build(&["-static"], &both, "static"), "static");
    // The language holds for what follows it, but not for our runtime.
    recovers(&build(&["-x", "c"], &both, "language"), "-x c");
    recovers(&build(&["-xc"], &both, "joined"), "-xc");
    let sections = [
        "-g",
        "-pie",
        "-fPIE",
        "-ffunction-sections",
        "-fdata-sections",
        "-Wl,--gc-sections",
    ];
    recovers(&build(&sections, &both, "sections"), "sections");
}

/// `raddle` under the one-word name that build systems want.
fn one_word(folder: &Path) -> PathBuf {
    let link = folder.join("raddle-cc");
    std::os::unix::fs::symlink(raddle_path(), &link).unwrap();
    link
}

#[test]
fn cmake_and_autoconf_builds_recover() {
    let workshop = Workshop::open();
    sources(&workshop);
    let folder = workshop.folder();
    let driver = one_word(folder);
    let cache = scratch();
    workshop.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.13)\nproject(box C)\nadd_library(box SHARED library.c)\nadd_executable(program main.c)\nfind_package(Threads REQUIRED)\ntarget_link_libraries(program box Threads::Threads)\n",
    );
    let build = folder.join("build");
    succeed(
        Command::new("cmake")
            .current_dir(folder)
            .env("CC", &driver)
            .env("XDG_CACHE_HOME", &cache)
            .args(["-DCMAKE_BUILD_TYPE=Release", "-B"])
            .arg(&build),
    );
    succeed(
        Command::new("cmake")
            .env("XDG_CACHE_HOME", &cache)
            .arg("--build")
            .arg(&build),
    );
    recovers(&build.join("program"), "CMake");
    workshop.write(
        "configure.ac",
        "AC_INIT([box], [1])\nAC_PROG_CC\nAC_CHECK_HEADERS([pthread.h])\nAC_CHECK_LIB([pthread], [pthread_create])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
    );
    workshop.write(
        "Makefile.in",
        "program: library.c main.c\n\t@CC@ @CFLAGS@ -pthread library.c main.c @LIBS@ -o program\n",
    );
    succeed(Command::new("autoconf").current_dir(folder));
    let compiler = format!("{} cc", raddle_path().display());
    succeed(
        Command::new("./configure")
            .current_dir(folder)
            .env("XDG_CACHE_HOME", &cache)
            .arg(format!("CC={compiler}")),
    );
    succeed(
        Command::new("make")
            .current_dir(folder)
            .env("XDG_CACHE_HOME", &cache),
    );
    recovers(&folder.join("program"), "autoconf");
}

const AWKWARD: &str = "#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int *volatile shared;
static int seven = 7;
static volatile int seen;
static sigjmp_buf back;
static void *ready(void *unused) { usleep(10000); shared = &seven; return unused; }
static void *blocked(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    seen = *shared;
    return unused;
}
static void on_alarm(int number) { (void)number; seen = *shared; }
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number; (void)context;
    seen = (int)(long)info->si_addr;
    siglongjmp(back, 1);
}
__attribute__((noinline)) static int read_shared(void) { return *shared; }
static void start(pthread_t *thread)
{
    shared = 0;
    seen = 0;
    pthread_create(thread, 0, ready, 0);
}
int main(void)
{
    pthread_t thread, other;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigfillset(&action.sa_mask);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, 0);
    start(&thread);
    raise(SIGALRM);
    printf(\"handler %d\\n\", seen);
    pthread_join(thread, 0);
    start(&thread);
    pthread_create(&other, 0, blocked, 0);
    pthread_join(other, 0);
    printf(\"blocked %d\\n\", seen);
    pthread_join(thread, 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        start(&thread);
        printf(\"child %d\\n\", read_shared());
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, 0, 0);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, 0);
    start(&thread);
    printf(\"with its own fault handler %d\\n\", read_shared());
    pthread_join(thread, 0);
    if (!sigsetjmp(back, 1))
        seen = *(volatile int *)0x123450;
    printf(\"its own fault at %x\\n\", seen);
    shared = (int *)16;
    if (!sigsetjmp(back, 1))
        seen = read_shared();
    printf(\"given up at %d\\n\", seen);
    sigaction(SIGSEGV, 0, &action);
    printf(\"handler is %d\\n\", action.sa_sigaction == on_fault);
    fflush(stdout);
    signal(SIGSEGV, SIG_DFL);
    return read_shared();
}
";

#[test]
fn signal_handlers_fork_and_a_programs_own_fault_handler() {
    let workshop = Workshop::open();
    // `main` calls sigsetjmp and is therefore left alone; what fails is in functions of their own.
    let source = workshop.write("awkward.c", AWKWARD);
    for level in ["-O0", "-O2"] {
        let program = workshop.harden("cc", &[level], &[&source], "awkward");
        let ended = run(&program, &[("RADDLE_HARDEN_RETRIES", "300")], LIMIT);
        let expected = "handler 7\nblocked 7\nchild 7\nwith its own fault handler 7\nits own fault at 123450\ngiven up at 16\nhandler is 1\n";
        assert_eq!(ended.stdout, expected, "{level}: {}", ended.stderr);
        assert_eq!(ended.status, Some(-11), "{level}: {}", ended.stderr);
    }
}

#[test]
fn a_finding_of_explore_is_fixed() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "server.c",
        "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\nint *shared, *other, value = 80;\nstatic void *ready(void *unused) { usleep(3000); shared = &value; return unused; }\nint main(void)\n{\n    pthread_t thread;\n    pthread_create(&thread, 0, ready, 0);\n    int port = *shared;\n    pthread_join(thread, 0);\n    other = shared;\n    printf(\"%d %d\\n\", port, *other);\n    return 0;\n}\n",
    );
    let plain = workshop.plain(&["-g", "-O1"], &source);
    let explored = raddle()
        .current_dir(workshop.folder())
        .args([
            "explore",
            "--until-found",
            "--schedules",
            "500",
            "--json",
            "--",
        ])
        .arg(&plain)
        .output()
        .unwrap();
    assert_eq!(explored.status.code(), Some(1), "{explored:?}");
    let explored = String::from_utf8(explored.stdout).unwrap();
    let finding = workshop.write("finding.json", &explored);
    let options = ["-O2", &format!("--harden-finding={finding}")];
    let shown = workshop.sites(&options, &source);
    assert!(
        shown.contains("server.c:10: dereference in main: hardened")
            && shown.contains("dereference 1 of 1"),
        "{shown}"
    );
    let fixed = workshop.harden("cc", &options, &[&source], "fixed");
    let ended = run(&fixed, &[], LIMIT);
    assert_eq!(ended.stdout, "80 80\n", "{}", ended.stderr);
    assert!(ended.stderr.contains("server.c:10"), "{}", ended.stderr);
}
