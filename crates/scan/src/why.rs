//! `--why`: for each pattern, where it stopped in a function.

use crate::analyse::accesses::Accesses;
use crate::analyse::keys::Key;
use crate::analyse::program::{EventId, FnId};
use crate::front::lex::{at, index};
use crate::matcher::Engine;
use crate::pdl::ast::Pattern;
use crate::texts::Texts;

/// The story of each pattern in each function of this name in files whose path ends in `file`.
pub(crate) fn lines(
    engine: &Engine<'_>,
    patterns: &[Pattern],
    file: &str,
    function: &str,
) -> Vec<String> {
    let mut texts = Texts::new(engine);
    let mut out = Vec::new();
    for id in engine.program.function_ids() {
        let unit = engine.program.unit_of(id);
        let shown = &engine.program.sources[at(unit)].shown;
        if engine.program.function_name(id) != function || !is_file(shown, file) {
            continue;
        }
        out.push(format!("{function} in {shown}"));
        out.extend(guards(engine, &mut texts, id));
        for (number, pattern) in patterns.iter().enumerate() {
            let earlier = patterns[..number].iter();
            let count = earlier.filter(|other| other.name == pattern.name).count();
            let name = match count {
                0 => pattern.name.clone(),
                more => format!("{} ({})", pattern.name, more + 1),
            };
            for step in engine.why(pattern, id) {
                let place = step.place.map(|place| texts.place(place));
                let place = place.map_or(String::new(), |place| {
                    format!("{}:{}: ", place.file, place.line)
                });
                out.push(format!("{name}: {place}{}", step.text));
            }
        }
    }
    out
}

/// Whether the path ends in the wanted one, at a whole name.
fn is_file(shown: &str, wanted: &str) -> bool {
    shown
        .strip_suffix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('/') || wanted.starts_with('/'))
}

/// The shared objects that the function uses, each with its usual lock and the locks held here.
fn guards(engine: &Engine<'_>, texts: &mut Texts<'_, '_>, id: FnId) -> Vec<String> {
    let accesses: &Accesses = &engine.accesses;
    let mut seen: Vec<Key> = Vec::new();
    let mut out = Vec::new();
    for event in 0..index(engine.program.events(id).len()) {
        let place = EventId {
            function: id,
            event,
        };
        let key = accesses.key(place);
        if !key.is_shared() || seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let held = engine.held(place).always;
        let held: Vec<String> = held.iter().map(|lock| engine.show_lock(*lock)).collect();
        let held = if held.is_empty() {
            "no lock".to_owned()
        } else {
            held.join(", ")
        };
        out.push(format!(
            "uses {} at line {} with {held}; {}",
            crate::show::object(engine.program, key),
            texts.place(place).line,
            engine.usual_text(key, place)
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_the_end_of_their_path() {
        assert!(is_file("fs/a.c", "a.c"));
        assert!(is_file("fs/a.c", "fs/a.c"));
        assert!(!is_file("fs/ba.c", "a.c"));
    }
}
