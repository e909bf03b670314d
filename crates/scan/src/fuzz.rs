//! Generators for fuzzing, kept in the crate so that they reach its private parts.

use raddle_stdx::Prng;

use crate::front::lex::lex;
use crate::front::unit::Unit;
use crate::idioms::Table;

/// Repeated pieces of source that have made parsers slow.
pub const SHAPES: &[&str] = &[
    "{",
    "(",
    "((a)",
    "a->",
    "if (a) ",
    "x = {",
    "#if A\n",
    "#if A\na;\n#else\nb;\n#endif\n",
    "#if A\na;\n#elif B\n",
    "*",
    "f(",
    "int a[",
    "struct s { ",
    "a ? ",
    "MACRO(x) ",
    "case ",
    "({",
    "do { ",
    "b: ",
    "\"",
    "/* ",
    "\\\n",
];

const PIECES: &[&str] = &[
    "int ",
    "f",
    "(",
    ")",
    "{",
    "}",
    ";",
    "if ",
    "else ",
    "for ",
    "while ",
    "do ",
    "switch ",
    "case ",
    "return ",
    "goto ",
    "x",
    "->",
    ".",
    "*",
    "&",
    "=",
    "==",
    "+",
    ",",
    "[",
    "]",
    "struct ",
    "spin_lock(&",
    "spin_unlock(&",
    "#if 0\n",
    "#else\n",
    "#endif\n",
    "#define M(a) spin_lock(a)\n",
    "/*",
    "*/",
    "//",
    "\n",
    "\"",
    "'",
    "static ",
    "typedef ",
    "list_for_each_entry(a, b, c)",
    "0x1",
    "guard(mutex)(&l);",
    "\u{fffd}",
    "...",
    "?",
    ":",
    "sizeof ",
    "__attribute__",
    "asm ",
    "default:",
    "break;",
];

fn bytes(prng: &mut Prng, seeds: &[&str]) -> Vec<u8> {
    let mut text = if prng.chance(1, 2) {
        let seed = seeds[pick(prng, seeds.len())];
        seed.as_bytes().to_vec()
    } else {
        let mut made = Vec::new();
        for _ in 0..prng.below(300) {
            made.extend_from_slice(PIECES[pick(prng, PIECES.len())].as_bytes());
        }
        made
    };
    for _ in 0..prng.below(12) {
        if text.is_empty() {
            break;
        }
        let at = pick(prng, text.len());
        match prng.below(4) {
            0 => {
                text.remove(at);
            }
            1 => text.insert(at, raddle_stdx::width::low_u8(prng.next_u64())),
            2 => {
                let piece = PIECES[pick(prng, PIECES.len())].as_bytes();
                text.splice(at..at, piece.iter().copied());
            }
            _ => {
                let end = (at + pick(prng, 40) + 1).min(text.len());
                let copy = text[at..end].to_vec();
                text.splice(at..at, copy);
            }
        }
    }
    text
}

fn pick(prng: &mut Prng, bound: usize) -> usize {
    raddle_stdx::width::to_usize(prng.below(raddle_stdx::width::to_u64(bound.max(1))))
}

const SOURCES: &[&str] = &[
    include_str!("../test_data/lost-wakeup/stop_fixed.c"),
    include_str!("../test_data/double-fetch/condition_buggy.c"),
    include_str!("../test_data/paper/xt_hashlimit_buggy.c"),
    include_str!("../test_data/paper/btrfs_workers_buggy.c"),
    include_str!("../test_data/sleep-in-atomic/fixed.c"),
    include_str!("../test_data/lock-leak/fixed.c"),
];

