//! Stacks and places as reports show them.
//!
//! A reader wants their own code: what the C library or a language's standard library does inside is shown as
//! the place of the call.

use raddle_linux::{LinuxWorld, Origin};
use raddle_report::{Frame, Place};
use raddle_stdx::regular_file;
use raddle_symbols::SymbolSpace;
use raddle_world::ContextId;

use crate::managed::is_machine;

/// Frames of a stack that are looked at.
const FRAMES_MAX: usize = 32;

/// One frame of a stack; an inlined call is a frame, too.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) place: Place,
    /// Code of the C library or of a standard library.
    pub(crate) is_library: bool,
    /// Code of the C library.
    pub(crate) is_c_library: bool,
}

/// The stack of a live context, innermost frame first.
pub(crate) fn stack(world: &mut LinuxWorld, who: ContextId) -> Vec<Line> {
    let Some(symbols) = world.symbols(who) else {
        return Vec::new();
    };
    let pcs = world.stack(who, &symbols, FRAMES_MAX);
    lines(&symbols, &pcs)
}

/// The stack of an allocation or a free.
pub(crate) fn stack_of(symbols: &SymbolSpace, origin: &Origin) -> Vec<Line> {
    let mut lines = lines(symbols, &origin.stack);
    // The innermost frame is the function that was called, which the text names.
    if lines.len() > 1 && is_entry(symbols, origin.stack[0]) {
        lines.remove(0);
    }
    lines
}

fn is_entry(symbols: &SymbolSpace, pc: u64) -> bool {
    let symbol = symbols.symbolise(pc).and_then(|place| place.symbol);
    symbol.is_some_and(|(_, offset)| offset == 0)
}

fn lines(symbols: &SymbolSpace, pcs: &[u64]) -> Vec<Line> {
    pcs.iter().flat_map(|pc| expand(symbols, *pc)).collect()
}

/// The innermost frame that is the reader's own code.
pub(crate) fn own(lines: &[Line]) -> Option<&Line> {
    lines.iter().find(|line| !line.is_library)
}

/// Whether a library does something for its own sake on the way to the innermost frame: starting and joining
/// threads, counting references, panicking, printing.
pub(crate) fn is_bookkeeping(lines: &[Line]) -> bool {
    const WORK: [&str; 9] = [
        "std::thread",
        "sync::Arc",
        "panicking",
        "std::io",
        "thread_local",
        "test::",
        "std::sys::backtrace",
        "once_lock",
        "poison::Flag",
    ];
    let inside = lines.iter().take_while(|line| line.is_library);
    let mut functions = inside.map(|line| line.place.function.as_str());
    functions.any(|function| WORK.iter().any(|work| function.contains(work)))
}

/// The function of a library through which own code does what the innermost frame does. Functions that only name a
/// machine instruction, such as those of atomic types, say no more than the access itself.
pub(crate) fn via(lines: &[Line]) -> Option<String> {
    const THIN: [&str; 4] = ["core::", "<core::", "std::atomic", "std::__atomic"];
    let library = lines.iter().take_while(|line| line.is_library);
    let function = &library.last()?.place.function;
    let drops = function.contains("drop_in_place");
    let is_thin = function.contains("operator")
        || (!drops && THIN.iter().any(|start| function.starts_with(start)));
    (!is_thin).then(|| function.clone())
}

/// Whether a harness of tests waits for what the test does, instead of own code.
pub(crate) fn is_harness(lines: &[Line]) -> bool {
    let mut inside = lines.iter().take_while(|line| line.is_library);
    inside.any(|line| line.place.function.starts_with("test::"))
}

/// The function of an instruction, without those that were inlined into it.
pub(crate) fn function_at(symbols: &SymbolSpace, pc: u64) -> Option<String> {
    let lines = expand(symbols, pc);
    lines.last().map(|line| line.place.function.clone())
}

/// An instruction with what was inlined around it, if own code is part of that.
pub(crate) fn inlined(symbols: &SymbolSpace, pc: u64) -> Option<Vec<Line>> {
    let lines = expand(symbols, pc);
    own(&lines).is_some().then_some(lines)
}

