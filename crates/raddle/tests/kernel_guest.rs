//! `raddle kernel` with guests of all sorts: file systems in RAM, generated tests, programs of the user, and guests
//! that cannot work.

use std::path::Path;
use std::process::Command;

use raddle_kernel::world::KernelWorld;
use raddle_pc::boot::{BootConfig, BootImage, DEFAULT_COMMAND_LINE, KernelImage};
use raddle_testkit::kernel::{CORPUS, kernel, packaged, raddle};
use tempfile::TempDir;

const EXT4: [&str; 6] = [
    "--module",
    "brd rd_nr=1 rd_size=8192",
    "--program",
    "/sbin/mke2fs",
    "--program",
    "/sbin/e2fsck",
];
const BTRFS: [&str; 8] = [
    "--module",
    "brd rd_nr=1 rd_size=131072",
    "--module",
    "btrfs",
    "--program",
    "/sbin/mkfs.btrfs",
    "--program",
    "/usr/bin/btrfs",
];

/// A test's own folder, with a cache of its own: no other test has these machines.
struct Guest {
    folder: TempDir,
}

impl Guest {
    fn new() -> Self {
        Self {
            folder: TempDir::new().expect("a folder"),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), content).expect("it can be written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect("it was written")
    }

    /// The name of the only recording.
    fn recording(&self) -> String {
        std::fs::read_dir(self.path())
            .expect("the folder exists")
            .map(|entry| entry.expect("the folder can be read").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .find(|name| name.ends_with(".kraddle"))
            .expect("a recording was written")
    }

    /// Replays the only recording, with a trace in `trace`.
    fn replay(&self, extra: &[&str]) -> (i32, String) {
        let mut arguments = vec!["kernel", "replay", "--cache", "cache", "--trace", "trace"];
        arguments.extend(extra);
        let recording = self.recording();
        arguments.push(&recording);
        raddle(self.path(), &arguments)
    }

    fn boot(&self, kernel: &Path, extra: &[&str]) -> (i32, String) {
        let mut arguments = vec!["kernel", "boot", "--quiet", "--cache", "cache", "--kernel"];
        arguments.push(kernel.to_str().expect("a path"));
        arguments.extend(extra);
        raddle(self.path(), &arguments)
    }

    fn explore(&self, schedules: &str, extra: &[&str]) -> (i32, String) {
        self.explore_on(&kernel(), schedules, extra)
    }

    fn explore_on(&self, kernel: &Path, schedules: &str, extra: &[&str]) -> (i32, String) {
        let mut arguments = vec!["kernel", "explore", "--cache", "cache", "--time", "600"];
        arguments.extend(["-j1", "--schedules", schedules, "--kernel"]);
        arguments.push(kernel.to_str().expect("a path"));
        arguments.extend(extra);
        raddle(self.path(), &arguments)
    }
}

#[test]
fn ext4_in_ram_is_checked_after_each_schedule() {
    let guest = Guest::new();
    let test = format!("{CORPUS}/fs/ext4-rename-unlink.ktest");
    let sound = [&EXT4[..], &[test.as_str()]].concat();
    let (code, text) = guest.explore("8", &sound);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("explored 8 schedules"), "{text}");
    // The checker must be able to say no.
    let source = std::fs::read_to_string(&test).expect("the corpus is there");
    let spoilt = source
        .replace("setup:\n", "setup:\n    buffer zeros 4096\n")
        .replace(
            "    run(\"/sbin/e2fsck\"",
            "    r = open(\"/dev/ram0\", O_RDWR, 0)\n    pwrite64(r, zeros, 4096, 0) == 4096\n    fsync(r) == 0\n    run(\"/sbin/e2fsck\"",
        );
    guest.write("spoilt.ktest", spoilt);
    let (code, text) = guest.explore("2", &[&EXT4[..], &["--concise", "spoilt.ktest"]].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("e2fsck"), "{text}");
    // Modules of the boot have names too.
    let (code, text) = guest.replay(&[]);
    assert_eq!(code, 1, "{text}");
    let trace = guest.read("trace");
    for function in ["ext4_writepages", "brd_submit_bio"] {
        assert!(trace.contains(function), "no {function} in:\n{trace}");
    }
}

