//! Landmarks: where the switches of a run happened, told so that they are found again in a changed program.
//!
//! A recording names a switch by the steps of a thread, which any change of the program moves. A landmark names
//! it by function, source line, position in the code of that line and number of the visit.

use std::collections::BTreeMap;
use std::ops::Range;

use raddle_sched::{Clock, Follow, Passing, Scheduler, View, Wrap};
use raddle_symbols::SymbolSpace;
use raddle_symbols::demangle::{demangle, path_of};
use raddle_trace::{Landmark, Path, Phase, Position, Schedule};
use raddle_world::{Context, ContextId, Site};

use crate::session::Session;
use crate::stack::{own_place, source_line};

/// Bytes of a function that are looked at for a line.
const FUNCTION_MAX: u64 = 64 << 10;

/// What a context does when it stops: a place is visited separately by each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Before a system call.
    Calling,
    Blocked,
    /// Before or in the middle of an instruction.
    Running,
}

impl Standing {
    pub(crate) fn of(at: Position) -> Self {
        match at.phase {
            Phase::Asked => Self::Calling,
            Phase::Blocked(_) => Self::Blocked,
            Phase::Plain | Phase::Torn => Self::Running,
        }
    }
}

/// Counts how often each context has stood where.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    counts: BTreeMap<(Path, Site, Standing), u64>,
    /// Where each context was last seen.
    last: BTreeMap<Path, (u64, Standing, Site)>,
}

impl Visits {
    /// The number of the visit that a view shows. A blocked context stands nowhere in particular.
    pub(crate) fn note(&mut self, view: &View<'_>) -> u64 {
        let path = view.contexts.get(view.current).path.to_vec();
        let standing = Standing::of(view.at);
        let now = (view.at.steps, standing, view.site);
        let count = self.counts.entry((path.clone(), view.site, standing));
        let count = count.or_default();
        // A replay may stop twice at one place, once for its own sake.
        let is_new = self.last.get(&path) != Some(&now) || standing == Standing::Blocked;
        *count += u64::from(is_new);
        let visit = *count;
        self.last.insert(path, now);
        visit
    }

    /// Where a context was last seen running, and the number of that visit.
    pub(crate) fn seen(&self, who: &Context) -> Option<(Site, u64)> {
        let (steps, standing, place) = *self.last.get(&*who.path)?;
        let key = (who.path.to_vec(), place, standing);
        let is_here = steps == who.steps && standing == Standing::Running;
        is_here.then(|| (place, self.counts.get(&key).copied().unwrap_or(0)))
    }
}

/// Where a deviation happened, and at which visit of that place.
pub(crate) type Mark = (Site, u64);

/// Follows a schedule and writes down where each of its deviations happens. Visits are those of a changed program only if
/// the places of the deviations are points.
#[derive(Debug)]
pub(crate) struct Marking {
    follow: Follow,
    visits: Visits,
    marks: Vec<Mark>,
}

impl Marking {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        Self {
            follow: Follow::new(schedule),
            visits: Visits::default(),
            marks: Vec::new(),
        }
    }

    /// One for each deviation; none if some were not made.
    pub(crate) fn into_marks(self, schedule: &Schedule) -> Vec<Mark> {
        let mut marks = self.marks;
        if marks.len() != schedule.len() {
            marks.clear();
        }
        marks
    }
}

impl Wrap for Marking {
    type Inner = Follow;

    fn inner(&self) -> &Follow {
        &self.follow
    }

    fn inner_mut(&mut self) -> &mut Follow {
        &mut self.follow
    }

    /// Visits are counted.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let visit = self.visits.note(view);
        let next = self.follow.pick(view);
        if next != view.default {
            self.marks.push((view.site, visit));
        }
        next
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }
}

impl Clock for Marking {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        let jumps = self.follow.jumps(view);
        if jumps {
            let visit = self.visits.note(view);
            self.marks.push((view.site, visit));
        }
        jumps
    }
}

/// A mark, and the program it is in if that is another one than the program that is explored.
pub(crate) type Marked = (Mark, Option<String>);