/// Parses one made-up file.
pub fn source(seed: u64) {
    let mut prng = Prng::new(seed);
    let text = bytes(&mut prng, SOURCES);
    let table =
        Table::new(&raddle_config::scan::Idioms::default()).expect("the shipped tables work");
    let unit = Unit::parse(&text, &table, &table.words());
    for function in &unit.functions {
        let events = unit.events_of(function);
        let cfg = crate::analyse::cfg::Cfg::new(events);
        for here in 0..crate::front::lex::index(events.len()) {
            assert!(
                cfg.successors(here).all(|next| next > here),
                "a forward edge leads back"
            );
        }
    }
}

/// Parses one made-up pattern file.
pub fn pattern(seed: u64) {
    let mut prng = Prng::new(seed);
    let files = crate::shipped::shipped_files();
    let seeds: Vec<&str> = files.iter().map(|(_, text)| text.as_str()).collect();
    let text = bytes(&mut prng, &seeds);
    let text = String::from_utf8_lossy(&text);
    if let Err(error) = crate::pdl::parse("fuzz.pdl", &text) {
        assert!(!error.to_string().is_empty());
    }
}

/// Repeated pieces of pattern text that could make the parser slow.
pub const PATTERN_SHAPES: &[&str] = &[
    "if $c { ",
    "loop { ",
    "\\{ ",
    "(",
    "not ",
    "fun $f { ",
    "pattern 1 { ",
    "read $x; ",
    "bug a { pattern 1 { fun $f { } } } ",
    "where shared($x), ",
    "\"",
    "/*",
    "# \n",
    "| \"a\" ",
    "$",
    "@",
];

/// Tokens consumed while parsing `repeats` copies of a piece of pattern text: a measure of work.
pub fn pattern_work(shape: &str, repeats: usize) -> u64 {
    let text = format!(
        "bug x {{ pattern 1 {{ fun $f {{ {} }} }} }}",
        shape.repeat(repeats)
    );
    crate::pdl::parse_counted("fuzz.pdl", &text).1
}

/// Tokens read plus nodes and events made for `repeats` copies of a piece: a measure of work.
pub fn work(shape: &str, repeats: usize) -> u64 {
    let text = format!("int f(void) {{ {} }}", shape.repeat(repeats));
    let table =
        Table::new(&raddle_config::scan::Idioms::default()).expect("the shipped tables work");
    let words = table.words();
    let tokens = lex(text.as_bytes(), &words).tokens.len();
    let unit = Unit::parse(text.as_bytes(), &table, &words);
    raddle_stdx::width::to_u64(tokens + unit.exprs.nodes.len() + unit.events.len())
        + unit.exprs.steps
}

/// What is fuzzed: how one input is made and tried, and what grows with repeated shapes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    try_input: fn(u64),
    shapes: &'static [&'static str],
    work: fn(&str, usize) -> u64,
}

/// The C front end.
pub const SOURCE: Target = Target {
    name: "files",
    try_input: source,
    shapes: SHAPES,
    work,
};

/// The parser of the pattern language.
pub const PATTERN: Target = Target {
    name: "pattern files",
    try_input: pattern,
    shapes: PATTERN_SHAPES,
    work: pattern_work,
};

impl Target {
    /// Tries inputs, one for each seed, then how work grows with repeated shapes. Panics with an input that does.
    ///
    /// # Errors
    /// Names a shape whose work grows faster than twice its length.
    pub fn run(&self, first: u64, rounds: u64, report: fn(&str)) -> Result<(), String> {
        for seed in first..first.saturating_add(rounds) {
            if seed % 1000 == 0 {
                report(&format!("seed {seed}"));
            }
            (self.try_input)(seed);
        }
        for shape in self.shapes {
            let (small, large) = ((self.work)(shape, 2_000), (self.work)(shape, 64_000));
            if large > small.max(1) * 32 * 2 {
                return Err(format!(
                    "`{shape}`: {small} steps for 2000 repeats, {large} for 64000"
                ));
            }
        }
        report(&format!(
            "{rounds} {} and {} repeated shapes: no panic, no blow-up",
            self.name,
            self.shapes.len()
        ));
        Ok(())
    }
}
