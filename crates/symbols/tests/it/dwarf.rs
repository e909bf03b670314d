//! Lines, inlined functions, variables and types of compiled programs.

use std::ops::Range;
use std::process::Command;

use crate::fixture::{Program, compile, mark};
use raddle_symbols::dwarf::{DebugInfo, Variable};
use raddle_symbols::{DebugFileFinder, DebugRequest, LinkAddr, Module, executable_at};
use raddle_testkit::succeed;

/// Every way of linking and every format of debug information that compilers commonly use.
const C_VARIANTS: &[&[&str]] = &[
    &["-g", "-O0"],
    &["-g", "-O2"],
    &["-gdwarf-4", "-O0", "-no-pie"],
    &["-gdwarf-4", "-O2", "-static"],
    &["-g", "-gz=zlib", "-O2", "-no-pie", "-static"],
    &["-g", "-O1", "-ffunction-sections", "-Wl,--gc-sections"],
];

fn debug(module: &Module) -> &DebugInfo {
    module.debug_info().expect("compiled with -g")
}

fn variable<'m>(module: &'m Module, name: &str) -> &'m Variable {
    let found = debug(module).variables_named(name);
    let [variable] = found.as_slice() else {
        panic!("{name}: {found:?} {:?}", debug(module).incomplete());
    };
    variable
}

/// `path type size atomic` of the field at an offset.
fn field(module: &Module, name: &str, offset: u64) -> String {
    let field = variable(module, name).field_at(debug(module), offset);
    let atomic = if field.is_atomic { " atomic" } else { "" };
    format!(
        "{}+{}: {} ({}){atomic}",
        field.path, field.rest, field.type_name, field.size
    )
}

#[test]
fn lines_and_inlined_frames_agree_with_addr2line() {
    for flags in C_VARIANTS {
        let program = compile("program.c", flags);
        let module = program.module();
        for name in ["work", "main"] {
            let function = module.symbols().by_name(name)[0];
            let range = function.address.0..function.address.0 + function.size;
            let expected = by_addr2line(&program, range.clone());
            for (at, expected) in range.zip(expected) {
                assert_eq!(frames(&module, at), expected, "{flags:?} {at:#x}");
            }
        }
    }
}

/// `function line` per frame, innermost first.
fn frames(module: &Module, at: u64) -> Vec<String> {
    let place = module.place_of(LinkAddr(at));
    let mut line = place.line.as_ref().map(|line| line.line);
    let mut frames = Vec::new();
    for scope in &place.scopes {
        frames.push(format!("{} {}", scope.name, line.unwrap_or(0)));
        line = scope.called_at.as_ref().map(|call| call.line);
    }
    frames
}

/// The same by binutils, for each address of a range.
fn by_addr2line(program: &Program, range: Range<u64>) -> Vec<Vec<String>> {
    let text = succeed(
        Command::new("addr2line")
            .args(["-a", "-f", "-i", "-e"])
            .arg(&program.path)
            .args(range.map(|at| format!("{at:#x}"))),
    );
    let mut answers: Vec<Vec<String>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            answers.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap_or_default();
        let place = place.split(" (discriminator").next().unwrap_or_default();
        let number = place
            .rsplit(':')
            .next()
            .unwrap_or_default()
            .replace('?', "0");
        if let Some(answer) = answers.last_mut() {
            answer.push(format!("{line} {number}"));
        }
    }
    answers
}

/// As kernel modules are: the loader says where the code lies.
#[test]
fn a_relocatable_file_is_read_at_its_place() {
    const AT: u64 = 0xFFFF_FFFF_A000_0000;
    let program = compile("program.c", &["-g", "-O1", "-c"]);
    let bytes = program.bytes();
    let placed = executable_at(&bytes, AT).expect("an object file");
    let module = Module::parse_alone(placed).expect("an executable");
    let expected = by_addr2line(&program, 0..64);
    let is_known = |frames: &Vec<String>| frames.iter().all(|frame| !frame.ends_with(" 0"));
    assert!(expected.iter().all(is_known), "{expected:?}");
    for (offset, expected) in (0..64).zip(expected) {
        assert_eq!(frames(&module, AT + offset), expected, "{offset:#x}");
    }
    assert_eq!(debug(&module).line_at(LinkAddr(0)), None);
    let linked = compile("program.c", &["-g"]).bytes();
    assert_eq!(executable_at(&linked, AT), None, "it has its place");
    for length in (0..bytes.len()).step_by(331) {
        // The table of sections is at the end.
        assert_eq!(executable_at(&bytes[..length], AT), None);
    }
}

