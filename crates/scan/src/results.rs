//! From instances to findings: evidence, rank, groups, suppression.

use std::collections::BTreeMap;

use raddle_config::suppress::{Suppression, Traits};
use raddle_report::action::phrase;
use raddle_report::{Action, Confidence, Context, Finding, Locks, Step};

use crate::analyse::keys::{KeyParts, View};
use crate::analyse::program::{EventId, FnId};
use crate::front::event::{Event, Kind, UPDATE};
use crate::front::lex::{at, index};
use crate::idioms::Start;
use crate::judged::Share;
use crate::matcher::{Bound, Engine, Instance};
use crate::pdl::ast::{Condition, Pattern, Predicate};
use crate::scan::{Options, PatternCount, Summary};
use crate::texts::Texts;

/// Findings of one kind on one object that are shown; the others are most likely the same story.
const PER_OBJECT: usize = 3;
/// Rank from which a finding counts as well supported.
const HIGH: i32 = 20;

struct Ranked {
    finding: Finding,
    rank: i32,
    files: Vec<(u32, u32)>,
}

/// Turns instances into the findings to show, best first.
pub(crate) fn findings(
    engine: &Engine<'_>,
    found: &[(&Pattern, Vec<Instance>)],
    options: &Options,
    summary: &mut Summary,
) -> Vec<Finding> {
    let mut texts = Texts::new(engine);
    let mut shown = Vec::new();
    let sample = crate::judged::judged();
    let shipped = crate::shipped::names();
    for alternatives in by_name(found) {
        let mut best: BTreeMap<String, Ranked> = BTreeMap::new();
        let all = alternatives
            .iter()
            .flat_map(|(pattern, instances)| instances.iter().map(|instance| (*pattern, instance)));
        for (pattern, instance) in all {
            if !is_wanted(engine, instance) {
                continue;
            }
            let ranked = describe(engine, &mut texts, pattern, instance);
            let known = best.get(&ranked.finding.fingerprint);
            if known.is_none_or(|known| ranked.rank > known.rank) {
                best.insert(ranked.finding.fingerprint.clone(), ranked);
            }
        }
        summary.patterns.push(PatternCount {
            name: alternatives[0].0.name.clone(),
            instances: raddle_stdx::width::to_u64(best.len()),
        });
        let mut ranked: Vec<Ranked> = best.into_values().collect();
        let before = ranked.len();
        ranked
            .retain(|ranked| !is_suppressed(engine, &mut texts, ranked, &options.config.suppress));
        summary.suppressed += raddle_stdx::width::to_u64(before - ranked.len());
        let name = &alternatives[0].0.name;
        let share = Share::new(&sample, name, !shipped.contains(name));
        for ranked in &mut ranked {
            ranked.finding.severity = share.severity(ranked.finding.severity);
        }
        // Who names a pattern wants to see it.
        let is_named = options.only.contains(name);
        let limit = options.limit.map(|limit| match is_named {
            true => limit,
            false => share.limit(limit, alternatives[0].0.severity),
        });
        shown.extend(select(ranked, limit, summary));
    }
    shown.sort_by(|one, other| {
        other
            .rank
            .cmp(&one.rank)
            .then_with(|| one.finding.kind.cmp(&other.finding.kind))
            .then_with(|| one.finding.fingerprint.cmp(&other.finding.fingerprint))
    });
    shown.into_iter().map(|ranked| ranked.finding).collect()
}

/// Whether findings of the pattern could be shown at all: what only takes note of something and was not judged is
/// not looked for unless it is asked for.
pub(crate) fn is_asked_for(pattern: &Pattern, options: &Options) -> bool {
    let Some(limit) = options.limit else {
        return true;
    };
    let is_own = !crate::shipped::names().contains(&pattern.name);
    let share = Share::new(&crate::judged::judged(), &pattern.name, is_own);
    pattern.severity != raddle_report::Severity::Note
        || share.percent().is_some()
        || options.only.contains(&pattern.name)
        || share.limit(limit, pattern.severity) > 0
}

/// Descriptions of the same bug together, in the order of the first.
fn by_name<'f, 'p>(
    found: &'f [(&'p Pattern, Vec<Instance>)],
) -> Vec<Vec<(&'p Pattern, &'f [Instance])>> {
    let mut groups: Vec<Vec<(&'p Pattern, &'f [Instance])>> = Vec::new();
    for (pattern, instances) in found {
        let own = (*pattern, instances.as_slice());
        match groups
            .iter_mut()
            .find(|group| group[0].0.name == pattern.name)
        {
            Some(group) => group.push(own),
            None => groups.push(vec![own]),
        }
    }
    groups
}

