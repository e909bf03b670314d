//! Hardened programs in all the ways they are built and in the places where failures are awkward: link-time
//! optimisation, shared and static libraries, CMake, autoconf, fork, signal handlers, a program's own fault handler.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a surprise ends the test"
)]

mod harden_common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harden_common::{compile, has_llvm, number, raddle, root, run, succeed};

const LIMIT: Duration = Duration::from_secs(30);

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

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

const MAIN: &str = "#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
struct box { long pad[5]; long value; };
extern struct box *shared;
extern long (*shared_function)(long);
long direct(void), below(void), indexed(unsigned char), called(long);
void stored(long), nothing(void);
static struct box box = {{10, 20, 30, 40, 50}, 7}, spare;
static long twice(long value) { return 2 * value; }
static long direct_twice(long value) { return value; }
static void *ready(void *unused)
{
    usleep(5000);
    shared = unused ? &spare : &box;
    shared_function = unused ? direct_twice : twice;
    return unused;
}
static void again(pthread_t *thread)
{
    nothing();
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
    for _ in 0..number("RADDLE_BUILD_RUNS", 1) {
        let ended = run(program, &[], LIMIT);
        assert_eq!(ended.stdout, RESULT, "{what}: {ended:?}");
        let recoveries = ended.stderr.matches(" recovered after ").count();
        assert_eq!(recoveries, 5, "{what}: {}", ended.stderr);
    }
}

fn sources(folder: &Path) -> (String, String) {
    (
        write(folder, "library.c", LIBRARY),
        write(folder, "main.c", MAIN),
    )
}

#[test]
fn every_kind_of_access_recovers_at_every_level() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (library, main) = sources(folder.path());
    let program = folder.path().join("program");
    let output = program.to_str().unwrap();
    for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
        for checks in ["--harden-checks=fault", "--harden-checks=compare"] {
            compile(
                "cc",
                &[level, checks, "-pthread", &library, &main, "-o", output],
            );
            recovers(&program, &format!("{level} {checks}"));
        }
    }
}

