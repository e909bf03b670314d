//! Serial orders: each context runs as far as it can before the next one gets its turn. What fails in one of them is no
//! matter of interleaving.

use raddle_sched::{Scheduler, View};
use raddle_world::ContextId;

/// Runs contexts one after the other. A context that waits for another is left until it can go on.
#[derive(Debug, Clone)]
pub struct Serial {
    order: Vec<ContextId>,
}

impl Serial {
    /// Those of `order` come first, in this order; all others only when none of them can run.
    pub fn new(order: Vec<ContextId>) -> Self {
        Self { order }
    }
}

impl Scheduler for Serial {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let can_run = |who: &&ContextId| {
            let waits = **who == view.current && view.reason.asks_for_another();
            view.runnable.contains(who) && !waits
        };
        let next = self.order.iter().find(can_run).copied();
        next.unwrap_or_else(|| view.sensible_default())
    }
}

/// All orders of some contexts; only the first so many.
pub fn orders(contexts: &[ContextId], most: usize) -> Vec<Vec<ContextId>> {
    let mut all = vec![Vec::new()];
    for _ in contexts {
        all = all
            .into_iter()
            .flat_map(|begun: Vec<ContextId>| {
                let rest = contexts.iter().filter(|who| !begun.contains(who));
                let longer = rest.map(|who| begun.iter().copied().chain([*who]).collect());
                longer.collect::<Vec<_>>()
            })
            .take(most)
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_there_once_and_no_more_than_wanted() {
        let contexts = [0, 1, 2].map(ContextId);
        let all = orders(&contexts, 100);
        assert_eq!(all.len(), 6);
        assert_eq!(all[0], contexts);
        assert_eq!(all[5], [2, 1, 0].map(ContextId));
        assert_eq!(orders(&contexts, 4).len(), 4);
        assert_eq!(orders(&[], 4), [Vec::new()]);
    }
}
