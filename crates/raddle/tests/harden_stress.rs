//! Random programs with nested regions and high register pressure, hardened at every optimisation level and run with
//! checks that fail at random: the results must be those of the plain build.
//!
//! Each program has one thread and one outcome. With failures injected at one check in ten, a wrong re-execution that
//! affects one in a hundred regions would be missed by one program with a probability below 1 in 10^5.
//! Regions between two locks hold guarded writes, calls of helpers that take locks, allocate or write, private buffers and
//! volatile locals, and critical sections and allocations that begin and end there; up to four locks are held; a lock in a
//! callee fails with its caller's lock held, so that log and pads are exercised.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a surprise ends the test"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use raddle_stdx::Prng;
use raddle_testkit::harden::{Workshop, number, run};

/// Programs per level; `RADDLE_STRESS_PROGRAMS` asks for more.
const PROGRAMS: usize = 6;

const HEAD: &str = r#"#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <raddle_oracle.h>
struct node { struct node *next; long v; long a[4]; };
struct node nodes[8];
struct node *head;
long g[8];
volatile long yes = 1;
pthread_mutex_t m1 = PTHREAD_MUTEX_INITIALIZER, m2 = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t aside = PTHREAD_MUTEX_INITIALIZER;
static long guarded[6], aside_value = 3;
static short guarded_short;
__attribute__((noinline)) static long peeks(long value)
{
    pthread_mutex_lock(&aside);
    long seen = value < 0 ? 1 : aside_value + value;
    pthread_mutex_unlock(&aside);
    return seen;
}
__attribute__((noinline)) static void take_outer(void)
{
    pthread_mutex_lock(&outer);
}
__attribute__((noinline)) static void write_guarded(long value)
{
    guarded[2] = guarded[3] * 3 + value;
    guarded_short += (short)value;
}
__attribute__((noinline)) static long *boxed(long value)
{
    long *box = (long *)malloc(24);
    if (box == 0)
        abort();
    box[1] = value;
    return box;
}
__attribute__((noinline)) static long reads_only(long value)
{
    sched_yield();
    return value < 3 ? guarded[1] : reads_only(value / 2) + strlen("abc");
}
__attribute__((noinline)) static long below(long value)
{
    long before = guarded[0];
    guarded[4] ^= value;
    pthread_mutex_lock(&inner);
    guarded[5] += before + value;
    pthread_mutex_unlock(&inner);
    return before ^ guarded[5];
}
__attribute__((noinline)) static long far_below(long value)
{
    long kept[3] = {value, value * 2, 3};
    guarded[1] += kept[value & 1];
    pthread_rwlock_wrlock(&shared);
    long result = below(kept[1]);
    pthread_rwlock_unlock(&shared);
    return result + kept[2];
}
"#;

const MAIN: &str = r#"
int main(void)
{
    for (int i = 0; i < 8; i++) {
        nodes[i].next = &nodes[(i + 3) % 8];
        nodes[i].v = i * 7 + 1;
        for (int j = 0; j < 4; j++)
            nodes[i].a[j] = i ^ (j * 5);
        g[i] = i * i;
    }
    head = &nodes[2];
    long sum = 0;
    for (int round = 0; round < 20; round++) {
        sum = sum * 31 + f5(head, round);
        sum ^= f4(head, round) + f3(head, round) * 3;
        sum -= f2(head, round) ^ f1(head, round);
        head = head->next;
    }
    printf("%ld", sum);
    for (int i = 0; i < 8; i++)
        printf(" %ld/%ld", g[i], nodes[i].v);
    pthread_mutex_lock(&outer);
    for (int i = 0; i < 6; i++)
        printf(" %ld", guarded[i]);
    printf(" %d %ld", guarded_short, peeks(0));
    pthread_mutex_unlock(&outer);
    printf("\n");
    return 0;
}
"#;

struct Writer {
    random: Prng,
    text: String,
    depth: usize,
    function: usize,
    locked: usize,
}

impl Writer {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn local(&mut self) -> String {
        format!("l{}", self.below(12))
    }

    fn pointer(&mut self) -> String {
        format!("p{}", self.below(3))
    }

    fn value(&mut self) -> String {
        match self.below(9) {
            0..4 => self.local(),
            4 => format!("g[{}]", self.below(8)),
            5 => format!("{}->v", self.pointer()),
            6 => format!("{}->next->a[{}]", self.pointer(), self.below(4)),
            7 => format!("buf[{}]", self.below(6)),
            _ => "head->v".into(),
        }
    }