#[test]
fn accesses_are_their_own_checks() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (library, _) = sources(folder.path());
    let assembly = |checks: &str| {
        let output = folder.path().join("library.s");
        compile(
            "cc",
            &[
                "-O2",
                checks,
                "-S",
                &library,
                "-o",
                output.to_str().unwrap(),
            ],
        );
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
fn link_time_optimisation_shared_and_static_libraries_recover() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (library, main) = sources(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let program = path("lto");
    compile(
        "cc",
        &["-O2", "-flto", "-pthread", &library, &main, "-o", &program],
    );
    recovers(Path::new(&program), "LTO");
    // Thin LTO leaves callee and caller in two modules, where callers are not re-executed.
    let objects = [path("library.o"), path("main.o")];
    let thin = ["-O2", "-flto=thin", "-c"];
    compile("cc", &[&thin[..], &[&library, "-o", &objects[0]]].concat());
    let without = ["-Dbelow=direct", &main, "-o", &objects[1]];
    compile("cc", &[&thin[..], &without].concat());
    let link = [
        "-flto=thin",
        "-pthread",
        &objects[0],
        &objects[1],
        "-o",
        &program,
    ];
    compile("cc", &link);
    recovers(Path::new(&program), "thin LTO");
    let shared = path("libbox.so");
    compile("cc", &["-O2", "-shared", "-fPIC", &library, "-o", &shared]);
    let program = path("dynamic");
    compile("cc", &["-O2", "-pthread", &main, &shared, "-o", &program]);
    recovers(Path::new(&program), "shared library");
    let program = path("static");
    compile(
        "cc",
        &[
            "-O2", "-static", "-pthread", &library, &main, "-o", &program,
        ],
    );
    recovers(Path::new(&program), "static");
    let program = path("sections");
    let sections = [
        "-ffunction-sections",
        "-fdata-sections",
        "-Wl,--gc-sections",
    ];
    let mut arguments = vec!["-O2", "-g", "-pie", "-fPIE", "-pthread"];
    arguments.extend(sections);
    arguments.extend([library.as_str(), &main, "-o", &program]);
    compile("cc", &arguments);
    recovers(Path::new(&program), "sections");
}

/// `raddle` under the one-word name that build systems want.
fn one_word(folder: &Path) -> PathBuf {
    let link = folder.join("raddle-cc");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_raddle"), &link).unwrap();
    link
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn cmake_and_autoconf_builds_recover() {
    if !has_llvm() || !has("cmake") || !has("autoconf") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    sources(folder.path());
    let driver = one_word(folder.path());
    let cache = env!("CARGO_TARGET_TMPDIR");
    write(
        folder.path(),
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.13)\nproject(box C)\nadd_library(box SHARED library.c)\nadd_executable(program main.c)\nfind_package(Threads REQUIRED)\ntarget_link_libraries(program box Threads::Threads)\n",
    );
    let build = folder.path().join("build");
    succeed(
        Command::new("cmake")
            .current_dir(folder.path())
            .env("CC", &driver)
            .env("XDG_CACHE_HOME", cache)
            .args(["-DCMAKE_BUILD_TYPE=Release", "-B"])
            .arg(&build),
    );
    succeed(
        Command::new("cmake")
            .env("XDG_CACHE_HOME", cache)
            .arg("--build")
            .arg(&build),
    );
    recovers(&build.join("program"), "CMake");
    write(
        folder.path(),
        "configure.ac",
        "AC_INIT([box], [1])\nAC_PROG_CC\nAC_CHECK_HEADERS([pthread.h])\nAC_CHECK_LIB([pthread], [pthread_create])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
    );
    write(
        folder.path(),
        "Makefile.in",
        "program: library.c main.c\n\t@CC@ @CFLAGS@ -pthread library.c main.c @LIBS@ -o program\n",
    );
    succeed(Command::new("autoconf").current_dir(folder.path()));
    let compiler = format!("{} cc", env!("CARGO_BIN_EXE_raddle"));
    succeed(
        Command::new("./configure")
            .current_dir(folder.path())
            .env("XDG_CACHE_HOME", cache)
            .arg(format!("CC={compiler}")),
    );
    succeed(
        Command::new("make")
            .current_dir(folder.path())
            .env("XDG_CACHE_HOME", cache),
    );
    recovers(&folder.path().join("program"), "autoconf");
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
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // `main` calls sigsetjmp and is therefore left alone; what fails is in functions of their own.
    let source = write(folder.path(), "awkward.c", AWKWARD);
    let program = folder.path().join("awkward");
    for level in ["-O0", "-O2"] {
        compile(
            "cc",
            &[level, "-pthread", &source, "-o", program.to_str().unwrap()],
        );
        let ended = run(&program, &[("RADDLE_HARDEN_RETRIES", "300")], LIMIT);
        let expected = "handler 7\nblocked 7\nchild 7\nwith its own fault handler 7\nits own fault at 123450\ngiven up at 16\nhandler is 1\n";
        assert_eq!(ended.stdout, expected, "{level}: {}", ended.stderr);
        assert_eq!(ended.status, Some(-11), "{level}: {}", ended.stderr);
    }
}

#[test]
fn a_finding_of_explore_is_fixed() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = write(
        folder.path(),
        "server.c",
        "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\nint *shared, *other, value = 80;\nstatic void *ready(void *unused) { usleep(3000); shared = &value; return unused; }\nint main(void)\n{\n    pthread_t thread;\n    pthread_create(&thread, 0, ready, 0);\n    int port = *shared;\n    pthread_join(thread, 0);\n    other = shared;\n    printf(\"%d %d\\n\", port, *other);\n    return 0;\n}\n",
    );
    let plain = folder.path().join("plain");
    succeed(
        Command::new("/usr/lib/llvm-22/bin/clang")
            .args(["-g", "-O1", "-pthread", "-isystem"])
            .arg(root().join("crates/harden-rt/rt"))
            .args([&source, "-o"])
            .arg(&plain),
    );
    let explored = raddle()
        .current_dir(folder.path())
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
    let finding = folder.path().join("finding.json");
    std::fs::write(&finding, &explored.stdout).unwrap();
    let report = folder.path().join("sites.jsonl");
    let fixed = folder.path().join("fixed");
    compile(
        "cc",
        &[
            "-O2",
            "-pthread",
            &format!("--harden-finding={}", finding.display()),
            &format!("--harden-report={}", report.display()),
            &source,
            "-o",
            fixed.to_str().unwrap(),
        ],
    );
    let shown = succeed(raddle().arg("harden").arg("--show").arg(&report));
    assert!(
        shown.contains("server.c:10: dereference in main: hardened")
            && shown.contains("dereference 1 of 1"),
        "{shown}"
    );
    let ended = run(&fixed, &[], LIMIT);
    assert_eq!(ended.stdout, "80 80\n", "{}", ended.stderr);
    assert!(ended.stderr.contains("server.c:10"), "{}", ended.stderr);
}
