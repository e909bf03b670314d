//! Lines, inlined functions, variables and types of compiled programs.

mod fixture;

use std::process::Command;

use fixture::{Program, compile, mark, run};
use raddle_symbols::dwarf::{DebugInfo, Variable};
use raddle_symbols::{DebugFileFinder, LinkAddr, Module};

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
        panic!("{name}: {found:?}");
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
            for at in function.address.0..function.address.0 + function.size {
                assert_eq!(
                    frames(&module, at),
                    vec![at.to_string()]
                        .into_iter()
                        .chain(by_addr2line(&program, at))
                        .skip(1)
                        .collect::<Vec<_>>(),
                    "{flags:?} {at:#x}"
                );
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

fn by_addr2line(program: &Program, at: u64) -> Vec<String> {
    let text = run(Command::new("addr2line")
        .args(["-f", "-i", "-e"])
        .arg(&program.path)
        .arg(format!("{at:#x}")));
    let lines: Vec<&str> = text.lines().collect();
    let frame = |pair: &[&str]| {
        let place = pair[1].split(" (discriminator").next().unwrap();
        let line = place.rsplit(':').next().unwrap();
        format!("{} {}", pair[0], line.replace('?', "0"))
    };
    lines.chunks_exact(2).map(frame).collect()
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
            assert_eq!(debug(&module).line_at(range.start).unwrap().line, print);
            let symbol = module.symbols().function_at(range.start).unwrap();
            assert_eq!(&*symbol.name, "main", "{flags:?}");
        }
        // The line with the `static` declaration has no code.
        let calls = mark("program.c", "calls");
        let moved = debug(&module).addresses_of_line("program.c", calls - 1);
        assert_eq!(moved.line, Some(calls), "{flags:?}");
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
        assert_eq!(fields, expected, "{flags:?}");
        assert_eq!(
            field(&module, "table", 4 * (2 * 5 + 3)),
            "table[2][3]+0: int (4)"
        );
        assert_eq!(
            field(&module, "counter", 0),
            "counter+0: _Atomic long int (8) atomic"
        );
        assert_eq!(field(&module, "total", 0), "total+0: atomic_int (4) atomic");
        assert_eq!(field(&module, "flag", 0), "flag+0: volatile int (4)");
        assert_eq!(field(&module, "message", 0), "message+0: const char * (8)");
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
            "account.balance+0: atomic<long> (8) atomic"
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
        let shared = variable(&module, "program::SHARED");
        let debug = debug(&module);
        let all: Vec<(String, bool)> = (0..shared.size)
            .map(|at| shared.field_at(debug, at))
            .map(|field| (field.path, field.is_atomic))
            .collect();
        assert!(all.contains(&("SHARED.ready".to_owned(), true)), "{all:?}");
        assert!(all.contains(&("SHARED.pair.1".to_owned(), true)), "{all:?}");
        assert!(
            all.contains(&("SHARED.pair.0".to_owned(), false)),
            "{all:?}"
        );
        assert!(
            all.contains(&("SHARED.name[7]".to_owned(), false)),
            "{all:?}"
        );
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
    run(Command::new("objcopy")
        .arg("--only-keep-debug")
        .args([&program.path, &separate]));
    let link = format!("--add-gnu-debuglink={}", separate.display());
    run(Command::new("objcopy")
        .arg("-S")
        .arg(link)
        .args([&program.path, &stripped]));
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