/// The programs of marks. Those that were started in the run are known until it is undone: the world stands where the
/// marked run has ended.
pub(crate) fn with_images(session: &Session, marks: Vec<Mark>) -> Vec<Marked> {
    let image = |mark: Mark| (mark, session.foreign_image(mark.0));
    marks.into_iter().map(image).collect()
}

/// One landmark for each mark.
pub(crate) fn landmarks(session: &mut Session, marks: Vec<Marked>) -> Vec<Landmark> {
    session.restore();
    let symbols = session.world.symbols(ContextId(0)).unwrap_or_default();
    marks
        .into_iter()
        .map(|((site, visit), image)| match image {
            // Its symbols went with its last process.
            Some(image) => Landmark {
                image,
                visit,
                ..Landmark::default()
            },
            None => Landmark {
                visit,
                ..describe(&symbols, site.pc())
            },
        })
        .collect()
}

/// A place without its visit.
fn describe(symbols: &SymbolSpace, place: u64) -> Landmark {
    let symbol = symbols.symbolise(place).and_then(|found| found.symbol);
    let Some((name, offset)) = symbol else {
        return Landmark::default();
    };
    let function = path_of(&demangle(&name));
    let start = place - offset;
    let range = code_of(symbols, &function, |range| range.start == start);
    let range = range.unwrap_or(start..place + 1);
    let mut landmark = Landmark {
        function,
        offset,
        size: range.end - range.start,
        ..Landmark::default()
    };
    let text = line_text(symbols, place);
    if let Some(text) = text {
        let pieces = pieces(symbols, &range, &text);
        if let Some((piece, found)) = (0..).zip(&pieces).find(|(_, p)| p.contains(&place)) {
            landmark.piece = piece;
            landmark.piece_offset = place - found.start;
            landmark.text = text;
        }
    }
    landmark
}

/// The address of a landmark in a program that may have changed since.
pub(crate) fn locate(symbols: &SymbolSpace, landmark: &Landmark) -> Option<u64> {
    if landmark.function.is_empty() {
        return None;
    }
    let same = code_of(symbols, &landmark.function, |range| {
        range.end - range.start == landmark.size
    });
    if let Some(range) = same {
        let place = range.start + landmark.offset;
        if landmark.text.is_empty() || line_text(symbols, place).as_ref() == Some(&landmark.text) {
            return Some(place);
        }
    }
    let range = code_of(symbols, &landmark.function, |_| true)?;
    let pieces = pieces(symbols, &range, &landmark.text);
    let piece = pieces.get(landmark.piece as usize).or(pieces.first())?;
    let place = piece.start + landmark.piece_offset;
    piece
        .contains(&place)
        .then_some(place)
        .or(Some(piece.start))
}

fn code_of(
    symbols: &SymbolSpace,
    function: &str,
    is_wanted: impl Fn(&Range<u64>) -> bool,
) -> Option<Range<u64>> {
    let mut ranges = symbols.ranges_of_function(function).into_iter();
    ranges.find(is_wanted)
}

/// The text of the source line of an instruction, without the space around it.
fn line_text(symbols: &SymbolSpace, pc: u64) -> Option<String> {
    let line = source_line(&own_place(symbols, pc)?)?;
    Some(line.trim().to_owned())
}

/// The pieces of code of a function that belong to source lines with this text, in the order of addresses.
fn pieces(symbols: &SymbolSpace, function: &Range<u64>, text: &str) -> Vec<Range<u64>> {
    let mut texts: BTreeMap<(String, u32), bool> = BTreeMap::new();
    let mut pieces: Vec<Range<u64>> = Vec::new();
    let mut last = None;
    for pc in function.start..function.end.min(function.start + FUNCTION_MAX) {
        let Some(place) = own_place(symbols, pc) else {
            last = None;
            continue;
        };
        let key = (place.file.clone(), place.line);
        let is_wanted = *texts
            .entry(key.clone())
            .or_insert_with(|| source_line(&place).is_some_and(|line| line.trim() == text));
        match pieces.last_mut() {
            _ if !is_wanted => {}
            Some(piece) if piece.end == pc && last.as_ref() == Some(&key) => piece.end += 1,
            _ => pieces.push(pc..pc + 1),
        }
        last = Some(key);
    }
    pieces
}