/// At least the first sub-pattern lies in what the user asked about.
fn is_wanted(engine: &Engine<'_>, instance: &Instance) -> bool {
    instance
        .partial
        .trace
        .first()
        .is_some_and(|(_, place)| engine.is_wanted(place.function))
}

/// Best first, few per object, at most `limit`.
fn select(mut ranked: Vec<Ranked>, limit: Option<usize>, summary: &mut Summary) -> Vec<Ranked> {
    ranked.sort_by(|one, other| {
        other
            .rank
            .cmp(&one.rank)
            .then_with(|| {
                one.finding.steps[0]
                    .place
                    .cmp(&other.finding.steps[0].place)
            })
            .then_with(|| one.finding.fingerprint.cmp(&other.finding.fingerprint))
    });
    let Some(limit) = limit else {
        return ranked;
    };
    let all = ranked.len();
    let mut per_object: BTreeMap<String, usize> = BTreeMap::new();
    ranked.retain(|ranked| {
        let object = ranked.finding.objects.first().cloned().unwrap_or_default();
        let count = per_object.entry(object).or_default();
        *count += 1;
        *count <= PER_OBJECT
    });
    ranked.truncate(limit);
    summary.hidden += raddle_stdx::width::to_u64(all - ranked.len());
    ranked
}

fn is_suppressed(
    engine: &Engine<'_>,
    texts: &mut Texts<'_, '_>,
    ranked: &Ranked,
    rules: &[Suppression],
) -> bool {
    let finding = &ranked.finding;
    let places: Vec<(&str, &str)> = finding
        .steps
        .iter()
        .map(|step| (step.place.file.as_str(), step.place.function.as_str()))
        .collect();
    let traits = Traits {
        kind: &finding.kind,
        fingerprint: &finding.fingerprint,
        places: &places,
        objects: &finding.objects,
    };
    let by_rule = rules.iter().any(|rule| rule.fits(traits));
    by_rule
        || ranked.files.iter().any(|(unit, line)| {
            let ignores = &engine.program.units[at(*unit)].ignores;
            ignores.iter().any(|place| {
                let ignored = texts.line(*unit, *place).0;
                ignored == *line || ignored + 1 == *line
            })
        })
}

fn describe(
    engine: &Engine<'_>,
    texts: &mut Texts<'_, '_>,
    pattern: &Pattern,
    instance: &Instance,
) -> Ranked {
    let partial = &instance.partial;
    let rank = rank(engine, pattern, instance);
    let confidence = if rank >= HIGH {
        Confidence::StaticHigh
    } else {
        Confidence::StaticLow
    };
    let mut finding = Finding::new(pattern.name.clone(), pattern.severity, confidence);
    let mut files = Vec::new();
    for (sub, place) in &partial.trace {
        let shown = texts.place(*place);
        let unit = engine.program.unit_of(place.function);
        files.push((unit, shown.line));
        finding.quote(&shown, |shown| Some(texts.text(unit, shown.line)));
        let context = finding.context(Context::named(format!("pattern {}", sub + 1)));
        let (action, object) = action(engine, *place);
        finding.steps.push(Step {
            object,
            locks: locks(engine, *place),
            ..Step::new(context, action, shown)
        });
    }
    let objects = objects(engine, pattern, instance);
    let mut notes = paths(engine, texts, instance);
    notes.extend(sleeping_ways(engine, texts, pattern, instance));
    notes.extend(bindings(engine, pattern, instance));
    match instance.others {
        0 => {}
        1 => notes.push("1 more place completes this pattern".to_owned()),
        others => notes.push(format!("{others} more places complete this pattern")),
    }
    finding.title = title(engine, pattern, instance);
    finding.fingerprint = fingerprint(engine, pattern, instance, &objects);
    finding.objects = objects;
    finding.why.clone_from(&pattern.why);
    finding.notes = notes;
    Ranked {
        finding,
        rank,
        files,
    }
}

/// The locks that are held at an event whatever the way to it.
fn locks(engine: &Engine<'_>, place: EventId) -> Locks {
    let held = engine.held(place);
    let mut names: Vec<String> = held
        .always
        .iter()
        .map(|lock| engine.show_lock(*lock))
        .collect();
    names.dedup();
    Locks::named(names)
}

