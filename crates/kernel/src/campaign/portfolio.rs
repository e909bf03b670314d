//! Which algorithm runs which schedule of a kernel.

use raddle_campaign::{Algorithm, Portfolio};

const DELAY: Algorithm = Algorithm::Delay { number: 0 };
const SKI: Algorithm = Algorithm::Pct { depth: 2 };

/// The algorithms for kernels. Kernel races need few switches at the right place, so systematic delays and PCT get
/// most turns.
pub const PORTFOLIO: Portfolio = Portfolio {
    names: &[
        // With the number of decisions learned from the default order.
        ("ski", SKI),
        ("delay", DELAY),
        ("pct2", SKI),
        ("pct3", Algorithm::Pct { depth: 3 }),
        ("random", Algorithm::RandomWalk),
        ("pos", Algorithm::Pos),
        ("urw", Algorithm::Urw),
        ("surw", Algorithm::Surw),
        ("reads-from", Algorithm::ReadsFrom),
    ],
    turns: &[
        DELAY,
        SKI,
        DELAY,
        Algorithm::Pct { depth: 3 },
        DELAY,
        SKI,
        Algorithm::Surw,
        Algorithm::RandomWalk,
    ],
    deep: None,
};
