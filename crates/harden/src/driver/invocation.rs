//! A compiler command line: what it does, and the one that hardens.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::toolchain::Toolchain;

/// What a command line makes the compiler do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing of ours: preprocess, print, link without a standard library.
    Plain,
    /// Compile sources without linking.
    Compile,
    /// Link, perhaps compiling sources on the way.
    Link,
}

/// A command line without our own options.
#[derive(Debug, Clone)]
pub struct Invocation {
    pub arguments: Vec<OsString>,
    pub step: Step,
    /// The user asked for debug information.
    pub has_debug: bool,
    /// Link-time optimisation: the plugin runs in the linker.
    pub is_lto: bool,
    /// Link-time optimisation that optimises nothing and therefore calls no plugin by itself.
    pub is_lto_idle: bool,
    /// Whether some input is a source, so that the plugin runs in the compiler.
    pub has_source: bool,
    /// One input is the standard input.
    pub reads_stdin: bool,
    /// What is made, for messages.
    pub output: String,
}

const NOT_OURS: &[&str] = &[
    "-E",
    "-M",
    "-MM",
    "-fsyntax-only",
    "-###",
    "--version",
    "-v",
    "--help",
    "-nostdlib",
    "-ffreestanding",
    "-r",
    "-emit-llvm",
];

/// Options whose value is the next argument.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-x",
    "-I",
    "-L",
    "-D",
    "-U",
    "-include",
    "-isystem",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-Xclang",
    "-T",
    "-u",
    "-z",
    "-l",
    "-arch",
    "-target",
    "-iquote",
    "-idirafter",
    "-imacros",
    "-e",
    "-soname",
    "-rpath",
    "-mllvm",
];

const SOURCES: &[&str] = &[
    "c", "cc", "cpp", "cxx", "C", "c++", "CPP", "i", "ii", "ll", "bc", "m",
];

impl Invocation {
    /// Reads a command line.
    pub fn parse(arguments: Vec<OsString>) -> Self {
        let mut this = Self {
            arguments,
            step: Step::Link,
            has_debug: false,
            is_lto: false,
            is_lto_idle: false,
            has_source: false,
            reads_stdin: false,
            output: String::new(),
        };
        let mut has_input = false;
        let mut is_value_of: Option<String> = None;
        for argument in this.arguments.clone() {
            let text = argument.to_string_lossy();
            if let Some(option) = is_value_of.take() {
                if option == "-o" {
                    this.output = text.clone().into_owned();
                }
                this.has_source |= option == "-x" && text != "none";
                continue;
            }
            if WITH_VALUE.contains(&&*text) {
                is_value_of = Some(text.into_owned());
            } else if text == "-" {
                this.reads_stdin = true;
                has_input = true;
            } else if text.starts_with('-') {
                this.option(&text);
            } else {
                has_input = true;
                this.has_source |= is_source(&argument);
                if this.output.is_empty() {
                    this.output = text.into_owned();
                }
            }
        }
        // rustc names the libraries itself; without any C library the runtime could not be linked.
        let has = |wanted: &str| this.arguments.iter().any(|argument| argument == wanted);
        if !has_input || has("-nodefaultlibs") && !has("-lc") {
            this.step = Step::Plain;
        }
        this
    }

    fn option(&mut self, text: &str) {
        let is_debug = text.starts_with("-g") && !text.starts_with("-gcc") && text != "-g0";
        self.has_debug |= is_debug;
        self.is_lto |= text == "-flto" || text.starts_with("-flto=");
        self.is_lto_idle |= text.strip_prefix("-Wl,").is_some_and(|words| {
            words
                .split(',')
                .any(|word| matches!(word, "-plugin-opt=O0" | "--lto-O0"))
        });
        if (text == "-c" || text == "-S") && self.step != Step::Plain {
            self.step = Step::Compile;
        }
        if NOT_OURS.contains(&text) || text.starts_with("-print-") || text.starts_with("--print-") {
            self.step = Step::Plain;
        }
    }