#[test]
fn inlined_calls_are_found_by_name_with_their_place() {
    let module = compile("program.c", &["-g", "-O2"]).module();
    let calls = debug(&module).inlined_calls("square");
    let mut lines: Vec<u32> = calls
        .iter()
        .map(|c| c.called_at.as_ref().unwrap().line)
        .collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(
        lines,
        [mark("program.c", "first"), mark("program.c", "second")]
    );
    for call in &calls {
        assert_eq!(&*call.inside, "work");
        for range in &call.ranges {
            let scopes = debug(&module).scopes_at(range.start);
            assert_eq!(&*scopes.first().unwrap().name, "square");
        }
    }
    let plain = compile("program.c", &["-g", "-O0"]).module();
    assert_eq!(debug(&plain).inlined_calls("square"), []);
}

#[test]
fn lines_have_addresses_and_lines_without_code_move_on() {
    for flags in C_VARIANTS {
        let module = compile("program.c", flags).module();
        let print = mark("program.c", "print");
        let found = debug(&module).addresses_of_line("test_data/program.c", print);
        assert_eq!(found.line, Some(print), "{flags:?}");
        for range in &found.ranges {
            let at = debug(&module).line_at(range.start).unwrap();
            assert_eq!(at.line, print);
            let symbol = module.symbols().function_at(range.start).unwrap();
            assert_eq!(&*symbol.name, "main", "{flags:?}");
        }
        // A blank line stands before the function.
        let open = mark("program.c", "open");
        let moved = debug(&module).addresses_of_line("program.c", open - 2);
        assert_eq!(moved.line, Some(open), "{flags:?}");
        assert_eq!(debug(&module).addresses_of_line("other.c", 1).line, None);
        assert_eq!(
            debug(&module).addresses_of_line("program.c", 9999).ranges,
            []
        );
    }
}

#[test]
fn variables_are_found_by_address_with_their_fields() {
    for flags in C_VARIANTS {
        let module = compile("program.c", flags).module();
        let obj = variable(&module, "obj");
        assert_eq!(obj.address, module.symbols().by_name("obj")[0].address);
        let place = obj.declared_at.as_ref().unwrap();
        assert!(place.file.ends_with("test_data/program.c"), "{place:?}");
        let inside = debug(&module).variable_at(obj.address.plus(50)).unwrap();
        assert_eq!((&*inside.0.name, inside.1), ("obj", 50));

        let fields = [0, 8, 16, 24 + 32 + 8, 24 + 32 + 9, 88, 92, 96, 104];
        let fields: Vec<String> = fields.iter().map(|&at| field(&module, "obj", at)).collect();
        let expected = [
            "obj.id+0: int (4)",
            "obj.queue.length+0: long int (8)",
            "obj.queue.head+0: node * (8)",
            "obj.queue.slots[2].value+0: int (4)",
            "obj.queue.slots[2].value+1: int (4)",
            "obj.refs+0: _Atomic int (4) atomic",
            "obj.whole+0: int (4)",
            "obj.last.next+0: node * (8)",
            "obj.last.value+0: int (4)",
        ];
        // GCC does not say `_Atomic` before DWARF 5.
        let knows_atomic = !flags.contains(&"-gdwarf-4");
        let atomic = |text: &str| match knows_atomic {
            true => text.to_owned(),
            false => text
                .replace("_Atomic ", "")
                .trim_end_matches(" atomic")
                .to_owned(),
        };
        assert_eq!(fields, expected.map(atomic), "{flags:?}");
        assert_eq!(
            field(&module, "table", 4 * (2 * 5 + 3)),
            "table[2][3]+0: int (4)"
        );
        assert_eq!(
            field(&module, "counter", 0),
            atomic("counter+0: _Atomic long int (8) atomic")
        );
        assert_eq!(
            field(&module, "total", 0),
            atomic("total+0: atomic_int (4) atomic")
        );
        assert_eq!(field(&module, "flag", 0), "flag+0: volatile int (4)");
        assert_eq!(
            field(&module, "message", 0),
            "message+0: const char * const (8)"
        );
    }
}

#[test]
fn function_statics_know_their_function_and_thread_locals_are_not_globals() {
    let module = compile("program.c", &["-g", "-O2"]).module();
    let calls = variable(&module, "calls");
    assert_eq!(calls.qualified_name(), "work::calls");
    let line = calls.declared_at.as_ref().unwrap().line;
    assert_eq!(line, mark("program.c", "calls") - 1);
    assert_eq!(debug(&module).variables_named("work::calls").len(), 1);
    assert_eq!(debug(&module).variables_named("per_thread").len(), 0);
    assert_eq!(debug(&module).variable_at(LinkAddr(0)), None);
}

