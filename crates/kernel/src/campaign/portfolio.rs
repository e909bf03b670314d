//! Which algorithm runs which schedule of a kernel.

use raddle_campaign::{Algorithm, Portfolio};

const DELAY: Algorithm = Algorithm::Delay { number: 0 };
const PCT2: Algorithm = Algorithm::Pct { depth: 2 };

/// The algorithms for kernels. Kernel races need few switches at the right place, so systematic delays and PCT get
/// most turns.
pub const PORTFOLIO: Portfolio = Portfolio {
    names: &[
        ("ski", Algorithm::SKI),
        ("pike", Algorithm::PIKE),
        ("delay", DELAY),
        ("pct2", PCT2),
        ("pct3", Algorithm::Pct { depth: 3 }),
        ("random", Algorithm::RandomWalk),
        ("pos", Algorithm::Pos),
        ("urw", Algorithm::Urw),
        ("surw", Algorithm::Surw),
        ("reads-from", Algorithm::ReadsFrom),
    ],
    turns: &[
        DELAY,
        PCT2,
        DELAY,
        Algorithm::Pct { depth: 3 },
        DELAY,
        PCT2,
        Algorithm::Surw,
        Algorithm::RandomWalk,
    ],
    deep: None,
};
