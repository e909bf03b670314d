//! Stacks and local variables of a program that dumps its own registers and memory.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use crate::fixture::{compile, hex, mark, system_module};
use raddle_symbols::dwarf::{LocalPlace, LocalQuestion};
use raddle_symbols::space::Mapping;
use raddle_symbols::unwind::{CallFrames, Machine, RIP};
use raddle_symbols::{FileMapping, Frame, Module, Registers, SymbolSpace};
use raddle_testkit::succeed;

/// What the program printed about itself, with its modules mapped.
struct Dump {
    registers: Registers,
    memory: BTreeMap<u64, u64>,
    space: SymbolSpace,
}

impl Dump {
    fn take(flags: &[&str], arguments: &[&str]) -> Self {
        let program = compile("stack.c", flags);
        let text = succeed(Command::new(&program.path).args(arguments));
        let mut dump = Self {
            registers: Registers::default(),
            memory: BTreeMap::new(),
            space: SymbolSpace::default(),
        };
        let mut modules = BTreeMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words.as_slice() {
                ["reg", number, value] => {
                    dump.registers
                        .set(number.parse().expect("a register number"), Some(hex(value)));
                }
                ["mem", address, value] => {
                    dump.memory.insert(hex(address), hex(value));
                }
                ["map", range, access, offset, _, _, path] if path.starts_with('/') => {
                    dump.map(&mut modules, (range, access, hex(offset)), path);
                }
                _ => {}
            }
        }
        dump
    }

    fn map(
        &mut self,
        modules: &mut BTreeMap<String, Arc<Module>>,
        (range, access, file_offset): (&str, &str, u64),
        path: &str,
    ) {
        let (start, end) = range.split_once('-').expect("a range of addresses");
        let at = hex(start);
        let module = modules
            .entry(path.to_owned())
            .or_insert_with(|| Arc::new(system_module(path)));
        let mapping = FileMapping {
            at,
            file_offset,
            is_writable: access.contains('w'),
            is_executable: access.contains('x'),
            bias_before: None,
        };
        let bias = module
            .bias_of_mapping(mapping)
            .expect("the loader maps segments");
        let (name, module) = (Arc::from(path), Arc::clone(module));
        let end = hex(end);
        self.space.map(
            at,
            Mapping {
                end,
                bias,
                name,
                module,
            },
        );
    }

    fn frames(&self) -> Vec<Frame> {
        let mut read = |at: u64| self.memory.get(&at).copied();
        self.space.unwind(self.registers, &mut read, 64)
    }

    /// `function:line` of each frame, `function` where there is no line.
    fn stack(&self) -> Vec<String> {
        let describe = |frame: &Frame| {
            let place = self.space.symbolise(frame.lookup_address()?)?;
            let function = place.function?.to_string();
            Some(match place.line {
                Some(line) => format!("{function}:{}", line.line),
                None => function,
            })
        };
        let name = |frame| describe(frame).unwrap_or_else(|| "?".to_owned());
        self.frames().iter().map(name).collect()
    }
}

const VARIANTS: &[&[&str]] = &[
    &["-g", "-O0", "-fno-omit-frame-pointer"],
    &[
        "-g",
        "-O2",
        "-fomit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ],
    &["-g", "-O1", "-no-pie", "-fomit-frame-pointer"],
    &["-g", "-O2", "-static", "-fno-optimize-sibling-calls"],
];

fn at(function: &str, word: &str) -> String {
    format!("{function}:{}", mark("stack.c", word))
}

#[test]
fn stacks_without_frame_pointers_reach_the_start_of_the_program() {
    for flags in VARIANTS {
        let stack = Dump::take(flags, &[]).stack();
        let expected = [
            at("leaf", "capture"),
            at("middle", "middle"),
            at("outer", "outer"),
            at("main", "main"),
        ];
        assert_eq!(stack[..4], expected, "{flags:?}: {stack:?}");
        assert_eq!(
            stack.last().map(String::as_str),
            Some("_start"),
            "{flags:?}: {stack:?}"
        );
        assert!(stack.len() <= 7, "{stack:?}");
    }
}

#[test]
fn stacks_go_through_signal_frames_to_the_very_instruction() {
    for flags in VARIANTS {
        let stack = Dump::take(flags, &["fault"]).stack();
        assert_eq!(
            stack[..3],
            [
                at("leaf", "capture"),
                at("middle", "middle"),
                at("handler", "handler")
            ],
            "{flags:?}: {stack:?}"
        );
        let faulting = stack
            .iter()
            .position(|frame| *frame == at("outer", "fault"));
        assert_eq!(faulting, Some(4), "{flags:?}: {stack:?}");
        assert_eq!(stack[5], at("main", "main"), "{flags:?}: {stack:?}");
    }
}

#[test]
fn locals_are_found_in_memory() {
    let dump = Dump::take(&["-g", "-O2", "-fomit-frame-pointer"], &[]);
    let mut frame = dump.frames()[0];
    let pc = frame.registers.pc().unwrap();
    let mapping = dump.space.mapping_at(pc).unwrap();
    let mut read = |at: u64| dump.memory.get(&at).copied();
    frame.cfa = frame
        .cfa
        .or_else(|| cfa_of(mapping.module.call_frames(), &frame, mapping, &mut read));
    let debug = mapping.module.debug_info().unwrap();
    let mut question = LocalQuestion {
        at: mapping.link(pc),
        bias: mapping.bias,
        machine: Machine {
            registers: frame.registers,
            cfa: frame.cfa,
            read: &mut read,
        },
    };
    let locals = debug.locals(&mut question);
    let names: Vec<&str> = locals.iter().map(|local| &*local.name).collect();
    assert_eq!(names, ["a", "b", "first", "pair"]);
    assert!(locals[0].is_parameter && !locals[2].is_parameter);
    let word = |index: usize, offset: u64| match locals[index].place {
        LocalPlace::Memory(address) => dump.memory.get(&(address + offset)).copied(),
        _ => None,
    };
    // `outer(1)` calls `middle(1)`, which fills its buffer with 1 and calls `leaf(2, 1)`.
    assert_eq!(word(2, 0), Some(3), "{locals:?}");
    assert_eq!((word(3, 0), word(3, 8)), (Some(1), Some(2)), "{locals:?}");
    let field = debug.field_at(locals[3].type_ref.unwrap(), 8).unwrap();
    assert_eq!(field.path, ".y");
}

fn cfa_of(
    frames: &CallFrames,
    frame: &Frame,
    mapping: &Mapping,
    read: &mut dyn FnMut(u64) -> Option<u64>,
) -> Option<u64> {
    let mut machine = Machine {
        registers: frame.registers,
        cfa: None,
        read,
    };
    let at = mapping.link(frame.lookup_address()?);
    Some(frames.step(at, mapping.bias, &mut machine)?.cfa)
}

#[test]
fn unwinding_garbage_ends() {
    let dump = Dump::take(&["-g", "-O2"], &[]);
    let mut registers = dump.registers;
    // A stack on which every word is the same code address never gets anywhere higher than itself for long.
    let pc = registers.pc().unwrap();
    let mut read = |_| Some(pc);
    assert_eq!(dump.space.unwind(registers, &mut read, 50).len(), 50);
    let mut nothing = |_| None;
    assert_eq!(dump.space.unwind(registers, &mut nothing, 50).len(), 1);
    registers.set(RIP, Some(0xdead_beef));
    let mut read = |at: u64| dump.memory.get(&at).copied();
    assert_eq!(dump.space.unwind(registers, &mut read, 50).len(), 1);
    assert_eq!(dump.space.unwind(registers, &mut read, 0).len(), 0);
}
