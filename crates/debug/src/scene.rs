//! A thread at a moment of a run: its frames, and the variables that they see.

use std::sync::Arc;

use raddle_symbols::dwarf::{Local, LocalPlace, LocalQuestion};
use raddle_symbols::unwind::{Frame, Machine};
use raddle_symbols::{Mapping, Registers, SymbolSpace};
use raddle_world::{ContextId, Inspect};

use crate::value::{At, Typed};

/// Frames of a stack at most.
pub const FRAMES_MAX: usize = 128;

/// A thread at a moment.
#[derive(Debug)]
pub struct Scene<'w, W: ?Sized> {
    pub(crate) world: &'w mut W,
    pub(crate) who: ContextId,
    pub(crate) symbols: SymbolSpace,
}

/// A function in progress.
#[derive(Debug, Clone)]
pub struct StackFrame {
    pub function: String,
    /// File and line; none without debug information.
    pub place: Option<(Arc<str>, u32)>,
    /// An address inside the instruction in progress.
    pub pc: u64,
    /// Whether its call was replaced by its body: it has no frame of its own.
    pub is_inlined: bool,
    pub(crate) frame: Frame,
}

/// A variable that a frame sees.
#[derive(Debug, Clone)]
pub struct Variable {
    pub name: String,
    pub is_parameter: bool,
    pub value: Typed,
}

impl<'w, W: Inspect + ?Sized> Scene<'w, W> {
    pub fn new(world: &'w mut W, who: ContextId, symbols: SymbolSpace) -> Self {
        Self {
            world,
            who,
            symbols,
        }
    }

    /// The frames, innermost first; at most so many.
    pub fn frames(&mut self, frames_max: usize) -> Vec<StackFrame> {
        let Some(cpu) = self.world.cpu(self.who) else {
            return Vec::new();
        };
        let registers = Registers::of_machine(cpu.general(), cpu.rip);
        let (world, who) = (&mut *self.world, self.who);
        let read = &mut |addr| word(world, who, addr);
        // One more, since the frame address of each is known from its caller.
        let frames = self
            .symbols
            .unwind(registers, read, frames_max.saturating_add(1));
        let mut told: Vec<StackFrame> = Vec::new();
        for frame in frames.into_iter().take(frames_max) {
            told.extend(self.functions_of(frame));
        }
        told
    }

    /// The functions of one frame: those that were inlined, and the one around them.
    fn functions_of(&self, frame: Frame) -> Vec<StackFrame> {
        let Some(pc) = frame.lookup_address() else {
            return Vec::new();
        };
        let unknown = || vec![(format!("{pc:#x}"), None)];
        let functions = self.symbols.symbolise(pc).map_or_else(unknown, |place| {
            let name = place.function.as_deref().unwrap_or("?").to_owned();
            let mut all = vec![(name, place.line)];
            let callers = place.inlined_by.into_iter();
            all.extend(callers.map(|caller| (caller.function.to_string(), caller.line)));
            all
        });
        let last = functions.len() - 1;
        functions
            .into_iter()
            .enumerate()
            .map(|(index, (function, line))| StackFrame {
                function,
                place: line.map(|line| (line.file, line.line)),
                pc,
                is_inlined: index < last,
                frame,
            })
            .collect()
    }

    /// Parameters and local variables of a frame; of several with one name the innermost comes first.
    pub fn locals(&mut self, frame: &StackFrame) -> Vec<Variable> {
        let Some(mapping) = self.symbols.mapping_at(frame.pc).cloned() else {
            return Vec::new();
        };
        let Some(debug) = mapping.module.debug_info() else {
            return Vec::new();
        };
        let (world, who) = (&mut *self.world, self.who);
        let mut question = LocalQuestion {
            at: mapping.link(frame.pc),
            bias: mapping.bias,
            machine: Machine {
                registers: frame.frame.registers,
                cfa: frame.frame.cfa,
                read: &mut |addr| word(world, who, addr),
            },
        };
        let locals = debug.locals(&mut question);
        let parameters = locals.iter().filter(|local| local.is_parameter);
        let others = locals.iter().filter(|local| !local.is_parameter).rev();
        parameters
            .chain(others)
            .map(|local| variable(local, frame, &mapping))
            .collect()
    }

    /// The variables with fixed addresses of the module that a frame belongs to.
    pub fn globals(&self, frame: &StackFrame) -> Vec<Variable> {
        let mapping = self.symbols.mapping_at(frame.pc);
        mapping.map_or_else(Vec::new, |mapping| globals_of(mapping, |_| true))
    }

    /// A variable by its name: of the frame, of its module, of any module.
    pub(crate) fn named(&mut self, frame: Option<&StackFrame>, name: &str) -> Option<Typed> {
        if let Some(frame) = frame {
            let mut locals = self.locals(frame).into_iter();
            if let Some(local) = locals.find(|local| local.name == name) {
                return Some(local.value);
            }
        }
        let own = frame.and_then(|frame| self.symbols.mapping_at(frame.pc));
        let all = self.symbols.modules();
        let matches = |wanted: &str| raddle_symbols::demangle::names_match(wanted, name);
        own.into_iter()
            .chain(all)
            .find_map(|mapping| globals_of(mapping, matches).into_iter().next())
            .map(|variable| variable.value)
    }

    /// A register by its name as debuggers write it, without the dollar.
    pub(crate) fn register(frame: &StackFrame, name: &str) -> Option<u64> {
        let names = [
            "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15", "rip",
        ];
        let name = match name {
            "pc" => "rip",
            "sp" => "rsp",
            "fp" => "rbp",
            name => name,
        };
        let number = names.iter().position(|known| *known == name)?;
        frame.frame.registers.get(u16::try_from(number).ok()?)
    }

    /// Memory as the thread sees it; shorter where it cannot be read.
    pub fn read(&mut self, addr: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let count = self.world.read_bytes(self.who, addr, &mut bytes);
        bytes.truncate(count);
        bytes
    }
}

fn word<W: Inspect + ?Sized>(world: &mut W, who: ContextId, addr: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    let is_whole = world.read_bytes(who, addr, &mut bytes) == bytes.len();
    is_whole.then(|| u64::from_le_bytes(bytes))
}

fn variable(local: &Local, frame: &StackFrame, mapping: &Mapping) -> Variable {
    let at = match local.place {
        LocalPlace::Memory(addr) => At::Memory(addr),
        LocalPlace::Value(value) => At::Word(value),
        LocalPlace::Register(number) => {
            let value = frame.frame.registers.get(number);
            value.map_or(At::Nowhere, At::Word)
        }
        LocalPlace::Unknown => At::Nowhere,
    };
    Variable {
        name: local.name.to_string(),
        is_parameter: local.is_parameter,
        value: Typed::at(mapping, at, local.type_ref),
    }
}

fn globals_of(mapping: &Mapping, wanted: impl Fn(&str) -> bool) -> Vec<Variable> {
    let Some(debug) = mapping.module.debug_info() else {
        return Vec::new();
    };
    let named = debug.variables().iter();
    let named = named.filter(|variable| wanted(&variable.qualified_name()));
    // Optimisers split variables into parts; only whole ones can be read by their type.
    let whole = named.filter(|variable| {
        let size = variable.type_ref.and_then(|of| debug.type_size(of));
        variable.part_offset == 0 && size.is_none_or(|size| size == variable.size)
    });
    whole
        .map(|variable| Variable {
            name: variable.qualified_name(),
            is_parameter: false,
            value: Typed::at(
                mapping,
                At::Memory(variable.address.0.wrapping_add(mapping.bias)),
                variable.type_ref,
            ),
        })
        .collect()
}
