//! Which algorithm runs which schedule.

use raddle_stdx::width::{to_u64, to_usize};

use crate::algorithm::Algorithm;

/// The shares of the algorithms if the user names none.
#[derive(Debug, Clone, Copy)]
pub struct Portfolio {
    /// Turn after turn, round and round.
    pub turns: &'static [Algorithm],
    /// After so many schedules a bug counts as deep, and this algorithm gets three turns of four.
    pub deep: Option<(u64, Algorithm)>,
}

impl Portfolio {
    /// The choice for the `turn`-th schedule.
    pub(crate) fn of_turn(&self, turn: u64) -> Algorithm {
        match self.deep {
            Some((after, algorithm)) if turn >= after && !turn.is_multiple_of(4) => algorithm,
            _ => self.turns[to_usize(turn % to_u64(self.turns.len()))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Portfolio = Portfolio {
        turns: &[Algorithm::Pos, Algorithm::Urw],
        deep: Some((6, Algorithm::Surw)),
    };

    #[test]
    fn deep_bugs_get_three_turns_of_four() {
        let turns: Vec<Algorithm> = (4..10).map(|turn| SMALL.of_turn(turn)).collect();
        use Algorithm::{Pos, Surw, Urw};
        assert_eq!(turns, [Pos, Urw, Surw, Surw, Pos, Surw]);
    }
}
