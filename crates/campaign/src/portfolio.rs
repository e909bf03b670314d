//! Which algorithm runs which schedule.

use raddle_stdx::width::{to_u64, to_usize};

use crate::algorithm::Algorithm;

/// The algorithms that a user can name, and their shares if none is named.
#[derive(Debug, Clone, Copy)]
pub struct Portfolio {
    /// The names besides `portfolio`.
    pub names: &'static [(&'static str, Algorithm)],
    /// Turn after turn, round and round.
    pub turns: &'static [Algorithm],
    /// After so many schedules a bug counts as deep, and this algorithm gets three turns of four.
    pub deep: Option<(u64, Algorithm)>,
}

impl Portfolio {
    /// The algorithm that `--scheduler` names; none for the whole portfolio.
    ///
    /// # Errors
    /// There is none of that name; the message lists them.
    pub fn by_name(&self, name: &str) -> Result<Option<Algorithm>, UnknownScheduler> {
        if name == "portfolio" {
            return Ok(None);
        }
        let found = self.names.iter().find(|(known, _)| *known == name);
        let names = || self.names.iter().map(|(name, _)| *name).collect();
        match found {
            Some((_, algorithm)) => Ok(Some(*algorithm)),
            None => Err(UnknownScheduler {
                name: name.to_owned(),
                names: names(),
            }),
        }
    }

    /// The choice for the `turn`-th schedule.
    pub(crate) fn of_turn(&self, turn: u64) -> Algorithm {
        match self.deep {
            Some((after, algorithm)) if turn >= after && !turn.is_multiple_of(4) => algorithm,
            _ => self.turns[to_usize(turn % to_u64(self.turns.len()))],
        }
    }
}

/// A scheduler that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scheduler `{name}`; choose portfolio or one of {}", names.join(", "))]
pub struct UnknownScheduler {
    name: String,
    names: Vec<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Portfolio = Portfolio {
        names: &[("pos", Algorithm::Pos), ("urw", Algorithm::Urw)],
        turns: &[Algorithm::Pos, Algorithm::Urw],
        deep: Some((6, Algorithm::Surw)),
    };

    #[test]
    fn names_are_known_or_listed() {
        assert_eq!(SMALL.by_name("portfolio"), Ok(None));
        assert_eq!(SMALL.by_name("urw"), Ok(Some(Algorithm::Urw)));
        let error = SMALL.by_name("best").expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "there is no scheduler `best`; choose portfolio or one of pos, urw"
        );
    }

    #[test]
    fn deep_bugs_get_three_turns_of_four() {
        let turns: Vec<Algorithm> = (4..10).map(|turn| SMALL.of_turn(turn)).collect();
        use Algorithm::{Pos, Surw, Urw};
        assert_eq!(turns, [Pos, Urw, Surw, Surw, Pos, Surw]);
    }
}
