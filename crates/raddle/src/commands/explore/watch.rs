//! Keeps an eye on the clock and on Ctrl-C while a campaign runs.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use raddle_explore::{Cancel, Urgency};

use crate::interrupt::Interrupt;

/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(50);
/// What is left for explanations after Ctrl-C.
const GRACE: Duration = Duration::from_millis(1500);

/// Does something that ends when it is asked to: when the time is up, or on Ctrl-C.
pub(crate) fn watched<T>(
    interrupt: &Interrupt,
    limit: Duration,
    act: impl FnOnce(&Cancel) -> T,
) -> T {
    let cancel = Cancel::default();
    std::thread::scope(|scope| {
        let (busy, idle) = channel::<()>();
        let watching = cancel.clone();
        scope.spawn(move || {
            let begun = Instant::now();
            let mut asked: Option<Instant> = None;
            while idle.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if interrupt.is_requested() {
                    watching.ask(Urgency::Interrupted);
                    if asked.get_or_insert_with(Instant::now).elapsed() > GRACE {
                        watching.ask(Urgency::AtOnce);
                    }
                } else if begun.elapsed() >= limit {
                    watching.ask(Urgency::TimeIsUp);
                }
            }
        });
        let done = act(&cancel);
        drop(busy);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_time_is_told() {
        let interrupt = Interrupt::default();
        let waits = |cancel: &Cancel| {
            while !cancel.is_asked(Urgency::TimeIsUp) {
                std::thread::yield_now();
            }
            cancel.is_asked(Urgency::Interrupted)
        };
        assert!(!watched(&interrupt, Duration::ZERO, waits));
    }
}
