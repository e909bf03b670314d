//! Curves over time as pictures inside a page: no script, and every figure also as text.

use std::fmt::Write as _;

use super::html::escaped;

/// The picture, in its own units.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
/// Room for the figures of the axes.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// Points of a curve at most: more than the picture has columns are not seen.
const POINTS_MAX: usize = 600;

/// A curve: its name, and (milliseconds, value), ordered by time.
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) points: Vec<(u64, u64)>,
}

/// A picture of curves with its title, a legend and a table of the last values.
pub(super) fn curves(title: &str, curves: &[Curve], milliseconds: u64) -> String {
    let highest = curves.iter().flat_map(|curve| &curve.points);
    let highest = highest.map(|(_, value)| *value).max().unwrap_or(0);
    let frame = Frame {
        highest: round_up(highest),
        milliseconds: milliseconds.max(1),
    };
    let ends: Vec<String> = curves.iter().map(last_words).collect();
    let label = escaped(&format!("{title}: {}", ends.join(", ")));
    let mut picture = format!(
        "<figure class=\"plot\"><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">",
        escaped(title)
    );
    picture.push_str(&frame.axes());
    for (curve, number) in curves.iter().zip(1..) {
        let path = frame.path(&thinned(&curve.points));
        write!(
            picture,
            "<path class=\"curve curve{number}\" d=\"{path}\"/>"
        )
        .expect("a string takes everything");
    }
    picture.push_str("</svg><ul class=\"legend curves\">");
    for (words, number) in ends.iter().zip(1..) {
        write!(
            picture,
            "<li><svg class=\"key\" viewBox=\"0 0 24 8\" aria-hidden=\"true\"><path class=\"curve curve{number}\" d=\"M0 4H24\"/></svg> {}</li>",
            escaped(words)
        )
        .expect("a string takes everything");
    }
    picture.push_str("</ul></figure>");
    picture
}

/// Bars, one below the other: name, value, and the value in words.
pub(super) fn bars(title: &str, rows: &[(String, u64, String)]) -> String {
    let highest = rows.iter().map(|(_, value, _)| *value).max().unwrap_or(0);
    let mut table = format!(
        "<table class=\"bars\"><caption>{}</caption>",
        escaped(title)
    );
    for (name, value, words) in rows {
        let width = scaled(*value, highest.max(1), 100.0);
        write!(
            table,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"bar\"><svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"{width:.1}\" height=\"8\"/></svg></td></tr>",
            escaped(name),
            escaped(words)
        )
        .expect("a string takes everything");
    }
    table.push_str("</table>");
    table
}

fn last_words(curve: &Curve) -> String {
    let last = curve.points.last().map_or(0, |(_, value)| *value);
    format!("{} {last}", curve.name)
}

/// What the axes stand for.
struct Frame {
    highest: u64,
    milliseconds: u64,
}

impl Frame {
    fn x(&self, milliseconds: u64) -> f64 {
        let at = milliseconds.min(self.milliseconds);
        LEFT + scaled(at, self.milliseconds, WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: u64) -> f64 {
        HEIGHT - BOTTOM - scaled(value, self.highest, HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self) -> String {
        let mut axes = String::new();
        for part in 0..=2 {
            let value = self.highest * part / 2;
            let y = self.y(value);
            write!(
                axes,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text class=\"tick end\" x=\"{}\" y=\"{:.1}\">{value}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0
            )
            .expect("a string takes everything");
        }
        for (part, class) in [(0, "tick"), (1, "tick middle"), (2, "tick end")] {
            let at = self.milliseconds * part / 2;
            write!(
                axes,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{}\">{}</text>",
                self.x(at),
                HEIGHT - 8.0,
                duration(at)
            )
            .expect("a string takes everything");
        }
        axes
    }

    /// A curve: a value holds until the next one is known.
    fn path(&self, points: &[(u64, u64)]) -> String {
        let mut path = String::new();
        for (at, value) in points {
            let (x, y) = (self.x(*at), self.y(*value));
            if path.is_empty() {
                write!(path, "M{x:.1} {y:.1}").expect("a string takes everything");
            } else {
                write!(path, "H{x:.1}V{y:.1}").expect("a string takes everything");
            }
        }
        path
    }
}

/// At most so many points as a picture shows, the first and the last among them.
fn thinned(points: &[(u64, u64)]) -> Vec<(u64, u64)> {
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let last = points.len() - 1;
    let picked = (0..POINTS_MAX).map(|number| points[number * last / (POINTS_MAX - 1)]);
    picked.collect()
}

/// The end of an axis: one, two or five and zeros, and even, so that its middle is a whole number.
fn round_up(value: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for step in [2, 4, 10] {
            if let Some(end) = unit.checked_mul(step)
                && end >= value
            {
                return end;
            }
        }
        match unit.checked_mul(10) {
            Some(next) => unit = next,
            None => return value,
        }
    }
}

/// `value` of `whole` on an axis of that length.
#[expect(
    clippy::cast_precision_loss,
    reason = "a place in a picture needs no more than three digits"
)]
fn scaled(value: u64, whole: u64, length: f64) -> f64 {
    value as f64 / whole as f64 * length
}

/// A time that people read.
pub(super) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0 => String::from("0 s"),
        1..1000 => format!("{milliseconds} ms"),
        1000..10_000 => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
        10_000..600_000 => format!("{} s", milliseconds / 1000),
        _ => format!("{} min", milliseconds / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_figures() {
        let ends: Vec<u64> = [0, 1, 3, 5, 11, 39, 41, 1000, 1001]
            .into_iter()
            .map(round_up)
            .collect();
        assert_eq!(ends, [2, 2, 4, 10, 20, 40, 100, 1000, 2000]);
        assert!(round_up(u64::MAX) == u64::MAX);
    }

    #[test]
    fn long_curves_keep_their_ends() {
        let points: Vec<(u64, u64)> = (0..10_000).map(|at| (at, at)).collect();
        let thin = thinned(&points);
        assert_eq!(thin.len(), POINTS_MAX);
        assert_eq!((thin.first(), thin.last()), (points.first(), points.last()));
    }

    #[test]
    fn a_picture_says_its_figures_in_words() {
        let curve = Curve {
            name: "distinct",
            points: vec![(0, 0), (500, 7)],
        };
        let picture = curves("Behaviours", &[curve], 1500);
        assert!(
            picture.contains("aria-label=\"Behaviours: distinct 7\""),
            "{picture}"
        );
        assert!(picture.contains(">1.5 s</text>"), "{picture}");
        assert!(
            picture.contains("d=\"M64.0 174.0H252.0V59.2\""),
            "{picture}"
        );
    }
}
