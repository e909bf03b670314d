//! Counts the instructions of a program by the way in which the engine executes each, to find what is slow:
//! `paths STEPS PROGRAM [ARGUMENT...]`. Counting depends on no clock, so that a busy machine does not matter.
#![expect(clippy::print_stdout, reason = "a measuring tool")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use raddle_linux::{LinuxWorld, Setup};
use raddle_world::{Inspect, SeededChoices, Stop, Until, World};
use raddle_x86::Path;

/// Longest instruction.
const BYTES_MAX: usize = 15;
/// Lines that are printed.
const ROWS_MAX: usize = 40;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, steps, program @ ..] = &arguments[..] else {
        println!("usage: paths STEPS PROGRAM [ARGUMENT...]");
        return ExitCode::from(2);
    };
    let steps: u64 = steps.parse().expect("STEPS is a number");
    let mut world = LinuxWorld::new(setup(program)).expect("the program can be started");
    let counted = count(&mut world, steps);
    let total: u64 = counted.values().sum();
    let mut by_path: BTreeMap<Path, u64> = BTreeMap::new();
    for ((_, path), count) in &counted {
        *by_path.entry(*path).or_default() += count;
    }
    println!("{total} instructions");
    for (path, count) in by_path {
        println!("{:6.2} %  {path:?}", percent(count, total));
    }
    let mut rows: Vec<_> = counted.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    println!();
    let slow = rows
        .iter()
        .filter(|((_, path), _)| *path != Path::Translated);
    for ((form, path), count) in slow.take(ROWS_MAX) {
        println!("{:6.2} %  {path:?} {form}", percent(*count, total));
    }
    ExitCode::SUCCESS
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn percent(count: u64, total: u64) -> f64 {
    100.0 * count as f64 / total.max(1) as f64
}

/// How often each form of an instruction was executed, in the first steps of a program.
fn count(world: &mut LinuxWorld, steps: u64) -> BTreeMap<(String, Path), u64> {
    let mut by_place: BTreeMap<u64, u64> = BTreeMap::new();
    let mut forms: BTreeMap<u64, (String, Path)> = BTreeMap::new();
    for _ in 0..steps {
        let Some(&who) = world.contexts().runnable().first() else {
            if world.advance_time() {
                continue;
            }
            break;
        };
        let pc = world.cpu(who).expect("it can run").rip;
        *by_place.entry(pc).or_default() += 1;
        if !forms.contains_key(&pc) {
            let mut bytes = [0; BYTES_MAX];
            let length = world.read_bytes(who, pc, &mut bytes);
            forms.extend(Path::of(&bytes[..length], pc).map(|found| (pc, found)));
        }
        let stop = world.run(who, Until::Steps(1));
        let events = world.take_events();
        world.recycle_events(events);
        if matches!(stop, Stop::WorldDone { .. } | Stop::Unsupported(_)) {
            break;
        }
    }
    let mut counted = BTreeMap::new();
    for (pc, form) in forms {
        *counted.entry(form).or_default() += by_place[&pc];
    }
    counted
}

fn setup(command: &[String]) -> Setup {
    let words = |words: &[String]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    Setup {
        program: command[0].as_bytes().to_vec(),
        arguments: words(command),
        environment: Vec::new(),
        directory: b"/".to_vec(),
        stdin: Vec::new(),
        mappings: Vec::new(),
        visible: None,
        elsewhere: None,
        memory_max: 1 << 30,
        processes_max: 64,
        cpus: 4,
        choices: Box::new(SeededChoices::new(0)),
    }
}