#[test]
fn cpp_members_atomics_and_namespaces_are_named() {
    for flags in [
        &["-g", "-O0"][..],
        &["-g", "-O2"],
        &["-gdwarf-4", "-O2", "-static"],
    ] {
        let module = compile("program.cpp", flags).module();
        assert_eq!(
            variable(&module, "outer::hits").qualified_name(),
            "outer::hits"
        );
        assert_eq!(
            field(&module, "outer::hits", 0),
            "hits+0: atomic<int> (4) atomic"
        );
        assert_eq!(
            field(&module, "outer::door", 0),
            "door+0: atomic_flag (1) atomic"
        );
        assert_eq!(
            field(&module, "outer::Account::opened", 0),
            "opened+0: int (4)"
        );
        // The base class has its table pointer at 0 and its tag at 8; the mutex is 40 bytes at 16.
        assert_eq!(
            field(&module, "outer::account", 8),
            "account.tag+0: long int (8)"
        );
        assert_eq!(
            field(&module, "outer::account", 56),
            "account.balance+0: atomic<long int> (8) atomic"
        );
        let lock = variable(&module, "outer::account").field_at(debug(&module), 16);
        assert!(
            lock.path.starts_with("account.lock.") && !lock.is_atomic,
            "{lock:?}"
        );

        let deposit = module.symbols().by_path("outer::Account::deposit");
        assert_eq!(deposit.len(), 1, "{flags:?}");
        assert_eq!(deposit[0].demangled(), "outer::Account::deposit(long)");
        assert_eq!(module.symbols().by_path("outer::twice").len(), 2);
        let place = module.place_of(deposit[0].address);
        assert_eq!(
            place.function().as_deref(),
            Some("outer::Account::deposit(long)")
        );
    }
}

#[test]
fn cpp_atomic_operations_are_found_where_they_were_inlined() {
    let module = compile("program.cpp", &["-g", "-O2"]).module();
    let calls = debug(&module).inlined_calls("std::__atomic_base<int>::store");
    let by_path = debug(&module).inlined_calls("std::__atomic_base::store");
    assert!(!by_path.is_empty() && calls.is_empty());
    let outermost = debug(&module).scopes_at(by_path[0].ranges[0].start);
    assert_eq!(
        &*outermost.last().unwrap().name,
        "outer::Account::deposit(long)"
    );
    let lines: Vec<u32> = outermost
        .iter()
        .filter_map(|scope| scope.called_at.as_ref())
        .map(|call| call.line)
        .collect();
    assert!(lines.contains(&mark("program.cpp", "store")), "{lines:?}");
}

#[test]
fn rust_statics_atomics_and_inlined_stores_are_named() {
    for flags in [&["-g", "-Copt-level=0"][..], &["-g", "-Copt-level=2"]] {
        let module = compile("program.rs", flags).module();
        let debug = debug(&module);
        // The optimiser keeps only the parts that change, each at an address of its own.
        let parts = debug.variables_named("program::SHARED");
        let fields = parts.iter().flat_map(|part| {
            let field = |at| part.field_at(debug, at);
            (0..part.size).map(field).filter(|field| field.rest == 0)
        });
        let all: Vec<(String, bool)> = fields.map(|f| (f.path, f.is_atomic)).collect();
        let has = |path: &str, is_atomic| all.contains(&(path.to_owned(), is_atomic));
        assert!(
            has("SHARED.ready", true) && has("SHARED.pair.1", true),
            "{all:?}"
        );
        let is_whole = flags[1] == "-Copt-level=0";
        assert_eq!(has("SHARED.pair.0", false), is_whole, "{all:?}");
        assert_eq!(has("SHARED.name[7]", false), is_whole, "{all:?}");
        assert_eq!(module.symbols().by_path("program::publish").len(), 1);
    }
    let module = compile("program.rs", &["-g", "-Copt-level=2"]).module();
    let publish = module.symbols().by_path("program::publish")[0];
    let range = publish.address.0..publish.address.0 + publish.size;
    let calls = debug(&module).inlined_calls("core::sync::atomic::atomic_store");
    let own = calls
        .iter()
        .filter(|call| range.contains(&call.ranges[0].start.0));
    assert_eq!(own.count(), 2, "{calls:?}");
}

