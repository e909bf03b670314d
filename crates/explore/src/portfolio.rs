//! Which algorithm runs which schedule of a program; the study behind the shares is in the manual.

use raddle_campaign::{Algorithm, Portfolio};

/// The algorithms for programs.
pub const PORTFOLIO: Portfolio = Portfolio {
    turns: &[
        Algorithm::Delay { number: 0 },
        Algorithm::Pct { depth: 2 },
        Algorithm::RandomWalk,
        Algorithm::ReadsFrom,
        Algorithm::Preemption { number: 0 },
        Algorithm::Pos,
        Algorithm::Urw,
        Algorithm::Surw,
        Algorithm::ReadsFrom,
        Algorithm::Pct { depth: 3 },
        Algorithm::Preemption { number: 0 },
        Algorithm::Surw,
        Algorithm::RandomWalk,
        Algorithm::Pos,
        Algorithm::ReadsFrom,
        Algorithm::Pct { depth: 5 },
    ],
    // What is still hidden then needs several switches in exact places: feedback finds them step by step.
    deep: Some((4096, Algorithm::ReadsFrom)),
};
