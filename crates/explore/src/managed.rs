//! Languages whose programs run on a machine of their own: CPython, HotSpot, Go's runtime.
//!
//! ```text
//!   Python  ──▶  the interpreter's code is a library: one lock orders all of it, and threads change between bytecodes
//!   Java    ──▶  the virtual machine is a library; what it generates is the program
//!   Go      ──▶  the runtime lies in the program; goroutines, not threads, are what meets
//! ```
//! Such a machine touches memory that threads share in thousands of places, none of which is the user's. So nothing in
//! it becomes a decision point because threads met there. Where the user's own steps begin and end is known beforehand
//! instead: at the jump to the next bytecode, at the functions that stand for operations of the language.

use std::ops::Range;

use raddle_code::{Disassembler, Flow, Instruction};
use raddle_symbols::{LinkAddr, Mapping, Module, Symbol, SymbolSpace};
use raddle_world::Duration;

/// What is known of the machines in a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    /// Code in which no decision point is learned.
    pub(crate) code: Vec<Range<u64>>,
    /// Instructions that are decision points from the beginning.
    pub(crate) points: Vec<u64>,
    /// Instructions by which a thread goes on with another goroutine, sorted.
    goroutine_switches: Vec<u64>,
    /// How long a thread waits before it asks for a turn.
    pub(crate) turn_wait: Option<Duration>,
}

/// The interval of CPython, unless the program has set another one: a longer one is jumped over like any timer.
const PYTHON_TURN: Duration = Duration(5_000_000);

impl Managed {
    pub(crate) fn new(symbols: &SymbolSpace) -> Self {
        let mut managed = Self::default();
        let libraries = library_ranges(symbols);
        managed.code.extend(libraries.iter().cloned());
        for mapping in symbols.modules() {
            let mut known = Vec::new();
            if is_python(&mapping.module) {
                known = dispatches(&mapping.module);
                managed.turn_wait = Some(PYTHON_TURN);
            } else if is_go(&mapping.module) {
                let own = mapping.module.symbols().iter();
                let runtime = own.filter(|symbol| is_go_machinery(&symbol.name));
                let at_run_time = |symbol: &Symbol| {
                    let start = mapping.bias.wrapping_add(symbol.address.0);
                    start..start.wrapping_add(symbol.size)
                };
                managed.code.extend(runtime.map(at_run_time));
                let own = mapping.module.symbols().iter();
                let operations = own.filter(|symbol| GO_OPERATIONS.contains(&&*symbol.name));
                known = operations.map(|symbol| symbol.address).collect();
                let switches = goroutine_switches(&mapping.module).into_iter();
                let at_run_time = switches.map(|at| mapping.bias.wrapping_add(at.0));
                managed.goroutine_switches.extend(at_run_time);
            }
            let points = known.iter().map(|at| mapping.bias.wrapping_add(at.0));
            managed.points.extend(points);
        }
        managed.code = merged(managed.code);
        managed.goroutine_switches.sort_unstable();
        managed.points.sort_unstable();
        managed.points.dedup();
        managed
    }

    /// Whether a thread goes on with another goroutine behind this instruction.
    pub(crate) fn changes_goroutine(&self, pc: u64) -> bool {
        self.goroutine_switches.binary_search(&pc).is_ok()
    }

    pub(crate) fn contains(&self, pc: u64) -> bool {
        let after = self.code.partition_point(|range| range.start <= pc);
        after > 0 && self.code[after - 1].contains(&pc)
    }
}

/// Where the machines lie that are libraries, whatever file holds them.
pub(crate) fn library_ranges(symbols: &SymbolSpace) -> Vec<Range<u64>> {
    let modules = symbols.modules();
    let machines: Vec<&Mapping> = modules
        .into_iter()
        .filter(|mapping| is_machine(&mapping.module))
        .collect();
    if machines.is_empty() {
        return Vec::new();
    }
    let folders: Vec<&str> = machines
        .iter()
        .filter_map(|mapping| java_folder(&mapping.name))
        .collect();
    let is_part = |mapping: &Mapping| {
        machines.iter().any(|machine| machine.name == mapping.name)
            || mapping.name.contains("/lib-dynload/")
            || folders
                .iter()
                .any(|folder| mapping.name.starts_with(*folder))
    };
    let parts = symbols.mappings().filter(|(_, mapping)| is_part(mapping));
    parts.map(|(range, _)| range).collect()
}

/// Whether a module is a machine that is a library: what it does, it does for the program that it interprets.
pub(crate) fn is_machine(module: &Module) -> bool {
    is_python(module) || is_java(module)
}

/// The folder of a Java installation's libraries: its machine lies in `server` below it.
fn java_folder(machine: &str) -> Option<&str> {
    let (folder, _) = machine.rsplit_once('/')?;
    folder.strip_suffix("server")
}

const PYTHON_LOOP: &str = "_PyEval_EvalFrameDefault";

