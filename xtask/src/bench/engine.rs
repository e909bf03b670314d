//! `cargo xtask bench engine`: millions of instructions per second on integer kernels, slowdown of whole programs
//! against native, qemu-user, valgrind and `ThreadSanitizer` where installed, and executions per second from a snapshot.
//!
//! All times are CPU times, the best of a few repeats, so that other load on the machine matters little.
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::shell;

const REPEATS: usize = 3;

pub(crate) fn run() -> anyhow::Result<()> {
    let raddle = shell::release_build(None)?;
    let folder = shell::target_folder().join("bench-engine");
    std::fs::create_dir_all(&folder)?;
    kernels(&folder)?;
    restores(&folder)?;
    programs(&folder, &raddle)
}

fn kernels(folder: &Path) -> anyhow::Result<()> {
    let out = folder.join("kernels");
    let flags = "-O2 -fno-pic -no-pie -static -nostdlib -ffreestanding -mgeneral-regs-only -fno-tree-loop-distribute-patterns -fno-builtin -Wl,-Ttext=0x10000000";
    compile("kernels", &out, flags)?;
    println!("## Integer kernels, millions of instructions per CPU second\n");
    println!("| kernel | no observation | every access | every access with value |");
    println!("|---|---|---|---|");
    let mut columns: Vec<Vec<(String, f64)>> = Vec::new();
    let program = shell::release_example("raddle-x86", "kernels")?;
    for mode in ["none", "addr", "value"] {
        let output = Command::new(&program).arg(&out).arg(mode).output()?;
        ensure!(
            output.status.success(),
            "the kernels failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout)?;
        columns.push(text.lines().filter_map(mips).collect());
    }
    for (index, (name, _)) in columns[0].iter().enumerate() {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| format!("{:.0}", column[index].1))
            .collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    let means: Vec<String> = columns
        .iter()
        .map(|column| {
            format!(
                "**{:.0}**",
                geometric_mean(column.iter().map(|(_, value)| *value))
            )
        })
        .collect();
    println!("| **geometric mean** | {} |\n", means.join(" | "));
    Ok(())
}

/// A line `name steps seconds result`.
fn mips(line: &str) -> Option<(String, f64)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.trim_start_matches("k_").to_owned();
    let steps: f64 = words.next()?.parse().ok()?;
    let seconds: f64 = words.next()?.parse().ok()?;
    Some((name, steps / seconds / 1e6))
}

fn restores(folder: &Path) -> anyhow::Result<()> {
    let restorer = shell::release_example("raddle-linux", "restores")?;
    let out = folder.join("small_test");
    compile("small_test", &out, "-O2 -pthread")?;
    println!("## A small test from a snapshot, executions per CPU second\n");
    println!("| observation | executions/s | instructions each | pages restored each |");
    println!("|---|---|---|---|");
    for (mode, count) in [("none", "5000"), ("addr", "2000")] {
        let Executions {
            seconds,
            steps,
            pages,
        } = executions(&restorer, mode, count, &out, &[])?;
        println!(
            "| {mode} | {:.0} | {steps:.0} | {pages:.0} |",
            1.0 / seconds
        );
    }
    let out = folder.join("dirty_pages");
    compile("dirty_pages", &out, "-O2 -pthread")?;
    println!("\n## A test that writes to many pages, from a snapshot\n");
    println!("| pages written | pages restored each | microseconds each | per page restored |");
    println!("|---|---|---|---|");
    for written in ["1", "10", "100", "1000", "4000"] {
        let Executions { seconds, pages, .. } =
            executions(&restorer, "none", "500", &out, &[written])?;
        println!(
            "| {written} | {pages:.0} | {:.0} | {:.2} |",
            seconds * 1e6,
            seconds * 1e6 / pages
        );
    }
    println!();
    Ok(())
}

/// Averages of one execution.
struct Executions {
    seconds: f64,
    steps: f64,
    pages: f64,
}

fn executions(
    restorer: &Path,
    mode: &str,
    count: &str,
    program: &Path,
    arguments: &[&str],
) -> anyhow::Result<Executions> {
    let output = Command::new(restorer)
        .args([mode, count])
        .arg(program)
        .args(arguments)
        .output()?;
    ensure!(
        output.status.success(),
        "restoring failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    let words: Vec<f64> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [executions, seconds, steps, pages] = words[..] else {
        anyhow::bail!("unexpected output: {text}")
    };
    Ok(Executions {
        seconds: seconds / executions,
        steps,
        pages,
    })
}

/// A program to measure.
struct Workload {
    name: &'static str,
    command: Vec<String>,
    /// The same program built with ThreadSanitizer, where we have the source and the compiler has the tool.
    sanitized: Option<Vec<String>>,
}

fn workloads(folder: &Path) -> anyhow::Result<Vec<Workload>> {
    let input = folder.join("input");
    let bash = std::fs::read("/bin/bash").context("a file to compress")?;
    std::fs::write(&input, bash.repeat(4))?;
    let mut workloads = Vec::new();
    for name in ["mutex_counter", "quicksort", "matrix", "hash_table"] {
        let out = folder.join(name);
        compile(name, &out, "-O2 -pthread")?;
        let sanitized = folder.join(format!("{name}_tsan"));
        let has_tool = compile(name, &sanitized, "-O2 -pthread -fsanitize=thread").is_ok();
        workloads.push(Workload {
            name,
            command: vec![out.to_string_lossy().into_owned()],
            sanitized: has_tool.then(|| vec![sanitized.to_string_lossy().into_owned()]),
        });
    }
    let input = input.to_string_lossy().into_owned();
    let script = "create table t(a integer primary key, b text); with recursive c(x) as (select 1 union all select x + 1 from c where x < 60000) insert into t select x, hex(x * x) from c; create index i on t(b); select count(*), max(b) from t where b > '5'; select sum(length(b)) from t;";
    let packaged = [
        (
            "pbzip2 -p2",
            words(&["/usr/bin/pbzip2", "-p2", "-k", "-c", &input]),
        ),
        ("sqlite3", words(&["/usr/bin/sqlite3", ":memory:", script])),
        (
            "xz -T2 -3",
            words(&["/usr/bin/xz", "-T2", "-3", "-k", "-c", &input]),
        ),
    ];
    workloads.extend(packaged.map(without_source));
    workloads.extend(vector_code(folder)?.map(without_source));
    Ok(workloads)
}

