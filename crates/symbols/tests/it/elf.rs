//! Names and headers of compiled programs and system libraries, checked against binutils.

use std::collections::BTreeSet;
use std::process::Command;

use crate::fixture::{compile, hex, system_module};
use raddle_symbols::{FileMapping, LinkAddr, Module, ModuleError, SymbolKind};
use raddle_testkit::succeed;

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";

/// `ADDRESS <name@plt>:` lines of the disassembler for the stub sections.
fn stubs_by_objdump(path: &str) -> BTreeSet<(u64, String)> {
    let sections = ["-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got"];
    let text = succeed(Command::new("objdump").arg("-d").args(sections).arg(path));
    let lines = text.lines().filter_map(|line| line.strip_suffix(">:"));
    lines
        .filter_map(|line| line.split_once(" <"))
        .filter(|(_, name)| name.ends_with("@plt") && !name.starts_with("*ABS*"))
        .map(|(address, name)| {
            let base = name
                .trim_end_matches("@plt")
                .split('@')
                .next()
                .unwrap_or_default();
            (hex(address), format!("{base}@plt"))
        })
        .collect()
}

fn stubs(module: &Module) -> BTreeSet<(u64, String)> {
    let plt = module
        .symbols()
        .iter()
        .filter(|s| s.kind == SymbolKind::Plt);
    plt.map(|s| (s.address.0, s.name.to_string())).collect()
}

#[test]
fn functions_are_found_by_name_and_by_every_address_in_them() {
    for flags in [
        &["-O0"][..],
        &["-O2"],
        &["-no-pie"],
        &["-static"],
        &["-static-pie"],
    ] {
        let program = compile("program.c", flags);
        let module = program.module();
        let found = module.symbols().by_name("work");
        let [work] = found.as_slice() else {
            panic!("{flags:?}: {found:?}");
        };
        assert_eq!(work.kind, SymbolKind::Function);
        for at in work.address.0..work.address.0 + work.size {
            let symbol = module.symbols().function_at(LinkAddr(at)).unwrap();
            assert_eq!(&*symbol.name, "work", "{flags:?} {at:#x}");
        }
        let after = module
            .symbols()
            .function_at(LinkAddr(work.address.0 + work.size));
        assert_ne!(after.map(|s| &*s.name), Some("work"));
        assert_eq!(
            module.symbols().by_name("no_such_function"),
            Vec::<&_>::new()
        );
    }
}

#[test]
fn headers_say_how_the_program_is_linked() {
    let pie = compile("program.c", &[]).module();
    assert!(pie.is_position_independent());
    assert_eq!(pie.interpreter(), Some("/lib64/ld-linux-x86-64.so.2"));
    assert_eq!(pie.needed(), ["libc.so.6"]);
    assert_eq!(pie.build_id().map(|id| id.0.len()), Some(20));
    let start = pie.symbols().function_at(pie.entry()).unwrap();
    assert_eq!(&*start.name, "_start");

    let fixed = compile("program.c", &["-no-pie", "-static", "-Wl,--build-id=none"]).module();
    assert!(!fixed.is_position_independent());
    assert_eq!((fixed.interpreter(), fixed.build_id()), (None, None));
    assert_eq!(fixed.segments()[0].address, LinkAddr(0x40_0000));
    assert!(fixed.is_code(fixed.entry()));
}

#[test]
fn build_ids_agree_with_readelf() {
    let program = compile("program.c", &[]);
    let text = succeed(Command::new("readelf").arg("-n").arg(&program.path));
    let id = program.module().build_id().unwrap().to_string();
    assert!(text.contains(&format!("Build ID: {id}")), "{text}");
}

#[test]
fn aliases_share_an_address() {
    let module = compile("program.c", &["-O2"]).module();
    let alias = module.symbols().by_name("alias_of")[0].address;
    let names: Vec<&str> = module
        .symbols()
        .starting_at(alias)
        .iter()
        .map(|s| &*s.name)
        .collect();
    assert_eq!(names, ["alias_of", "alias_target"]);
}

#[test]
fn stubs_are_named_as_the_disassembler_names_them() {
    for flags in [
        &["-O0"][..],
        &["-O0", "-fcf-protection=full", "-Wl,-z,ibtplt"],
        &["-O0", "-Wl,-z,now"],
        &["-O0", "-no-pie"],
    ] {
        let program = compile("program.c", flags);
        let expected = stubs_by_objdump(program.path.to_str().unwrap());
        assert!(
            expected.iter().any(|(_, name)| name == "strcpy@plt"),
            "{flags:?}"
        );
        let found = stubs(&program.module());
        // With indirect-branch tracking we also name the lazy half of each stub, which objdump does not.
        assert!(
            found.is_superset(&expected),
            "{flags:?}: {found:?} {expected:?}"
        );
        let names = |set: &BTreeSet<(u64, String)>| -> BTreeSet<String> {
            set.iter().map(|(_, name)| name.clone()).collect()
        };
        assert_eq!(names(&found), names(&expected), "{flags:?}");
    }
    let bash = stubs_by_objdump("/bin/bash");
    assert!(bash.len() > 100);
    assert!(stubs(&system_module("/bin/bash")).is_superset(&bash));
}

#[test]
fn import_slots_name_what_they_will_hold() {
    let module = compile("program.c", &["-O0", "-fno-plt"]).module();
    let names: Vec<&str> = module.imports().iter().map(|i| i.name.as_str()).collect();
    assert!(
        names.contains(&"strcpy") && names.contains(&"printf"),
        "{names:?}"
    );
    let first = &module.imports()[0];
    assert_eq!(module.import_at(first.slot), Some(first));
    assert_eq!(module.import_at(first.slot.plus(1)), None);
}