    fn expression(&mut self) -> String {
        let (a, b) = (self.value(), self.value());
        let constant = self.below(100);
        match self.below(5) {
            0 => format!("{a} + {b} * 3"),
            1 => format!("({a} ^ {b}) - {constant}"),
            2 => format!("{a} & ({b} + {constant})"),
            3 => format!("{a} - {b} + head->next->v"),
            _ => format!("({a} >> 1) + {b}"),
        }
    }

    fn line(&mut self, line: &str) {
        let indent = "    ".repeat(self.depth + 1);
        let _infallible = writeln!(self.text, "{indent}{line}");
    }

    fn block(&mut self, opening: &str, statements: u64) {
        self.line(opening);
        self.depth += 1;
        for _ in 0..statements {
            self.statement();
        }
        self.depth -= 1;
        self.line("}");
    }

    fn nested(&mut self) {
        let condition = self.expression();
        match self.below(4) {
            0 => self.block(&format!("if (({condition}) & 1) {{"), 3),
            1 => {
                self.block(&format!("if (({condition}) & 2) {{"), 2);
                self.block("else {", 2);
            }
            2 => {
                let count = self.below(4) + 1;
                let name = format!("i{}", self.depth);
                self.block(
                    &format!("for (int {name} = 0; {name} < {count}; {name}++) {{"),
                    3,
                );
            }
            _ => {
                self.line(&format!("switch (({condition}) & 3) {{"));
                for case in 0..3 {
                    self.block(&format!("case {case}: {{"), 2);
                    self.line("break;");
                }
                self.line("}");
            }
        }
    }

    fn locked_region(&mut self) {
        self.line("pthread_mutex_lock(&m1);");
        self.locked += 1;
        let local = self.local();
        let value = self.expression();
        self.line(&format!("{local} += {value};"));
        self.line("raddle_oracle(yes);");
        self.line("pthread_mutex_lock(&m2);");
        let local = self.local();
        let value = self.expression();
        self.line(&format!("{local} ^= {value};"));
        self.line("raddle_oracle(yes);");
        if self.below(2) == 0 {
            self.line("g[1] += l0;");
        }
        self.line("pthread_mutex_unlock(&m2);");
        self.line("pthread_mutex_unlock(&m1);");
        self.locked -= 1;
    }

    /// Two or three locks with everything between them that can be taken back.
    fn guarded_region(&mut self) {
        self.locked += 1;
        let taking = ["take_outer();", "pthread_mutex_lock(&outer);"];
        let which = usize::try_from(self.below(2)).unwrap();
        self.line("{");
        self.line("char text[24] = \"none\"; volatile long slow = l1; long *box = 0;");
        self.line(taking[which]);
        for _ in 0..self.below(4) + 1 {
            self.between_locks();
        }
        match self.below(5) {
            4 => {
                self.line("pthread_mutex_lock(&inner);");
                self.between_locks();
                self.line("pthread_rwlock_wrlock(&shared); guarded[4] += l1;");
                self.line("pthread_mutex_lock(&aside); aside_value ^= l2 & 31; l8 += aside_value;");
                self.line("pthread_mutex_unlock(&aside); pthread_mutex_unlock(&inner);");
                self.line("pthread_rwlock_unlock(&shared);");
            }
            0 => {
                self.line("pthread_mutex_lock(&inner);");
                self.between_locks();
                self.line("pthread_rwlock_rdlock(&shared);");
                self.line("guarded[3] -= l3; pthread_rwlock_unlock(&shared);");
                self.line("pthread_mutex_unlock(&inner);");
            }
            1 => self.line(
                "pthread_rwlock_wrlock(&shared); guarded[0] += l5; pthread_rwlock_unlock(&shared);",
            ),
            2 => self.line("l6 += below(l2);"),
            _ => self.line("l7 ^= far_below(l4 & 255);"),
        }
        self.line(
            "l2 += text[1] + slow + (box ? box[1] : 5) + guarded[0] + guarded_short; free(box);",
        );
        self.line("pthread_mutex_unlock(&outer);");
        self.line("}");
        self.locked -= 1;
    }

