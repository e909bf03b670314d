//! What the threads of a test do when one runs after the other: no story says that they do not fail then unless they
//! were seen not to.

use raddle_campaign::serial::{Serial, orders};
use raddle_campaign::{Stage as _, Watch};
use raddle_report::words::counted;
use raddle_stdx::width::to_u64;
use raddle_world::ContextId;

use super::run::Rules;
use super::session::Session;
use crate::world::context_of;

/// Serial orders that are run at most: all those of four threads.
const ORDERS_MAX: usize = 24;

/// What was seen of the serial orders of a test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SerialRuns {
    /// Orders that were run.
    orders: u64,
    /// Those that failed: the order in words, and the fingerprint.
    failing: Vec<(String, String)>,
}

impl SerialRuns {
    /// Runs the threads of the test one after the other, in every order; nothing if there is no leave to.
    pub(super) fn of(session: &mut Session<'_>, rules: &Rules) -> Option<Self> {
        session.restore();
        let threads = session.world.thread_cpus();
        let contexts: Vec<ContextId> = threads.iter().map(|(_, cpu)| context_of(*cpu)).collect();
        let mut seen = Self::default();
        for order in orders(&contexts, ORDERS_MAX) {
            let mut serial = Serial::new(order.clone());
            let run = session.run(&mut serial, rules, Watch::NOTHING);
            session.leave.still()?;
            seen.orders += 1;
            if let Some(failure) = run.failure {
                let names = order.iter().map(|who| {
                    let cpu = session.world.processor(*who);
                    session.thread_name(cpu)
                });
                let names: Vec<String> = names.collect();
                seen.failing.push((names.join(", "), failure.fingerprint()));
            }
        }
        Some(seen)
    }

    /// What they say about a failure, as the end of a sentence.
    pub(super) fn says(seen: Option<&Self>, fingerprint: &str) -> String {
        let Some(seen) = seen else {
            return "there was no time to see what the threads do one after the other".to_owned();
        };
        let total = counted(seen.orders, "order");
        let same = seen.failing.iter().find(|(_, print)| print == fingerprint);
        if let Some((order, _)) = same {
            return format!(
                "it fails like that when the threads run one after the other, too ({order}): no interleaving is needed"
            );
        }
        match seen.failing.first() {
            Some((order, _)) => format!(
                "run one after the other, the threads fail in another way in {} of {total} ({order})",
                to_u64(seen.failing.len())
            ),
            None if seen.orders == 1 => {
                "run one after the other, the threads do not fail".to_owned()
            }
            None => format!("run one after the other, in {total}, the threads do not fail"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_said() {
        let clean = SerialRuns {
            orders: 2,
            failing: Vec::new(),
        };
        let says = |seen: Option<&SerialRuns>| SerialRuns::says(seen, "ab");
        assert_eq!(
            says(Some(&clean)),
            "run one after the other, in 2 orders, the threads do not fail"
        );
        let failing = |print: &str| SerialRuns {
            orders: 2,
            failing: vec![("b, a".to_owned(), print.to_owned())],
        };
        assert!(says(Some(&failing("ab"))).contains("(b, a): no interleaving is needed"));
        assert!(says(Some(&failing("cd"))).contains("fail in another way in 1 of 2 orders"));
        assert!(says(None).contains("no time"));
    }
}