/// Whether a module holds CPython with its one lock. A build without the lock counts references in another way.
fn is_python(module: &Module) -> bool {
    const WITHOUT_LOCK: &str = "_Py_DecRefShared";
    let has = |name: &str| !module.symbols().by_name(name).is_empty();
    has(PYTHON_LOOP) && !has(WITHOUT_LOCK)
}

fn is_java(module: &Module) -> bool {
    !module.symbols().by_name("JVM_StartThread").is_empty()
}

fn is_go(module: &Module) -> bool {
    !module.symbols().by_name("runtime.newproc").is_empty()
}

/// Operations of the language that the compiler turns into calls.
const GO_OPERATIONS: &[&str] = &[
    "runtime.chansend1",
    "runtime.chanrecv1",
    "runtime.chanrecv2",
    "runtime.closechan",
    "runtime.selectgo",
    "runtime.selectnbsend",
    "runtime.selectnbrecv",
    "runtime.newproc",
    "sync.runtime_Semacquire",
    "sync.runtime_SemacquireMutex",
    "sync.runtime_SemacquireRWMutex",
    "sync.runtime_SemacquireRWMutexR",
    "sync.runtime_Semrelease",
    "sync.runtime_notifyListWait",
    "sync.runtime_notifyListNotifyAll",
    "sync.runtime_notifyListNotifyOne",
];

/// Whether a function belongs to the runtime's own affairs: scheduling, memory, channels. Maps are the user's memory,
/// and the runtime ends programs that use one from two goroutines.
fn is_go_machinery(function: &str) -> bool {
    const PACKAGES: [&str; 3] = ["runtime.", "runtime/internal/", "internal/runtime/"];
    const MAPS: [&str; 3] = ["runtime.map", "runtime.(*hmap)", "internal/runtime/maps."];
    let starts = |names: &[&str]| names.iter().any(|name| function.starts_with(name));
    starts(&PACKAGES) && !starts(&MAPS)
}

/// The jumps by which CPython's loop goes to the next bytecode.
fn dispatches(module: &Module) -> Vec<LinkAddr> {
    let is_dispatch = |instruction: &Instruction| instruction.flow == Flow::IndirectJump;
    instructions(module, PYTHON_LOOP, &is_dispatch)
}

/// The instructions that store whose stack a thread is on, in the function that goes on with a goroutine.
fn goroutine_switches(module: &Module) -> Vec<LinkAddr> {
    let stores = |instruction: &Instruction| {
        let mut accesses = instruction.accesses.iter();
        accesses.any(|access| access.is_thread_local && access.kind.writes())
    };
    let names = ["gogo", "gogo.abi0", "runtime.gogo", "runtime.gogo.abi0"];
    let found = names
        .iter()
        .flat_map(|name| instructions(module, name, &stores));
    found.collect()
}

/// The instructions of a function that are wanted.
fn instructions(
    module: &Module,
    function: &str,
    is_wanted: &dyn Fn(&Instruction) -> bool,
) -> Vec<LinkAddr> {
    let mut found = Vec::new();
    let mut disassembler = Disassembler::new();
    for function in module.symbols().by_name(function) {
        let mut at = function.address;
        let end = function.address.plus(function.size);
        while at < end {
            let rest = usize::try_from(end.0 - at.0).unwrap_or(0);
            let instruction = disassembler.decode(at, module.bytes_at(at, rest.min(LONGEST)));
            if instruction.len == 0 {
                break;
            }
            if is_wanted(&instruction) {
                found.push(at);
            }
            at = instruction.next();
        }
    }
    found
}

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

/// Sorted, with neighbours joined.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    /// Functions are aligned: what lies between two is padding.
    const PADDING: u64 = 32;
    ranges.sort_unstable_by_key(|range| range.start);
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.start <= last.end + PADDING => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_told_from_packages_of_the_user_and_from_maps() {
        assert!(is_go_machinery("runtime.schedule"));
        assert!(is_go_machinery("runtime/internal/atomic.Cas"));
        assert!(!is_go_machinery("runtime.mapassign_faststr"));
        assert!(!is_go_machinery("main.runtime"));
        assert!(!is_go_machinery("sync.(*Mutex).lockSlow"));
    }

    #[test]
    fn neighbours_are_one_range() {
        let far = [0..10, 1000..1001];
        assert_eq!(merged(far.to_vec()), far);
        assert_eq!(merged(vec![64..90, 5..10, 0..10, 16..60]), vec![0..90; 1]);
        let managed = Managed {
            code: vec![0..10, 1000..1001],
            ..Managed::default()
        };
        assert!(managed.contains(9) && managed.contains(1000));
        assert!(!managed.contains(10) && !managed.contains(999));
    }

    #[test]
    fn the_machine_of_java_names_the_folder_of_its_libraries() {
        let machine = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";
        assert_eq!(
            java_folder(machine),
            Some("/usr/lib/jvm/java-17-openjdk-amd64/lib/")
        );
        assert_eq!(java_folder("/usr/bin/python3.11"), None);
    }
}