    /// The arguments for clang that harden; `include` holds our header, `archives` the runtime.
    pub fn hardened(
        &self,
        toolchain: &Toolchain,
        include: &Path,
        archives: &[impl AsRef<Path>],
    ) -> Vec<OsString> {
        if self.step == Step::Plain {
            return self.arguments.clone();
        }
        let mut all: Vec<OsString> = vec!["-Wno-unused-command-line-argument".into()];
        if self.has_source || self.reads_stdin {
            all.push(prefixed("-fpass-plugin=", &toolchain.plugin));
            all.push("-D__RADDLE_HARDEN__=1".into());
            all.push("-isystem".into());
            all.push(include.into());
            if !self.has_debug {
                all.push("-gline-tables-only".into());
            }
        }
        all.extend(self.arguments.iter().cloned());
        if self.step == Step::Link {
            add_archives(&mut all, archives);
            if self.is_lto {
                all.push(prefixed("--ld-path=", &toolchain.linker));
                all.push(prefixed("-Wl,--load-pass-plugin=", &toolchain.plugin));
                if self.is_lto_idle {
                    all.push("-Wl,--lto-newpm-passes=raddle-harden-unoptimised".into());
                }
            }
        }
        all
    }

    /// The arguments for clang without hardening: the same program, with nothing of ours but the empty oracle.
    pub fn plain(
        &self,
        toolchain: &Toolchain,
        include: &Path,
        archives: &[impl AsRef<Path>],
    ) -> Vec<OsString> {
        let mut all = self.arguments.clone();
        if self.step == Step::Plain {
            return all;
        }
        all.push("-isystem".into());
        all.push(include.into());
        if self.step == Step::Link {
            add_archives(&mut all, archives);
            if self.is_lto {
                all.push(prefixed("--ld-path=", &toolchain.linker));
            }
        }
        all
    }
}

/// An explicit language (`-x c`, `-xc`) would otherwise apply to the archives, too.
fn add_archives(all: &mut Vec<OsString>, archives: &[impl AsRef<Path>]) {
    all.extend(["-x".into(), "none".into()]);
    all.extend(archives.iter().map(|archive| archive.as_ref().into()));
}

fn prefixed(option: &str, path: &Path) -> OsString {
    let mut whole = OsString::from(option);
    whole.push(path);
    whole
}

fn is_source(argument: &OsStr) -> bool {
    Path::new(argument)
        .extension()
        .and_then(OsStr::to_str)
        .is_some_and(|extension| SOURCES.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Invocation {
        Invocation::parse(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn steps_are_told_apart() {
        assert_eq!(parse("-c a.c -o a.o").step, Step::Compile);
        assert_eq!(parse("a.o b.o -o prog").step, Step::Link);
        assert_eq!(parse("-O2 a.c -o prog").step, Step::Link);
        assert_eq!(parse("-E a.c").step, Step::Plain);
        assert_eq!(parse("-c -E a.c").step, Step::Plain);
        assert_eq!(parse("-E -c a.c").step, Step::Plain);
        assert_eq!(parse("--version").step, Step::Plain);
        assert_eq!(parse("-nostdlib a.o").step, Step::Plain);
        assert_eq!(parse("-nodefaultlibs a.o").step, Step::Plain);
        assert_eq!(parse("-nodefaultlibs a.o -lc").step, Step::Link);
    }

    #[test]
    fn values_of_options_are_not_inputs() {
        let line = parse("-o a.c x.o");
        assert!(!line.has_source);
        assert_eq!(line.output, "a.c");
        assert!(parse("-x c - -o out").has_source);
    }

    #[test]
    fn debug_and_lto_are_noticed() {
        assert!(parse("-g -c a.c").has_debug);
        assert!(!parse("-g0 -c a.c").has_debug);
        assert!(parse("-flto=thin a.c").is_lto);
        assert!(parse("-flto a.o -Wl,-plugin-opt=O0,-plugin-opt=mcpu=x86-64").is_lto_idle);
        assert!(!parse("-flto a.o -Wl,-plugin-opt=O1").is_lto_idle);
    }

    #[test]
    fn the_runtime_comes_last_and_only_when_linking() {
        let toolchain = Toolchain {
            clang: "clang-22".into(),
            linker: "lld".into(),
            opt: "opt".into(),
            plugin: "p.so".into(),
        };
        let archives = ["rt.a"];
        let link = parse("a.o -o prog").hardened(&toolchain, Path::new("inc"), &archives);
        assert_eq!(link.last().unwrap(), "rt.a");
        assert!(!link.iter().any(|argument| argument == "-fpass-plugin=p.so"));
        let compile = parse("-c a.c").hardened(&toolchain, Path::new("inc"), &archives);
        assert!(
            compile
                .iter()
                .any(|argument| argument == "-fpass-plugin=p.so")
        );
        assert!(!compile.iter().any(|argument| argument == "rt.a"));
    }
}
