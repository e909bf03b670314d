//! Several modules in one address space.

use std::sync::Arc;

use crate::fixture::{compile, mark};
use raddle_symbols::space::Mapping;
use raddle_symbols::{KernelSymbols, SymbolSpace};

const BIAS: u64 = 0x5555_5555_4000;

fn shown(space: &SymbolSpace, address: u64) -> Option<String> {
    space.symbolise(address).map(|place| place.to_string())
}

#[test]
fn addresses_are_told_apart_by_the_module_that_is_mapped_there() {
    let one = Arc::new(compile("program.c", &["-g", "-O0"]).module());
    let two = Arc::new(compile("stack.c", &["-O2"]).module());
    let mut space = SymbolSpace::default();
    space.map_module("one", BIAS, &one);
    space.map_module("two", BIAS + 0x1000_0000, &two);
    let work = BIAS + one.symbols().by_name("work")[0].address.0;
    let leaf = BIAS + 0x1000_0000 + two.symbols().by_name("leaf")[0].address.0;
    let file = crate::fixture::source("program.c");
    let line = mark("program.c", "open");
    let expected = format!("work at {}:{line}", file.display());
    assert_eq!(shown(&space, work), Some(expected));
    assert_eq!(shown(&space, leaf + 1).as_deref(), Some("leaf+0x1 in two"));
    assert_eq!(shown(&space, 0x1000), None);
    assert_eq!(space.addresses_of("work"), [work]);
    assert_eq!(space.addresses_of("main").len(), 2);
    assert_eq!(space.modules().len(), 2);

    let before = space.clone();
    let all: Vec<_> = space.mappings().map(|(range, _)| range).collect();
    for range in all {
        space.unmap(range);
    }
    assert_eq!(
        (shown(&space, work), space.addresses_of("work").len()),
        (None, 0)
    );
    assert!(shown(&before, work).is_some());
}

#[test]
fn inlined_frames_are_listed_from_the_inside_out() {
    let module = Arc::new(compile("program.c", &["-g", "-O2"]).module());
    let mut space = SymbolSpace::default();
    space.map_module("program", BIAS, &module);
    let call = &module.debug_info().unwrap().inlined_calls("square")[0];
    let place = space.symbolise(BIAS + call.ranges[0].start.0).unwrap();
    assert_eq!(place.function.as_deref(), Some("square"));
    assert_eq!(place.line.unwrap().line, mark("program.c", "square"));
    let [caller] = place.inlined_by.as_slice() else {
        panic!("{:?}", place.inlined_by);
    };
    assert_eq!(&*caller.function, "work");
    assert_eq!(caller.line, call.called_at);
    let (symbol, _) = place.symbol.unwrap();
    assert_eq!(&*symbol, "work");
}

#[test]
fn unmapping_the_middle_of_a_mapping_leaves_both_ends() {
    let module = Arc::new(compile("program.c", &[]).module());
    let mut space = SymbolSpace::default();
    let mapping = |end, bias| Mapping {
        end,
        bias,
        name: Arc::from("m"),
        module: Arc::clone(&module),
    };
    space.map(0x1000, mapping(0x9000, 0x1000));
    space.unmap(0x3000..0x4000);
    space.map(0x6000, mapping(0x7000, 0x6000));
    let ranges: Vec<_> = space
        .mappings()
        .map(|(range, mapping)| (range.start, range.end, mapping.bias))
        .collect();
    assert_eq!(
        ranges,
        [
            (0x1000, 0x3000, 0x1000),
            (0x4000, 0x6000, 0x1000),
            (0x6000, 0x7000, 0x6000),
            (0x7000, 0x9000, 0x1000),
        ]
    );
    assert_eq!(space.mapping_at(0x3000).map(|m| m.bias), None);
    assert_eq!(space.mapping_at(0x6fff).map(|m| m.bias), Some(0x6000));
}

#[test]
fn kernel_symbols_answer_where_no_module_is() {
    let list = "ffffffff81000000 T startup_64\nffffffffc0000000 t ext4_read [ext4]\n";
    let mut space = SymbolSpace::default();
    space.set_kernel(Arc::new(KernelSymbols::parse(list).unwrap()));
    let at = |address| shown(&space, address);
    assert_eq!(
        at(0xffff_ffff_8100_0004).as_deref(),
        Some("startup_64+0x4 in kernel")
    );
    assert_eq!(
        at(0xffff_ffff_c000_0010).as_deref(),
        Some("ext4_read+0x10 in ext4")
    );
    assert_eq!(space.addresses_of("ext4_read"), [0xffff_ffff_c000_0000]);
    assert_eq!(at(0x40_0000), None);
}

#[test]
fn data_is_named_by_debug_information_or_else_by_symbol() {
    let named = Arc::new(compile("program.c", &["-g", "-O2"]).module());
    let plain = Arc::new(compile("program.c", &["-O2"]).module());
    for (module, path, rest, size) in [
        (&named, "obj.queue.slots[2].value", 1, 4),
        (&plain, "obj", 65, 112),
    ] {
        let mut space = SymbolSpace::default();
        space.map_module("program", BIAS, module);
        let obj = BIAS + module.symbols().by_name("obj")[0].address.0;
        let place = space.data_at(obj + 65).unwrap();
        assert_eq!((&*place.path, place.rest, place.size), (path, rest, size));
        assert_eq!(space.data_at(BIAS + (1 << 30)), None);
    }
    let mut space = SymbolSpace::default();
    space.map_module("program", BIAS, &named);
    let calls = named.debug_info().unwrap().variables_named("calls")[0]
        .address
        .0;
    let place = space.data_at(BIAS + calls).unwrap();
    assert_eq!((&*place.path, &*place.type_name), ("work::calls", "int"));
    assert_eq!(
        place.declared_at.unwrap().line,
        mark("program.c", "calls") - 1
    );
}

#[test]
fn lines_and_paths_have_run_time_addresses() {
    let module = Arc::new(compile("program.cpp", &["-g", "-O2"]).module());
    let mut space = SymbolSpace::default();
    space.map_module("program", BIAS, &module);
    let line = mark("program.cpp", "store");
    let ranges = space.ranges_of_line("program.cpp", line);
    assert!(!ranges.is_empty());
    for range in ranges {
        let place = space.symbolise(range.start).unwrap();
        let (symbol, _) = place.symbol.unwrap();
        assert_eq!(&*symbol, "_ZN5outer7Account7depositEl");
    }
    let deposit = module.symbols().by_name("_ZN5outer7Account7depositEl")[0]
        .address
        .0;
    assert_eq!(
        space.addresses_of_path("outer::Account::deposit"),
        [BIAS + deposit]
    );
    assert_eq!(space.ranges_of_line("other.cpp", line), []);
}

#[test]
fn modules_and_spaces_can_be_shared_by_host_threads() {
    fn shared<T: Send + Sync>(value: T) -> T {
        value
    }
    // That it compiles is the test; the calls keep it honest.
    assert_eq!(shared(SymbolSpace::default()).modules().len(), 0);
    let _: std::marker::PhantomData<raddle_symbols::Module> = shared(std::marker::PhantomData);
}