#[test]
fn separate_debug_files_are_found_by_build_id_and_by_link() {
    let program = compile("program.c", &["-g", "-O2"]);
    let whole = program.module();
    let work = whole.symbols().by_name("work")[0].address;
    let stripped = program.path.with_extension("stripped");
    let separate = program.path.with_file_name("separate.debug");
    succeed(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .args([&program.path, &separate]),
    );
    let link = format!("--add-gnu-debuglink={}", separate.display());
    succeed(
        Command::new("objcopy")
            .arg("-S")
            .arg(link)
            .args([&program.path, &stripped]),
    );
    let bytes = std::fs::read(&stripped).unwrap();

    let alone = Module::parse_alone(bytes.clone()).unwrap();
    assert!(alone.debug_info().is_none());
    assert_eq!(alone.symbols().by_name("work").len(), 0);

    let finder = DebugFileFinder::new("/nonexistent").beside(&stripped);
    let linked = Module::parse(bytes.clone(), &mut |request| finder.fetch(request)).unwrap();
    assert_eq!(linked.place_of(work), whole.place_of(work));
    assert_eq!(linked.symbols().by_name("work").len(), 1);

    let root = tempfile::tempdir().unwrap();
    let id = whole.build_id().unwrap().to_string();
    let folder = root.path().join(".build-id").join(&id[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(&separate, folder.join(format!("{}.debug", &id[2..]))).unwrap();
    let finder = DebugFileFinder::new(root.path());
    let by_id = Module::parse(bytes.clone(), &mut |request| finder.fetch(request)).unwrap();
    assert_eq!(by_id.place_of(work), whole.place_of(work));

    let wrong = compile("program.c", &["-g", "-O0"]).bytes();
    let refused = Module::parse(bytes, &mut |_| Some(wrong.clone())).unwrap();
    assert!(refused.debug_info().is_none());
    let reasons: Vec<String> = refused
        .incomplete()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        reasons,
        ["separate debug file: the build-id or checksum differs"; 2]
    );
}

#[test]
fn answers_do_not_depend_on_the_order_of_questions() {
    let program = compile("program.c", &["-g", "-O2"]);
    let (forward, backward) = (program.module(), program.module());
    let work = forward.symbols().by_name("work")[0];
    let addresses: Vec<LinkAddr> = (0..work.size).map(|at| work.address.plus(at)).collect();
    let one: Vec<_> = addresses.iter().map(|&at| forward.place_of(at)).collect();
    let mut other: Vec<_> = addresses
        .iter()
        .rev()
        .map(|&at| backward.place_of(at))
        .collect();
    other.reverse();
    assert_eq!(one, other);
}

#[test]
fn information_that_dwz_moved_to_a_shared_file_is_found_there() {
    let one = compile("program.c", &["-g", "-O2"]);
    let two = compile("program.c", &["-g", "-O0"]);
    let whole = one.module();
    let shared = one.path.with_file_name("shared.debug");
    succeed(
        Command::new("dwz")
            .args(["-l", "none", "-L", "none", "-m"])
            .arg(&shared)
            .args([&one.path, &two.path]),
    );
    let finder = DebugFileFinder::new("/nonexistent");
    let bytes = one.bytes();
    let mut asked = Vec::new();
    let moved = Module::parse(bytes.clone(), &mut |request| {
        asked.push(request.clone());
        finder.fetch(request)
    })
    .unwrap();
    assert!(
        matches!(asked.as_slice(), [DebugRequest::Shared { .. }]),
        "{asked:?}"
    );
    assert_eq!(field(&moved, "obj", 16), "obj.queue.head+0: node * (8)");
    assert_eq!(field(&moved, "counter", 0), field(&whole, "counter", 0));
    let work = whole.symbols().by_name("work")[0];
    for at in 0..work.size {
        let at = work.address.plus(at);
        assert_eq!(moved.place_of(at), whole.place_of(at));
    }
    // Without the shared file names and types are missing, but nothing else breaks.
    let alone = Module::parse_alone(bytes).unwrap();
    assert_eq!(
        alone.place_of(work.address).line,
        whole.place_of(work.address).line
    );
}

#[test]
fn the_debug_file_of_the_c_library_answers_for_its_internals() {
    let bytes = std::fs::read("/lib/x86_64-linux-gnu/libc.so.6").unwrap();
    let finder = DebugFileFinder::default();
    let module = Module::parse(bytes, &mut |request| finder.fetch(request)).unwrap();
    let debug = debug(&module);
    let lock = module.symbols().by_name("pthread_mutex_lock")[0];
    let place = module.place_of(lock.address);
    assert!(
        place
            .line
            .as_ref()
            .unwrap()
            .file
            .ends_with("nptl/pthread_mutex_lock.c"),
        "{place:?}"
    );
    let arena = debug.variables_named("main_arena");
    assert_eq!(arena.len(), 1);
    assert_eq!(arena[0].field_at(debug, 0).path, "main_arena.mutex");
    let internal = module.symbols().by_name("_int_malloc");
    assert_eq!(internal.len(), 1, "the local symbols are in the debug file");
    assert_eq!(module.incomplete(), []);
}