/// The own code that an instruction belongs to: itself, or the function into which library code was inlined.
pub(crate) fn own_place(symbols: &SymbolSpace, pc: u64) -> Option<Place> {
    let lines = expand(symbols, pc);
    own(&lines).map(|line| line.place.clone())
}

/// Whether an instruction itself is the reader's own code.
pub(crate) fn is_own_code(symbols: &SymbolSpace, pc: u64) -> bool {
    expand(symbols, pc)
        .first()
        .is_some_and(|line| !line.is_library)
}

/// An instruction with the calls that were inlined around it, from the inside out.
fn expand(symbols: &SymbolSpace, pc: u64) -> Vec<Line> {
    let is_c_library = symbols
        .mapping_at(pc)
        .is_some_and(|mapping| is_library_file(&mapping.name));
    // Where the program has debug information, code without lines was built elsewhere.
    let has_lines = symbols
        .module_at(pc)
        .is_some_and(|(module, _)| module.has_debug_info());
    let is_of_system = symbols
        .mapping_at(pc)
        .is_some_and(|mapping| is_system_library(&mapping.name) || is_machine(&mapping.module));
    let is_foreign = |place: &Place| place.line == 0 && (has_lines || is_of_system);
    let innermost = place_of(symbols, pc);
    let mut lines = vec![Line {
        is_library: is_c_library || is_standard_source(&innermost) || is_foreign(&innermost),
        is_c_library,
        place: innermost,
    }];
    for caller in symbols
        .symbolise(pc)
        .map(|place| place.inlined_by)
        .unwrap_or_default()
    {
        let place = Place {
            file: caller
                .line
                .as_ref()
                .map_or_else(String::new, |line| line.file.to_string()),
            line: caller.line.as_ref().map_or(0, |line| line.line),
            column: caller.line.as_ref().map_or(0, |line| line.column),
            function: caller.function.to_string(),
        };
        lines.push(Line {
            is_library: is_c_library || is_standard_source(&place),
            is_c_library,
            place,
        });
    }
    lines
}

const LOADER: &str = "ld-linux";

/// Libraries whose inside is not shown and not explored: their synchronisation is known by its functions.
pub(crate) fn is_library_file(name: &str) -> bool {
    const LIBRARIES: [&str; 5] = ["libc.so", LOADER, "libpthread", "libm.so", "libgcc_s"];
    let file = name.rsplit('/').next().unwrap_or_default();
    LIBRARIES.iter().any(|library| file.starts_with(library))
}

/// Whether a file is a runtime library of OpenMP, of GCC, LLVM or Intel. Its threads are ordered by plain moves to words of
/// its own, and the program's memory it leaves to the functions that the compiler made.
pub fn is_openmp_runtime(name: &str) -> bool {
    const RUNTIMES: [&str; 3] = ["libgomp.so", "libomp.so", "libiomp5.so"];
    let file = name.rsplit('/').next().unwrap_or_default();
    RUNTIMES.iter().any(|runtime| file.starts_with(runtime))
}

/// Whether a file is a library that came with the system.
fn is_system_library(name: &str) -> bool {
    let is_there = ["/lib", "/usr/lib"]
        .iter()
        .any(|folder| name.starts_with(folder));
    is_there && name.contains(".so")
}

/// The dynamic loader.
pub(crate) fn is_loader_file(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    file.starts_with(LOADER)
}

/// Sources of the standard libraries of Rust and C++ and what has no source at all and is not ours.
fn is_standard_source(place: &Place) -> bool {
    const FOLDERS: [&str; 5] = [
        "/rustc/",
        "/rustlib/src/rust/library/",
        "/include/c++/",
        // Debian's libstdc++ keeps what depends on the machine apart, the locks of threads among it.
        "/include/x86_64-linux-gnu/c++/",
        "/library/std/src/",
    ];
    const START: [&str; 3] = ["_start", "clone3", "__libc_start_main"];
    let is_file = place.file.contains("libstdc++.so");
    is_file
        || is_go_runtime(place)
        || FOLDERS.iter().any(|folder| place.file.contains(folder))
        || (place.line == 0 && START.contains(&place.function.as_str()))
}