#[test]
fn pointers_to_the_module_itself_are_known_before_it_is_loaded() {
    for flags in [&["-O0"][..], &["-O0", "-no-pie"]] {
        let module = compile("program.c", flags).module();
        let message = module.symbols().by_name("message")[0].address;
        let text = module.pointer_at(message).unwrap();
        assert_eq!(module.bytes_at(text, 6), b"hello\0", "{flags:?}");
        assert_eq!(module.pointer_at(message.plus(1 << 40)), None);
        let address = |name: &str| module.symbols().by_name(name)[0].address;
        assert!(module.is_constant(message) && module.is_constant(address("main")));
        assert!(!module.is_constant(address("obj")));
    }
}

#[test]
fn static_programs_have_resolvers_and_stubs_named_after_them() {
    let module = compile("program.c", &["-static", "-no-pie"]).module();
    let strcpy = module.symbols().by_name("strcpy");
    assert_eq!(strcpy[0].kind, SymbolKind::IndirectFunction);
    let stub = module.symbols().by_name("strcpy@plt");
    assert_eq!(stub.len(), 1, "{stub:?}");
    assert_eq!(stub[0].kind, SymbolKind::Plt);
}

#[test]
fn dynamic_symbols_of_libc_are_those_of_nm() {
    let module = system_module(LIBC);
    let text = succeed(Command::new("nm").args(["-D", "--defined-only", LIBC]));
    let mut checked = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [address, kind, name] = words.as_slice() else {
            continue;
        };
        if *kind == "A" {
            continue;
        }
        let address = hex(address);
        let found = module.symbols().by_name(name);
        let is_there = found
            .iter()
            .any(|s| s.address.0 == address && s.to_string() == *name);
        assert!(is_there, "{line}: {found:?}");
        checked += 1;
    }
    assert!(checked > 2000, "{checked}");
    assert_eq!(module.soname(), Some("libc.so.6"));
}

#[test]
fn versions_and_aliases_of_pthread_functions_are_found() {
    let module = system_module(LIBC);
    let symbols = module.symbols();
    let lock = symbols.by_name("pthread_mutex_lock");
    let internal = symbols.by_name("__pthread_mutex_lock");
    assert!(!lock.is_empty() && !internal.is_empty());
    assert_eq!(lock[0].address, internal[0].address);
    let name = &symbols.function_at(internal[0].address).unwrap().name;
    assert_eq!(&**name, "pthread_mutex_lock");
    let all = symbols.by_name("pthread_create");
    let new = symbols.by_name("pthread_create@GLIBC_2.34");
    let old = symbols.by_name("pthread_create@GLIBC_2.2.5");
    assert!(
        all.len() >= 2 && new.len() == 1 && old.len() == 1,
        "{all:?}"
    );
    assert!(new[0].version.as_ref().unwrap().is_default);
    assert!(!old[0].version.as_ref().unwrap().is_default);
    assert_eq!(
        symbols.by_name("memcpy@@GLIBC_2.14")[0].kind,
        SymbolKind::IndirectFunction
    );
}

#[test]
fn stripped_programs_keep_their_dynamic_names() {
    let program = compile("program.c", &["-s", "-rdynamic"]);
    let module = program.module();
    assert_eq!(module.symbols().by_name("work").len(), 1);
    assert_eq!(module.symbols().by_name("square").len(), 0);
}

#[test]
fn mappings_give_back_the_bias() {
    // The linker of rustc writes two writable segments, the second of which begins in the last page of the first.
    for (name, flags) in [("program.c", [].as_slice()), ("program.rs", &["-g"])] {
        check_bias(&compile(name, flags).module());
    }
}

fn check_bias(module: &Module) {
    let bias = 0x5555_5555_4000;
    for segment in module.segments() {
        let page = segment.file_offset & !0xFFF;
        let at = bias + (segment.address.0 & !0xFFF);
        let mapping = FileMapping {
            at,
            file_offset: page,
            is_writable: segment.is_writable,
            is_executable: segment.is_executable,
            bias_before: None,
        };
        assert_eq!(module.bias_of_mapping(mapping), Some(bias), "{segment:?}");
        let elsewhere = FileMapping {
            file_offset: u64::MAX / 2,
            ..mapping
        };
        assert_eq!(module.bias_of_mapping(elsewhere), None);
    }
}

#[test]
fn what_is_not_a_module_is_refused_with_the_reason() {
    let error = |bytes: &[u8]| Module::parse_alone(bytes).err().unwrap();
    assert_eq!(error(b""), ModuleError::NotElf { magic: vec![] });
    assert_eq!(
        error(b"#!/bin/sh\n"),
        ModuleError::NotElf {
            magic: b"#!/b".to_vec()
        }
    );
    let good = compile("program.c", &[]).bytes();
    let patched = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        error(&bytes)
    };
    assert_eq!(
        patched(4, 1),
        ModuleError::UnsupportedClass {
            class: 1,
            encoding: 1
        }
    );
    assert_eq!(
        patched(18, 3),
        ModuleError::UnsupportedMachine { machine: 3 }
    );
    assert_eq!(patched(16, 4), ModuleError::UnsupportedType { kind: 4 });
    assert!(matches!(error(&good[..40]), ModuleError::Malformed { .. }));
}
