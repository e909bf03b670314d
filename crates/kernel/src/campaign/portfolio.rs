//! Which algorithm runs which schedule of a kernel.

use raddle_campaign::{Algorithm, Portfolio};

const DELAY: Algorithm = Algorithm::Delay { number: 0 };
const PCT2: Algorithm = Algorithm::Pct { depth: 2 };

/// The algorithms for kernels. Kernel races need few switches at the right place, so systematic delays and PCT get
/// most turns.
pub const PORTFOLIO: Portfolio = Portfolio {
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