    fn between_locks(&mut self) {
        let (local, value) = (self.local(), self.expression());
        let index = self.below(6);
        let line = match self.below(16) {
            11 => format!(
                "pthread_mutex_lock(&aside); {local} += guarded[{index}] + aside_value; pthread_mutex_unlock(&aside);"
            ),
            12 => format!("{local} += peeks(({value}) & 7);"),
            13 => format!(
                "{{ long *t = (long *)malloc(16); if (!t) abort(); t[1] = {value}; {local} ^= t[1]; free(t); }}"
            ),
            14 => format!(
                "for (int i = 0; i < 3; i++) {{ pthread_mutex_lock(&aside); {local} += aside_value * i; pthread_mutex_unlock(&aside); }}"
            ),
            15 => format!(
                "pthread_mutex_lock(&aside); aside_value += {local} & 3; pthread_mutex_unlock(&aside);"
            ),
            0 => format!("guarded[{index}] += {value};"),
            1 => format!("guarded[({local} & 7) % 6] = {value};"),
            2 => format!("write_guarded({local});"),
            3 => format!("if (!box) box = boxed({value});"),
            4 => format!("snprintf(text, sizeof text, \"%ld\", {value});"),
            5 => format!("slow += {value};"),
            6 => format!("{local} += reads_only({local} & 15);"),
            7 => format!("memcpy(text, &{local}, sizeof {local}); text[7] &= 63;"),
            8 => format!("buf[({local} & 7) % 6] += {value};"),
            9 => format!("if (({value}) & 1) guarded[{index}] ^= {local}; else guarded_short++;"),
            _ => format!("g[{index}] += {local}; head->a[1] ^= {value};"),
        };
        self.line(&line);
    }

    fn allocation(&mut self) {
        let (local, value) = (self.local(), self.expression());
        self.line(&format!(
            "{{ long *q = (long *)malloc(32); if (!q) abort(); q[1] = {value};"
        ));
        self.line("raddle_oracle(yes);");
        self.line(&format!("{local} += q[1] * 3; free(q); }}"));
    }

    fn statement(&mut self) {
        let (local, pointer, value) = (self.local(), self.pointer(), self.expression());
        match self.below(18) {
            0..4 => self.line(&format!("{local} = {value};")),
            4 => self.line(&format!("{pointer} = head->next;")),
            5 => self.line(&format!("{pointer} = {pointer}->next->next;")),
            6 => {
                let index = self.below(8);
                self.line(&format!("g[{index}] = {local};"));
            }
            7 => {
                let index = self.below(6);
                self.line(&format!("buf[{index}] = {value};"));
            }
            8 => self.line(&format!("buf[({local} & 7) % 6] += {value};")),
            9 | 10 => self.line("raddle_oracle(yes);"),
            11 => self.line(&format!("assert({pointer}->next != 0);")),
            12 if self.depth < 3 => self.nested(),
            13 if self.locked == 0 && self.depth < 3 => self.locked_region(),
            14 if self.depth < 3 => self.allocation(),
            15 if self.function > 0 && self.depth < 2 => {
                let callee = self.random.below(u64::try_from(self.function).unwrap());
                self.line(&format!("{local} += f{callee}({pointer}, {local} & 15);"));
            }
            16 if self.locked == 0 && self.depth < 3 => self.guarded_region(),
            _ => self.line(&format!("{local} += {value};")),
        }
    }

    fn function(&mut self, number: usize) {
        self.function = number;
        let _infallible = writeln!(
            self.text,
            "__attribute__((noinline)) static long f{number}(struct node *p0, long l0)\n{{"
        );
        // The first function only follows its parameter, so that its callers must be re-executed.
        if number == 0 {
            self.line("long x = p0->v + l0;");
            self.line("return x ^ p0->a[l0 & 3];");
            self.text.push_str("}\n");
            return;
        }
        self.line("long buf[6] = {1, 2, 3, 4, 5, 6};");
        self.line("struct node *p1 = head, *p2 = p0->next;");
        for local in 1..12 {
            let index = local % 8;
            self.line(&format!("long l{local} = g[{index}] + {local};"));
        }
        for _ in 0..14 {
            self.statement();
        }
        self.guarded_region();
        let all: Vec<String> = (0..12)
            .map(|local| format!("l{local} * {}", local * 2 + 1))
            .collect();
        self.line(&format!(
            "return {} + buf[l1 & 3] + p1->v - p2->v;",
            all.join(" + ")
        ));
        self.text.push_str("}\n");
    }
}

fn program(seed: u64) -> String {
    let mut writer = Writer {
        random: Prng::new(seed),
        text: HEAD.into(),
        depth: 0,
        function: 0,
        locked: 0,
    };
    for number in 0..6 {
        writer.function(number);
    }
    writer.text.push_str(MAIN);
    writer.text
}

fn plain_result(workshop: &Workshop, source: &str, seed: u64) -> String {
    let program = workshop.plain(&["-O1", "-w", "-fwrapv"], source);
    let ended = run(&program, &[], Duration::from_secs(20));
    assert_eq!(
        ended.status,
        Some(0),
        "seed {seed}: the generated program is wrong: {}",
        ended.stderr
    );
    ended.stdout
}