/// Digests, ciphers and others that live on rotations and vector registers, of a file that takes them long enough.
fn vector_code(folder: &Path) -> anyhow::Result<[(&'static str, Vec<String>); 10]> {
    let input = folder.join("input-large");
    std::fs::write(&input, std::fs::read("/bin/bash")?.repeat(16))?;
    let input = input.to_string_lossy().into_owned();
    let digest = |name: &str| words(&["/usr/bin/openssl", "dgst", name, &input]);
    let cipher = |name: &str| {
        let pass = ["-pass", "pass:raddle", "-iter", "1", "-nosalt"];
        let command = ["/usr/bin/openssl", "enc", name, "-in", &input];
        words(&[&command[..], &pass].concat())
    };
    let python = "print(sum(hash((i, str(i))) & 7 for i in range(200000)))";
    Ok([
        ("openssl md5", digest("-md5")),
        ("openssl sha1", digest("-sha1")),
        ("openssl sha256", digest("-sha256")),
        ("openssl sha512", digest("-sha512")),
        ("openssl aes-128-cbc", cipher("-aes-128-cbc")),
        ("openssl chacha20", cipher("-chacha20")),
        (
            "zstd -3",
            words(&["/usr/bin/zstd", "-3", "-q", "-c", &input]),
        ),
        ("lz4", words(&["/usr/bin/lz4", "-q", "-c", &input])),
        (
            "gcc -O2",
            words(&[
                "/usr/bin/gcc",
                "-O2",
                "-S",
                "-o",
                "/dev/null",
                "bench/programs/hash_table.c",
            ]),
        ),
        ("python3", words(&["/usr/bin/python3", "-c", python])),
    ])
}

fn without_source((name, command): (&'static str, Vec<String>)) -> Workload {
    Workload {
        name,
        command,
        sanitized: None,
    }
}

fn programs(folder: &Path, raddle: &Path) -> anyhow::Result<()> {
    let workloads = workloads(folder)?;
    let raddle = raddle.display().to_string();
    let peers: Vec<(&str, Vec<String>)> = [
        ("raddle", words(&[&raddle, "run", "--"])),
        ("qemu-user", words(&["/usr/bin/qemu-x86_64"])),
        (
            "valgrind none",
            words(&["/usr/bin/valgrind", "-q", "--tool=none"]),
        ),
    ]
    .into_iter()
    .filter(|(_, command)| Path::new(&command[0]).exists())
    .collect();
    println!("## Whole programs, CPU time as a multiple of native\n");
    let names: Vec<&str> = peers.iter().map(|(name, _)| *name).collect();
    println!("| program | native s | {} | TSan |", names.join(" | "));
    println!("|---|---|{}---|", "---|".repeat(peers.len()));
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); peers.len()];
    for workload in &workloads {
        let command = &workload.command;
        if !Path::new(&command[0]).exists() {
            let cells = vec!["-"; peers.len() + 1].join(" | ");
            println!("| {} | not installed | {cells} |", workload.name);
            continue;
        }
        let native = best_time(&[], command)?;
        let mut cells = Vec::new();
        for ((_, prefix), column) in peers.iter().zip(&mut ratios) {
            let ratio = best_time(prefix, command)? / native;
            column.push(ratio);
            cells.push(format!("{ratio:.1}x"));
        }
        cells.push(match &workload.sanitized {
            Some(command) => format!("{:.1}x", best_time(&[], command)? / native),
            None => "-".into(),
        });
        println!(
            "| {} | {native:.3} | {} |",
            workload.name,
            cells.join(" | ")
        );
    }
    let means: Vec<String> = ratios
        .iter()
        .map(|column| format!("**{:.1}x**", geometric_mean(column.iter().copied())))
        .collect();
    println!("| **geometric mean** | | {} | |", means.join(" | "));
    Ok(())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn compile(name: &str, out: &Path, flags: &str) -> anyhow::Result<()> {
    let source = format!("bench/programs/{name}.c");
    let mut arguments: Vec<&str> = flags.split_whitespace().collect();
    let out = out.to_string_lossy();
    arguments.extend(["-o", &out, &source]);
    shell::run("gcc", &arguments)
}

/// CPU seconds (user and system) of the fastest of a few runs.
fn best_time(prefix: &[String], command: &[String]) -> anyhow::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        // Bash knows the CPU time of its children; `/usr/bin/time` is not everywhere.
        let output = Command::new("bash")
            .args([
                "-c",
                "TIMEFORMAT='%U %S'; time \"$@\" >/dev/null 2>&1",
                "bash",
            ])
            .args(prefix)
            .args(command)
            .stdin(Stdio::null())
            .output()?;
        ensure!(output.status.success(), "`{}` failed", command.join(" "));
        let text = String::from_utf8(output.stderr)?;
        let seconds: f64 = text
            .split_whitespace()
            .filter_map(|word| word.parse::<f64>().ok())
            .sum();
        best = best.min(seconds);
    }
    Ok(best.max(0.001))
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| {
        (sum + value.ln(), count + 1.0)
    });
    (sum / count).exp()
}
