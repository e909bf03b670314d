//! What each context of a run did, instruction by instruction, with registers and accesses to memory if wanted.

use std::collections::BTreeMap;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Formatter as _, IntelFormatter, Register};
use raddle_sched::Follow;
use raddle_trace::Schedule;
use raddle_world::{Access, ContextId, EventKind, Inspect as _, World as _};

use super::names::Names;
use super::run::Rules;
use super::session::Session;
use crate::world::{Executed, KERNEL_HALF};

/// Which instructions are written down, and what of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionOptions {
    /// Counted from the start line, over all processors.
    pub range: Range<u64>,
    /// Registers that changed.
    pub registers: bool,
    /// Accesses to memory, with values.
    pub accesses: bool,
}

/// Accesses of each instruction, by its context and that context's steps before it.
type Accesses = BTreeMap<(ContextId, u64), Vec<Access>>;

/// Runs a schedule and gives the lines of its instructions one after the other, until `line` has seen enough; then the
/// digest of the run, which is that of the recording.
pub fn trace_instructions<E>(
    session: &mut Session<'_>,
    schedule: &Schedule,
    rules: Rules,
    options: &InstructionOptions,
    line: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<u64, E> {
    let names = Names::of(session);
    session.restore();
    let world = &mut session.world;
    rules.apply(world);
    world.observe_memory(options.accesses);
    world.note_instructions(options.range.clone());
    let mut accesses = Accesses::new();
    let mut follow = Follow::new(schedule);
    session.drive(&mut follow, rules.policy(), &mut |_, events| {
        for event in events {
            if let EventKind::Access(access) = &event.kind {
                let of_instruction = accesses.entry((event.context, event.step));
                of_instruction.or_default().push(*access);
            }
        }
    });
    let world = &mut session.world;
    let digest = world.run_digest();
    let executed = world.take_instructions();
    world.observe_memory(false);
    let mut writer = Writer {
        names,
        formatter: formatter(),
        options,
        accesses,
    };
    for executed in &executed {
        let context = &session.world.contexts().get(executed.context).name;
        line(&writer.line(context, executed))?;
    }
    Ok(digest)
}

struct Writer<'a> {
    names: Names<'a>,
    formatter: IntelFormatter,
    options: &'a InstructionOptions,
    accesses: Accesses,
}

impl Writer<'_> {
    fn line(&mut self, context: &str, executed: &Executed) -> String {
        let pc = executed.pc;
        let place = if pc >= KERNEL_HALF {
            self.names.describe(pc)
        } else {
            "user code".to_owned()
        };
        let mut decoder = Decoder::with_ip(64, &executed.bytes, pc, DecoderOptions::NONE);
        let mut text = String::new();
        self.formatter.format(&decoder.decode(), &mut text);
        let mut line = format!(
            "{:>9} {context:20} {pc:016x} {place:40} {text}",
            executed.at
        );
        if self.options.registers {
            for (number, value) in &executed.changed {
                let register = Register::RAX + u32::try_from(*number).unwrap_or(0);
                let name = format!("{register:?}").to_lowercase();
                write_part(&mut line, format_args!("{name} = {value:#x}"));
            }
        }
        let accesses = self.accesses.remove(&(executed.context, executed.step));
        for access in accesses.iter().flatten() {
            let verb = if access.how.writes() {
                "writes"
            } else {
                "reads"
            };
            let value = access
                .value
                .map_or_else(String::new, |value| format!(" = {value:#x}"));
            let part = format_args!("{verb} {} bytes at {:#x}{value}", access.size, access.addr);
            write_part(&mut line, part);
        }
        line.push('\n');
        line
    }
}

fn formatter() -> IntelFormatter {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    formatter
}

/// Adds what an instruction did behind it.
fn write_part(line: &mut String, part: std::fmt::Arguments<'_>) {
    line.push_str(&format!("  ; {part}"));
}