/// Nothing is set for a kernel's version: what serves Debian's 6.1 serves its 6.12, whose modules are compressed.
#[test]
fn the_same_options_serve_another_kernel() {
    let guest = Guest::new();
    let kernel = packaged("kernel-6.12");
    let ext4 = format!("{CORPUS}/fs/ext4-rename-unlink.ktest");
    let (code, text) = guest.explore_on(&kernel, "4", &[&EXT4[..], &[ext4.as_str()]].concat());
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("explored 4 schedules"), "{text}");
    let calls = format!("{CORPUS}/calls/epoll-add-add.ktest");
    let (code, text) = guest.explore_on(&kernel, "60", &["--races", &calls]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("8 bytes of loop_check_gen"), "{text}");
}

/// ext4 of Debian's 6.1 writes to a directory that is renamed without its lock; 6.12 does not.
#[test]
fn a_bug_of_a_stock_kernel_is_found_and_is_gone_where_it_was_mended() {
    let guest = Guest::new();
    let test = format!("{CORPUS}/found/ext4-rename-create.ktest");
    let options = [&EXT4[..4], &["--until-found", test.as_str()]].concat();
    // A later package may have the fix.
    if kernel().ends_with("vmlinuz-6.1.0-54-cloud-amd64") {
        let (code, text) = guest.explore("1000", &options);
        assert_eq!(code, 1, "{text}");
        assert!(
            text.contains("`mkdir(\"/mnt/new/more\", 0755) == 0` gave -74"),
            "{text}"
        );
        let (code, text) = guest.replay(&["--console"]);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("checksumming directory block 0"), "{text}");
    }
    let (code, text) = guest.explore_on(&packaged("kernel-6.12"), "400", &options);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn btrfs_in_ram_is_checked_after_each_schedule() {
    let guest = Guest::new();
    let test = format!("{CORPUS}/fs/btrfs-snapshot-write.ktest");
    let (code, text) = guest.explore("3", &[&BTRFS[..], &[test.as_str()]].concat());
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("explored 3 schedules"), "{text}");
}

#[test]
fn generated_tests_are_the_same_for_the_same_seed_and_run() {
    let guest = Guest::new();
    let generate = |folder: &str, seed: &str| {
        let arguments = ["kernel", "generate", "--count", "3", "--seed", seed, folder];
        let (code, text) = raddle(guest.path(), &arguments);
        assert_eq!(code, 0, "{text}");
        (0..3)
            .map(|number| {
                let name = format!("{folder}/tmpfs-{seed}-{number:05}.ktest");
                std::fs::read_to_string(guest.path().join(name)).expect("a test was written")
            })
            .collect::<Vec<_>>()
    };
    let first = generate("a", "5");
    assert_eq!(first, generate("b", "5"));
    assert_ne!(first, generate("c", "6"));
    let tests = [0, 1, 2].map(|number| format!("a/tmpfs-5-{number:05}.ktest"));
    let (code, text) = guest.explore("9", &tests.each_ref().map(String::as_str));
    assert_eq!(code, 0, "{text}");
    assert_eq!(text.matches("explored 9 schedules").count(), 3, "{text}");
}

#[test]
fn a_boot_that_fails_says_why() {
    let guest = Guest::new();
    let kernel = kernel();
    let (code, text) = guest.boot(&kernel, &["--append", "nosmp"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("without SMP"), "{text}");
    let (code, text) = guest.boot(&kernel, &["--append", "rdinit=/nowhere"]);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("the kernel panicked while booting: VFS"),
        "{text}"
    );
    assert!(text.contains("the end of its console"), "{text}");
    let (code, text) = guest.boot(&kernel, &["--module", "nothing_of_the_sort"]);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("there is no module `nothing_of_the_sort`"),
        "{text}"
    );
    let (code, text) = guest.boot(&kernel, &["--program", "/etc/passwd"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("is no x86-64 ELF program"), "{text}");
}

#[test]
fn a_compression_that_is_lacking_is_named() {
    let guest = Guest::new();
    let mut image = std::fs::read(kernel()).expect("the kernel can be read");
    let word = |at: usize| {
        let bytes = image[at..at + 4].try_into().expect("four bytes");
        usize::try_from(u32::from_le_bytes(bytes)).expect("an offset")
    };
    // Fields of the boot protocol: where the packed kernel begins, counted from the end of the set-up sectors.
    let payload = (usize::from(image[0x1F1]) + 1) * 512 + word(0x248);
    let lzo = [0x89, 0x4C, 0x5A, 0x4F, 0x00, 0x0D, 0x0A, 0x1A, 0x0A];
    image[payload..payload + lzo.len()].copy_from_slice(&lzo);
    guest.write("lzo", &image);
    let (code, text) = guest.boot(&guest.path().join("lzo"), &[]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("lzo"), "{text}");
    image.truncate(image.len() / 2);
    guest.write("half", &image);
    let (code, text) = guest.boot(&guest.path().join("half"), &[]);
    assert!(code == 2 || code == 3, "{text}");
    assert!(text.contains("cannot boot"), "{text}");
}

