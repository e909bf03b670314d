//! What a hardened program has survived: the log that its runtime writes, read back.
//!
//! The log may stand among other lines, with a time or a host before each: whatever follows `raddle-harden: ` counts. A
//! line that cannot be understood is counted, too, so that nothing vanishes.

use std::collections::BTreeMap;

/// What every line of the log begins with.
const MARK: &str = "raddle-harden: ";

/// A place in the source where failures were noticed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    pub file: String,
    pub line: u32,
    pub function: String,
    /// `assertion`, `dereference`, `output`, `deadlock` or `oracle`.
    pub kind: String,
}

/// What happened there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survived {
    pub failed: u64,
    pub recovered: u64,
    pub not_recovered: u64,
    /// Of all recoveries.
    pub retries: u64,
    pub most_retries: u64,
    /// Of each recovery.
    pub microseconds: Vec<u64>,
}

/// A whole log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    pub sites: BTreeMap<Site, Survived>,
    /// Deadlocks that were told, who waits for whom, with how often.
    pub deadlocks: BTreeMap<String, u64>,
    /// What processes said when they ended.
    pub summaries: Vec<String>,
    /// Lines of the runtime that say something else.
    pub others: u64,
}

/// Whether a text has lines of such a log.
pub fn is_log(text: &str) -> bool {
    text.lines().any(|line| line.contains(MARK))
}

/// Reads a log.
pub fn read(text: &str) -> Log {
    let mut log = Log::default();
    for line in text.lines() {
        let Some((_, said)) = line.split_once(MARK) else {
            continue;
        };
        if let Some(summary) = said.strip_prefix("summary: ") {
            log.summaries.push(summary.to_owned());
        } else if log.take(said).is_none() {
            log.others += 1;
        }
    }
    log
}

impl Log {
    /// Takes a line that names a site; nothing if it does not.
    fn take(&mut self, said: &str) -> Option<()> {
        let (place, rest) = said.split_once("): ")?;
        let (place, function) = place.split_once(" (")?;
        let (file, line) = place.rsplit_once(':')?;
        let (kind, event) = rest.split_once(' ')?;
        let site = Site {
            file: file.to_owned(),
            line: line.parse().ok()?,
            function: function.to_owned(),
            kind: kind.to_owned(),
        };
        if event.contains("cannot be recovered from: ") || event.contains("suspected: ") {
            *self.deadlocks.entry(said.to_owned()).or_default() += 1;
            return Some(());
        }
        let event = Event::read(event)?;
        let survived = self.sites.entry(site).or_default();
        match event {
            Event::Failed => survived.failed += 1,
            Event::Recovered(retries, microseconds) => {
                survived.recovered += 1;
                survived.retries = survived.retries.saturating_add(retries);
                survived.most_retries = survived.most_retries.max(retries);
                survived.microseconds.push(microseconds);
            }
            Event::GivenUp => survived.not_recovered += 1,
        }
        Some(())
    }
}

/// What a line says of its site.
enum Event {
    Failed,
    /// After so many retries and microseconds.
    Recovered(u64, u64),
    GivenUp,
}

impl Event {
    fn read(text: &str) -> Option<Self> {
        if text == "failed, re-executing" {
            return Some(Self::Failed);
        }
        if text.starts_with("not recovered after ") {
            return Some(Self::GivenUp);
        }
        let (retries, time) = text.strip_prefix("recovered after ")?.split_once(", ")?;
        let (retries, _) = retries.split_once(' ')?;
        let microseconds = time.strip_suffix(" us")?;
        Some(Self::Recovered(
            retries.parse().ok()?,
            microseconds.parse().ok()?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as the runtime writes them, among those of a journal.
    pub(crate) const LOG: &str = "\
started\n\
raddle-harden: src/queue.c:12 (push): deadlock failed, re-executing\n\
raddle-harden: src/queue.c:12 (push): deadlock recovered after 1 retry, 96 us\n\
Nov 19 10:00:00 host server[7]: raddle-harden: q.cpp:3 (ns::Queue::push(int, char const*)): assertion failed, re-executing\n\
raddle-harden: q.cpp:3 (ns::Queue::push(int, char const*)): assertion recovered after 40 retries, 1200 us\n\
raddle-harden: q.cpp:3 (ns::Queue::push(int, char const*)): assertion not recovered after 1000 retries; the program goes on as it would have\n\
raddle-harden: a.c:17 (right): deadlock of 2 threads cannot be recovered from: thread 1 waits for lock 0x55, taken by thread 2 at a.c:7 (left)\n\
raddle-harden: summary: 2 recoveries, 41 retries, 1 not recovered, 1 deadlocks told\n\
raddle-harden: something else\n";

    #[test]
    fn lines_are_counted_by_site() {
        assert!(is_log(LOG));
        assert!(!is_log("a program's output\n"));
        let log = read(LOG);
        let sites: Vec<(&Site, &Survived)> = log.sites.iter().collect();
        let [(assertion, of_assertion), (deadlock, of_deadlock)] = sites[..] else {
            panic!("{log:?}");
        };
        assert_eq!(assertion.function, "ns::Queue::push(int, char const*)");
        assert_eq!((assertion.line, assertion.kind.as_str()), (3, "assertion"));
        assert_eq!((of_assertion.failed, of_assertion.recovered), (1, 1));
        assert_eq!(of_assertion.not_recovered, 1);
        assert_eq!(of_assertion.most_retries, 40);
        assert_eq!(deadlock.file, "src/queue.c");
        assert_eq!(of_deadlock.microseconds, [96]);
        assert_eq!(log.deadlocks.len(), 1);
        assert_eq!(log.summaries.len(), 1);
        assert_eq!(log.others, 1);
    }
}