/// What happens at an event, and to what.
fn action(engine: &Engine<'_>, place: EventId) -> (Action, Option<String>) {
    let event: Event = engine.program.event(place);
    let view = View::new(engine.program, place.function);
    let shown = view.show(event.expr);
    let in_call = false;
    let action = match event.kind {
        Kind::If | Kind::Switch => Action::Test,
        Kind::Loop if event.expr == crate::front::ast::E::NONE => return (Action::Loop, None),
        Kind::Loop => Action::Loop,
        Kind::Read => Action::Read { in_call },
        Kind::Write if event.flags & UPDATE != 0 => Action::Update,
        Kind::Write => Action::Write { in_call },
        Kind::Call => Action::Call,
        Kind::Return if shown == ".." => return (Action::Return, None),
        Kind::Return => Action::Return,
        Kind::Break => return (Action::Break, None),
        Kind::Goto => return (Action::Jump, None),
        _ => Action::Evaluate,
    };
    (action, Some(shown))
}

fn objects(engine: &Engine<'_>, pattern: &Pattern, instance: &Instance) -> Vec<String> {
    let variables = &instance.partial.variables;
    let preferred = pattern.object.and_then(|number| variables[number].as_ref());
    let mut out: Vec<String> = Vec::new();
    for bound in preferred.into_iter().chain(variables.iter().flatten()) {
        let name = match bound {
            Bound::Object { key, .. } if key.is_shared() => {
                crate::show::object(engine.program, *key)
            }
            Bound::Lock { lock, .. } => engine.show_lock(*lock),
            Bound::Function(id) if Some(bound) == preferred => {
                engine.program.function_name(*id).into_owned()
            }
            // The call itself is what is wrong: calls of two functions are two findings.
            Bound::Args { place, call } if Some(bound) == preferred => {
                let view = View::new(engine.program, place.function);
                let Some((name, _)) = view.unit.named_call(*call) else {
                    continue;
                };
                engine.program.names.text(view.name(name)).into_owned()
            }
            _ => continue,
        };
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

/// The title with `$variables` replaced by what they are bound to.
fn title(engine: &Engine<'_>, pattern: &Pattern, instance: &Instance) -> String {
    let mut out = pattern.title.clone();
    let mut numbers: Vec<usize> = (0..pattern.variables.len()).collect();
    numbers.sort_by_key(|number| std::cmp::Reverse(pattern.variables[*number].len()));
    for number in numbers {
        if let Some(bound) = &instance.partial.variables[number] {
            out = out.replace(
                &format!("${}", pattern.variables[number]),
                &engine.show(bound),
            );
        }
    }
    out
}

/// Stable across edits elsewhere: made of names, never of lines.
fn fingerprint(
    engine: &Engine<'_>,
    pattern: &Pattern,
    instance: &Instance,
    objects: &[String],
) -> String {
    let mut digest = raddle_stdx::Digest::default();
    digest.bytes(pattern.name.as_bytes());
    if let Some(object) = objects.first() {
        digest.bytes(object.as_bytes());
    }
    let mut seen: Vec<FnId> = Vec::new();
    for (sub, place) in &instance.partial.trace {
        if *sub == 0 && !seen.contains(&place.function) {
            seen.push(place.function);
            digest.bytes(engine.program.function_name(place.function).as_bytes());
            let unit = engine.program.unit_of(place.function);
            let shown = &engine.program.sources[at(unit)].shown;
            digest.bytes(shown.rsplit('/').next().unwrap_or(shown).as_bytes());
        }
    }
    format!("{:016x}", digest.value())
}

/// One call path from a starting point to each function that takes part.
fn paths(engine: &Engine<'_>, texts: &mut Texts<'_, '_>, instance: &Instance) -> Vec<String> {
    let mut out = Vec::new();
    let mut done: Vec<FnId> = Vec::new();
    for (_, place) in &instance.partial.trace {
        if done.contains(&place.function) {
            continue;
        }
        done.push(place.function);
        let contexts = engine.contexts.of(place.function);
        let best = contexts
            .iter()
            .enumerate()
            .min_by_key(|(number, context)| (start_order(context.start), *number));
        let Some((number, context)) = best else {
            continue;
        };
        let mut text = format!("{}: ", context.start.label());
        for call in engine.contexts.path(place.function, index(number)) {
            let caller = texts.place(call);
            text.push_str(&format!(
                "{} ({}:{}) -> ",
                caller.function, caller.file, caller.line
            ));
        }
        text.push_str(&engine.program.function_name(place.function));
        out.push(text);
    }
    out
}

/// For patterns that ask `may_sleep`: the calls down to what sleeps.
fn sleeping_ways(
    engine: &Engine<'_>,
    texts: &mut Texts<'_, '_>,
    pattern: &Pattern,
    instance: &Instance,
) -> Vec<String> {
    let asks = pattern.conditions.iter().any(|condition| {
        matches!(condition, Condition::Test(test) if test.predicate == Predicate::MaySleep)
    });
    if !asks {
        return Vec::new();
    }
    let mut out = Vec::new();
    for (_, place) in &instance.partial.trace {
        let way = engine.sleepers.way(&engine.calls, *place);
        if way.len() < 2 {
            continue;
        }
        let shown: Vec<String> = way
            .iter()
            .map(|step| {
                let place = texts.place(*step);
                let (action, object) = action(engine, *step);
                let at = format!("{}:{}", place.file, place.line);
                let step = Step {
                    object,
                    ..Step::new(0, action, place)
                };
                format!("{} ({at})", phrase(&step))
            })
            .collect();
        out.push(format!("sleeps: {}", shown.join(" -> ")));
    }
    out
}

fn start_order(start: Start) -> u8 {
    match start {
        Start::Thread | Start::Work | Start::SoftIrq | Start::HardIrq => 0,
        Start::Entry => 1,
        Start::Unknown => 2,
        Start::Init => 3,
    }
}

fn bindings(engine: &Engine<'_>, pattern: &Pattern, instance: &Instance) -> Vec<String> {
    let mut parts = Vec::new();
    for (name, bound) in pattern.variables.iter().zip(&instance.partial.variables) {
        if let Some(bound) = bound {
            parts.push(format!("${name} = {}", engine.show(bound)));
        }
    }
    if parts.is_empty() {
        Vec::new()
    } else {
        vec![parts.join(", ")]
    }
}

/// Names of functions that run when no other context can see the object, most of the time.
const LIFECYCLE: &[&str] = &[
    "init",
    "probe",
    "alloc",
    "create",
    "setup",
    "remove",
    "exit",
    "destroy",
    "release",
    "free",
    "attach",
    "detach",
    "register",
    "resume",
    "suspend",
    "shutdown",
    "cleanup",
    "teardown",
    "dump",
    "show",
    "debug",
    "mount",
    "fill_super",
    "put_super",
    "new",
    "connect",
    "disconnect",
    "reset",
    "load",
    "recover",
];

/// Whether a function of this name runs when no other context can see the object, most of the time.
pub(crate) fn is_lifecycle(name: &str) -> bool {
    let name = name.to_lowercase();
    LIFECYCLE.iter().any(|part| name.contains(part))
}

/// Whether a function of this name builds or takes apart an object that is not in use.
pub(crate) fn is_construction(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "init", "alloc", "create", "probe", "setup", "destroy", "free",
    ];
    let name = name.to_lowercase();
    PARTS.iter().any(|part| name.contains(part))
}

/// Names of objects whose exact value seldom matters.
const STATISTICS: &[&str] = &[
    "stat", "count", "cnt", "packets", "bytes", "errors", "jiffies", "debug", "time", "last",
    "dropped", "hits", "seq", "nr_", "num_", "total", "name",
];

/// How much speaks for the finding.
fn rank(engine: &Engine<'_>, pattern: &Pattern, instance: &Instance) -> i32 {
    let mut rank = pattern.weight;
    let mut seen: Vec<FnId> = Vec::new();
    let home = instance
        .partial
        .trace
        .first()
        .map(|(_, place)| place.function);
    for (_, place) in &instance.partial.trace {
        if seen.contains(&place.function) {
            continue;
        }
        seen.push(place.function);
        let contexts = engine.contexts.of(place.function);
        let best = contexts
            .iter()
            .map(|context| start_order(context.start))
            .min();
        rank += match best {
            Some(0) => 14,
            Some(1) => 10,
            Some(2) | None => -6,
            _ => -12,
        };
        let name = engine.program.function_name(place.function).to_lowercase();
        rank -= 6 * i32::from(is_lifecycle(&name));
        rank -= 6 * i32::from(name.starts_with("__") || name.ends_with("_locked"));
        let (_, function) = engine.program.function(place.function);
        rank -= 10 * i32::from(function.damaged);
        if let Some(home) = home
            && home != place.function
        {
            let (a, b) = (
                engine.program.unit_of(home),
                engine.program.unit_of(place.function),
            );
            rank += if a == b {
                6
            } else if engine.program.directory(a) == engine.program.directory(b) {
                3
            } else {
                -6
            };
        }
    }
    for bound in instance.partial.variables.iter().flatten() {
        if let Bound::Object { key, .. } = bound {
            let name = crate::show::object(engine.program, *key).to_lowercase();
            let field = name.rsplit('.').next().unwrap_or(&name);
            rank -= 5 * i32::from(STATISTICS.iter().any(|part| field.contains(part)));
            rank -= 12 * i32::from(matches!(key.parts(), KeyParts::Vague(..)));
        }
    }
    rank
}