/// How the programs are hardened, in turn.
const VARIANTS: [&[&str]; 6] = [
    &[],
    &["--harden-regions=longest"],
    &["--harden-checks=compare", "--harden-undo=plain"],
    &["--harden-regions=longest", "--harden-checks=compare"],
    &["--harden-undo=plain"],
    &["--harden-regions=longest", "--harden-undo=plain"],
];

/// The programs are C and C++ alike.
const COMPILERS: [(&str, &str); 2] = [("cc", "stress.c"), ("c++", "stress.cpp")];

fn check_level(level: &str) {
    let workshop = Workshop::open();
    let first = number("RADDLE_STRESS_SEED", 1);
    let count = number("RADDLE_STRESS_PROGRAMS", PROGRAMS);
    for seed in first..first + count {
        let variant = VARIANTS[seed % VARIANTS.len()];
        let (compiler, name) = COMPILERS[seed / VARIANTS.len() % COMPILERS.len()];
        let seed = u64::try_from(seed).unwrap();
        if let Some(keep) = std::env::var_os("RADDLE_STRESS_KEEP") {
            std::fs::write(Path::new(&keep).join(format!("{seed}.c")), program(seed)).unwrap();
        }
        let source = workshop.write(name, &program(seed));
        let expected = plain_result(&workshop, &source, seed);
        let options = [&[level, "-w", "-fwrapv", "--harden-inject"], variant].concat();
        let hardened = workshop.harden(compiler, &options, &[&source], "hardened");
        let ended = run(&hardened, &injecting("10"), Duration::from_secs(60));
        assert_eq!(
            (ended.status, ended.stdout.as_str()),
            (Some(0), expected.as_str()),
            "seed {seed} with {compiler} {level} {variant:?} differs:\n{}",
            program(seed)
        );
    }
}

/// One check of `every` fails for no reason.
fn injecting(every: &str) -> [(&str, &str); 2] {
    [
        ("RADDLE_HARDEN_INJECT", every),
        ("RADDLE_HARDEN_LOG", "none"),
    ]
}

#[test]
fn random_programs_keep_their_results_at_o0() {
    check_level("-O0");
}

#[test]
fn random_programs_keep_their_results_at_o1() {
    check_level("-O1");
}

#[test]
fn random_programs_keep_their_results_at_o2() {
    check_level("-O2");
}

#[test]
fn random_programs_keep_their_results_at_o3() {
    check_level("-O3");
}

/// Sites that cannot always be re-executed: a pointer that one path reads anew and another does not, and a parameter
/// that one caller reads anew and another does not. Injected failures must not make them fail where they would give up.
const GIVES_UP: &str = r#"#include <stdio.h>
struct node { struct node *next; long v; };
struct node one = {&one, 7}, two = {&one, 9};
struct node *head = &two;
long g;
__attribute__((noinline)) static void adds_two(void)
{
    g += 2;
}
__attribute__((noinline)) static void adds_three(void)
{
    g += 3;
}
__attribute__((noinline)) static long by_path(struct node *given, long turn)
{
    struct node *at = given;
    if (turn & 1) {
        adds_two();
        at = head;
    } else {
        adds_three();
    }
    return at->v;
}
__attribute__((noinline)) static long below(struct node *given)
{
    return given->v * 3;
}
__attribute__((noinline)) static long reads_anew(void)
{
    return below(head);
}
__attribute__((noinline)) static long keeps(struct node *given)
{
    g += 1;
    return below(given);
}
int main(void)
{
    long sum = 0;
    for (long turn = 0; turn < 400; turn++) {
        sum = sum * 5 + by_path(&one, turn);
        sum ^= reads_anew() + keeps(&one);
    }
    printf("%ld %ld\n", sum, g);
    return 0;
}
"#;

#[test]
fn injected_failures_leave_sites_that_give_up_alone() {
    let workshop = Workshop::open();
    let source = workshop.write("gives_up.c", GIVES_UP);
    let expected = plain_result(&workshop, &source, 0);
    for level in ["-O0", "-O2"] {
        for variant in VARIANTS {
            let options = [&[level, "-fwrapv", "--harden-inject"], variant].concat();
            let sites = workshop.sites(&options, &source);
            for function in ["by_path", "below"] {
                assert!(
                    sites.contains(&format!("dereference in {function}: hardened")),
                    "{level} {variant:?}: {sites}"
                );
            }
            let hardened = workshop.harden("cc", &options, &[&source], "hardened");
            let ended = run(&hardened, &injecting("3"), Duration::from_secs(60));
            assert_eq!(
                (ended.status, ended.stdout.as_str()),
                (Some(0), expected.as_str()),
                "{level} {variant:?}"
            );
        }
    }
}