#[test]
fn a_guest_without_memory_is_told_to_take_more() {
    let guest = Guest::new();
    // One fits, two do not; the second one by the set-up, and by a thread.
    let take = "    mmap(0, 0x4000000, 3, 0x8022, -1, 0)\n";
    guest.write(
        "setup.ktest",
        format!("setup:\n{take}{take}thread a:\n    getpid()\nthread b:\n    getpid()\n"),
    );
    guest.write(
        "thread.ktest",
        format!("setup:\n{take}thread a:\n{take}thread b:\n    getpid()\n"),
    );
    for test in ["setup.ktest", "thread.ktest"] {
        let (code, text) = guest.explore("2", &["--memory", "128", test]);
        assert_eq!(code, 2, "{text}");
        let told = format!("{test}: the guest ran out of memory");
        assert!(text.contains(&told), "{text}");
        assert!(text.contains("--memory"), "{text}");
    }
}

#[test]
fn memory_that_suffices_in_some_orders_only_is_a_finding() {
    let guest = Guest::new();
    // Either of the two fits into what the set-up leaves, both at once do not.
    let take = |size: &str| format!("mmap(0, {size}, 3, 0x8022, -1, 0)\n");
    let thread = |name: &str| {
        let mapped = take("0xc00000");
        format!("thread {name}:\n    a = {mapped}    munmap(a, 0xc00000) == 0\n")
    };
    guest.write(
        "both.ktest",
        format!(
            "setup:\n    {}{}{}",
            take("0x2c00000"),
            thread("first"),
            thread("second")
        ),
    );
    let (code, text) = guest.explore("4", &["--memory", "128", "both.ktest"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("Kernel panic - not syncing: Out of memory"),
        "{text}"
    );
}

#[test]
fn four_processors() {
    let guest = Guest::new();
    let threads: Vec<String> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| format!("thread {name}:\n    write(p.i32[1], \"{name}\", 1) == 1\n"))
        .collect();
    guest.write(
        "four.ktest",
        format!(
            "setup:\n    buffer p 8\n    buffer b 8\n    pipe2(p, 0) == 0\n{}check:\n    read(p.i32[0], b, 8) == 4\n",
            threads.concat()
        ),
    );
    let (code, text) = guest.explore("9", &["--cpus", "4", "four.ktest"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("explored 9 schedules"), "{text}");
}

/// Boots an initial file system and gives the agent no test, as a machine that knows nothing of its calls; the end of
/// the console.
fn boot_without_answers(archive: &Path) -> String {
    let kernel = std::fs::read(kernel()).expect("the kernel can be read");
    let image = KernelImage::parse(&kernel).expect("a kernel");
    let config = BootConfig {
        cpus: 2,
        memory: 256 << 20,
        command_line: DEFAULT_COMMAND_LINE.to_owned(),
        seed: 1,
    };
    let archive = std::fs::read(archive).expect("it was written");
    let layout = BootImage::new(&image, &archive, &config).expect("it fits");
    let mut world =
        KernelWorld::boot(&layout, config.cpus, config.memory, &mut |_| ()).expect("it boots");
    // The agent restarts the machine when it is through, and this machine has nothing to start again from.
    let ended = world.begin_test(&[], u64::MAX);
    assert!(ended.is_err(), "no thread came to a start line");
    world.console().text()
}

#[test]
fn a_test_runs_on_a_machine_that_does_not_answer() {
    let guest = Guest::new();
    // Ten rounds of each thread, and the check counts; its second line is wrong.
    guest.write(
        "pipe.ktest",
        "setup:\n    buffer p 8\n    buffer b 64\n    pipe2(p, 0) == 0\nthread a:\n    write(p.i32[1], \"a\", 1) == 1\n\
         thread b:\n    write(p.i32[1], \"b\", 1) == 1\ncheck:\n    read(p.i32[0], b, 64) == 20\n    getpid() == 0\n",
    );
    let kernel = kernel();
    let arguments = ["kernel", "initramfs", "--rounds", "10", "--kernel"];
    let rest = ["--output", "pipe.cpio", "pipe.ktest"];
    let arguments = [
        &arguments[..],
        &[kernel.to_str().expect("a path")],
        &rest[..],
    ]
    .concat();
    let (code, text) = raddle(guest.path(), &arguments);
    assert_eq!(code, 0, "{text}");
    let console = boot_without_answers(&guest.path().join("pipe.cpio"));
    let told = "raddle: the test ended: 1 expectations failed";
    assert!(console.contains(told), "{console}");
}

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include "raddle.h"

static int file;
static pthread_barrier_t barrier;

static void *work(void *argument)
{
    int number = (int)(long)argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(number, &set);
    sched_setaffinity(0, sizeof set, &set);
    pthread_barrier_wait(&barrier);
    raddle_start(number);
    long value = 0;
    pread(file, &value, sizeof value, 0);
    value++;
    pwrite(file, &value, sizeof value, 0);
    raddle_end(number);
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    long value = 0;
    file = open("/tmp/counter", O_CREAT | O_RDWR, 0600);
    pthread_barrier_init(&barrier, 0, 2);
    raddle_threads(2);
    for (long n = 0; n < 2; n++)
        pthread_create(&threads[n], 0, work, (void *)n);
    for (int n = 0; n < 2; n++)
        pthread_join(threads[n], 0);
    pread(file, &value, sizeof value, 0);
    if (value != 2)
        raddle_failed("a step was lost", 15);
    raddle_finish(0);
    return 0;
}
"#;

/// Compiles a program that brings its own test.
fn compile(guest: &Guest, source: &str) {
    let header = ["kernel", "new-test", "--template", "raddle.h", "raddle.h"];
    let (code, text) = raddle(guest.path(), &header);
    assert_eq!(code, 0, "{text}");
    guest.write("program.c", source);
    let status = Command::new("gcc")
        .current_dir(guest.path())
        .args(["-O1", "-static", "-pthread", "-o", "program", "program.c"])
        .status()
        .expect("gcc is installed");
    assert!(status.success(), "the program compiles");
}

/// The threads of a program of the user meet in its own memory, too.
#[test]
fn accesses_in_user_space_are_decision_points() {
    let guest = Guest::new();
    let (calls, in_memory) = (
        "pread(file, &value, sizeof value, 0);\n    value++;\n    pwrite(file, &value, sizeof value, 0);",
        "value = shared;\n    shared = value + 1;",
    );
    assert!(PROGRAM.contains(calls));
    let source = PROGRAM
        .replace(calls, in_memory)
        .replace(
            "static int file;",
            "static int file;\nstatic volatile long shared;",
        )
        .replace("pread(file, &value, sizeof value, 0);", "value = shared;");
    compile(&guest, &source);
    let (code, text) = guest.explore("500", &["--until-found", "--agent-program", "program"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("a step was lost"), "{text}");
    assert!(text.contains("user code"), "{text}");
    let (code, text) = guest.replay(&[]);
    assert_eq!(code, 1, "{text}");
}

#[test]
fn a_program_of_the_user_brings_its_own_test() {
    let guest = Guest::new();
    compile(&guest, PROGRAM);
    let (code, text) = guest.explore("500", &["--until-found", "--agent-program", "program"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("a step was lost"), "{text}");
    let (code, text) = guest.replay(&["--call-graph", "graph.dot"]);
    assert_eq!(code, 1, "{text}");
    let trace = guest.read("trace");
    for word in ["CPU 0", "CPU 1", "vfs_read", "vfs_write"] {
        assert!(trace.contains(word), "no {word} in:\n{trace}");
    }
    let graph = guest.read("graph.dot");
    let call =
        |line: &str| line.contains("vfs_write\" -> ") || line.contains(":vfs_write\" [label");
    assert!(
        graph.starts_with("digraph") && graph.lines().any(call),
        "{graph}"
    );
    // The recording is named after the program, and a bundle takes it along.
    let recording = guest.recording();
    assert!(recording.starts_with("program-KC-"), "{recording}");
    let arguments = ["kernel", "bundle", &recording, "--output", "bundle"];
    let (code, text) = raddle(guest.path(), &arguments);
    assert_eq!(code, 0, "{text}");
    std::fs::remove_file(guest.path().join("program")).expect("it is there");
    let arguments = ["replay", "--sealed", "bundle", "--cache", "cache"];
    let (code, text) = raddle(guest.path(), &arguments);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("the same run as recorded, bit for bit"),
        "{text}"
    );
    // Without the program there is nothing to bundle, and nothing else is taken for it.
    let arguments = ["kernel", "bundle", &recording, "--output", "other"];
    let (code, text) = raddle(guest.path(), &arguments);
    assert_eq!(code, 2, "{text}");
    assert!(!guest.path().join("other").exists(), "{text}");
}
