//! Which algorithm runs which schedule of a program; the study behind the shares is in the manual.

use raddle_campaign::{Algorithm, Portfolio};

/// The algorithms for programs.
pub const PORTFOLIO: Portfolio = Portfolio {
    turns: &[
        Algorithm::Delay { number: 0 },
        Algorithm::Pct { depth: 2 },
        Algorithm::Classes,
        Algorithm::ReadsFrom,
        Algorithm::Classes,
        Algorithm::Pos,
        Algorithm::Urw,
        Algorithm::Surw,
        Algorithm::Classes,
        Algorithm::Pct { depth: 3 },
        Algorithm::Preemption { number: 0 },
        Algorithm::ReadsFrom,
        Algorithm::Classes,
        Algorithm::RandomWalk,
        Algorithm::ReadsFrom,
        Algorithm::Pct { depth: 5 },
    ],
    // What is still hidden then needs several switches in exact places: feedback finds them step by step.
    deep: Some((4096, Algorithm::ReadsFrom)),
};
