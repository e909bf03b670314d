//! Which algorithm runs which schedule of a program; the study behind the shares is in the manual.

use raddle_campaign::{Algorithm, Portfolio};

/// The algorithms for programs.
pub const PORTFOLIO: Portfolio = Portfolio {
    turns: &[
        Algorithm::Delay { number: 0 },
        Algorithm::RandomWalk,
        Algorithm::Classes,
        Algorithm::ReadsFrom,
        Algorithm::Pct { depth: 3 },
        Algorithm::Surw,
        Algorithm::Classes,
        Algorithm::ReadsFrom,
        Algorithm::Pct { depth: 3 },
        Algorithm::Pos,
        Algorithm::Preemption { number: 0 },
        Algorithm::ReadsFrom,
        Algorithm::Classes,
        Algorithm::Surw,
        Algorithm::Urw,
        Algorithm::Pct { depth: 5 },
    ],
    // What is still hidden then needs several switches in exact places: feedback finds them step by step.
    deep: Some((4096, Algorithm::ReadsFrom)),
};