/// Whether code is Go's runtime or one of the packages on which its synchronisation stands. They hand over goroutines by
/// plain moves that are meant to be atomic, and poll without order on purpose.
fn is_go_runtime(place: &Place) -> bool {
    const PACKAGES: [&str; 4] = ["runtime", "internal", "sync", "syscall"];
    let folder_end = place.function.rfind('/').map_or(0, |at| at + 1);
    let Some(package_end) = place.function[folder_end..].find('.') else {
        return false;
    };
    // `sync.(*Mutex).Lock` of `/usr/lib/go/src/sync/mutex.go`, or of `sync/mutex.go` where paths were trimmed.
    let package = &place.function[..folder_end + package_end];
    let root = package.split('/').next().unwrap_or_default();
    let Some((folder, file)) = place.file.rsplit_once('/') else {
        return false;
    };
    let is_there = folder == package || folder.ends_with(&format!("/src/{package}"));
    let is_source = [".go", ".s"].iter().any(|end| file.ends_with(end));
    PACKAGES.contains(&root) && is_source && is_there
}

/// Source place of an instruction, as far as it is known.
pub(crate) fn place_of(symbols: &SymbolSpace, pc: u64) -> Place {
    let Some(found) = symbols.symbolise(pc) else {
        return Place {
            function: format!("{pc:#x}"),
            ..Place::default()
        };
    };
    let function = found
        .function
        .as_deref()
        .map_or_else(|| format!("{pc:#x}"), str::to_owned);
    match found.line {
        Some(line) => Place {
            file: line.file.to_string(),
            line: line.line,
            column: line.column,
            function,
        },
        None => Place {
            file: found.module.to_string(),
            line: 0,
            column: 0,
            function,
        },
    }
}

/// A stack as findings keep it.
pub(crate) fn frames(lines: &[Line]) -> Vec<Frame> {
    let frame = |line: &Line| Frame {
        place: line.place.clone(),
        is_library: line.is_library,
    };
    lines.iter().map(frame).collect()
}

/// Larger files are no source, whatever debug information says.
const SOURCE_BYTES_MAX: u64 = 64 << 20;

/// The source line of a place, if the source is at hand.
pub(crate) fn source_line(place: &Place) -> Option<String> {
    if place.line == 0 {
        return None;
    }
    let text = regular_file::read(std::path::Path::new(&place.file), SOURCE_BYTES_MAX).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().nth(place.line as usize - 1)?;
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_libraries_are_told_by_their_folders() {
        let place = |file: &str| Place {
            file: file.into(),
            line: 3,
            ..Place::default()
        };
        assert!(is_standard_source(&place(
            "/rustc/59807616/library/core/src/cell.rs"
        )));
        assert!(is_standard_source(&place(
            "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h"
        )));
        assert!(!is_standard_source(&place("/project/src/library.rs")));
        let go = |file: &str, function: &str| {
            is_standard_source(&Place {
                function: function.into(),
                ..place(file)
            })
        };
        assert!(go(
            "/usr/lib/go-1.19/src/runtime/proc.go",
            "runtime.schedule"
        ));
        assert!(go("sync/mutex.go", "sync.(*Mutex).Lock"));
        assert!(go("/usr/lib/go/src/runtime/asm_amd64.s", "runtime.mcall"));
        assert!(go(
            "/go/src/internal/runtime/atomic/xchg.go",
            "internal/runtime/atomic.Xchg"
        ));
        assert!(!go("/home/me/shop/main.go", "main.runtime"));
        assert!(!go("/home/me/sync/main.go", "example.com/sync.Run"));
        assert!(is_library_file("/lib/x86_64-linux-gnu/libc.so.6"));
        assert!(!is_library_file("/opt/libcurl.so"));
    }
}
