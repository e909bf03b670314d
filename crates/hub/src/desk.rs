//! A bench on a thread of its own: for subjects that borrow what they are made of, which then lives on that thread's
//! stack.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use raddle_linux::ContentId;

use crate::bench::Bench;
use crate::message::Batch;

/// Bytes of the thread's stack: subjects are brought to their start on it.
const STACK_BYTES: usize = 64 << 20;

/// What the bench is asked to do.
struct Asked {
    batch: Batch,
    text: Option<String>,
    worker: String,
}

type Told = Result<Vec<u8>, String>;

/// The near end of a bench that lives on another thread.
pub struct DistantBench {
    asks: Option<Sender<Asked>>,
    told: Receiver<Told>,
    thread: Option<JoinHandle<()>>,
    /// What jobs shared that it did last.
    known: Option<ContentId>,
}

impl fmt::Debug for DistantBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DistantBench")
    }
}

/// The far end: where the thread takes its work from.
pub struct Desk {
    started: Sender<Result<(), String>>,
    asked: Receiver<Asked>,
    told: Sender<Told>,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Desk")
    }
}

impl Desk {
    /// There will be no bench.
    pub fn refuse(self, why: String) {
        drop(self.started.send(Err(why)));
    }

    /// Works at this bench as long as there can be work.
    pub fn serve(self, bench: &mut dyn Bench) {
        if self.started.send(Ok(())).is_err() {
            return;
        }
        for Asked {
            batch,
            text,
            worker,
        } in self.asked
        {
            let told = bench.run(&batch, text.as_deref(), &worker);
            if self.told.send(told).is_err() {
                return;
            }
        }
    }
}

impl DistantBench {
    /// Starts a thread that makes a bench and works at it.
    ///
    /// # Errors
    /// The thread says why there is no bench, or panics.
    pub fn start(work: impl FnOnce(Desk) + Send + 'static) -> Result<Self, String> {
        let (asks, asked) = channel();
        let (tell, told) = channel();
        let (started, start) = channel();
        let desk = Desk {
            started,
            asked,
            told: tell,
        };
        let thread = Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn(move || work(desk));
        let thread = thread.map_err(|error| format!("no thread can be had for it: {error}"))?;
        match start.recv() {
            Ok(Ok(())) => Ok(Self {
                asks: Some(asks),
                told,
                thread: Some(thread),
                known: None,
            }),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(PANICKED.to_owned()),
        }
    }
}

/// The thread is gone without a word.
const PANICKED: &str = "it made the worker panic, which is a bug of raddle's";

impl Bench for DistantBench {
    fn run(&mut self, batch: &Batch, text: Option<&str>, worker: &str) -> Told {
        self.known = None;
        let asked = Asked {
            batch: batch.clone(),
            text: text.map(str::to_owned),
            worker: worker.to_owned(),
        };
        let is_asked = self
            .asks
            .as_ref()
            .is_some_and(|asks| asks.send(asked).is_ok());
        let told = match self.told.recv() {
            Ok(told) if is_asked => told?,
            _ => return Err(PANICKED.to_owned()),
        };
        self.known = Some(batch.shared.id.clone());
        Ok(told)
    }

    fn knows(&self, shared: &ContentId) -> bool {
        self.known.as_ref() == Some(shared)
    }
}

impl Drop for DistantBench {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            // It has told of its panic already.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::id_of;
    use crate::message::SharedPart;

    struct Echo;

    impl Bench for Echo {
        fn run(&mut self, batch: &Batch, text: Option<&str>, worker: &str) -> Told {
            assert_ne!(worker, "bad", "a job that breaks the bench");
            match text {
                Some("?") => Err("it cannot be read".to_owned()),
                _ => Ok(format!("{} {text:?}", batch.campaign).into_bytes()),
            }
        }

        fn knows(&self, _: &ContentId) -> bool {
            unreachable!("the near end knows")
        }
    }

    fn batch() -> Batch {
        Batch {
            campaign: "c".into(),
            subject: id_of(b"subject"),
            shared: SharedPart {
                id: id_of(b"{}"),
                text: None,
            },
            attempt: 0,
            jobs: Vec::new(),
        }
    }

    #[test]
    fn work_goes_to_the_thread_and_back() {
        let mut bench = DistantBench::start(|desk| desk.serve(&mut Echo)).unwrap();
        let batch = batch();
        assert!(!bench.knows(&batch.shared.id));
        let told = bench.run(&batch, Some("{}"), "w");
        assert_eq!(told.unwrap(), b"c Some(\"{}\")");
        assert!(bench.knows(&batch.shared.id));
        let told = bench.run(&batch, Some("?"), "w");
        assert_eq!(told.unwrap_err(), "it cannot be read");
        assert!(!bench.knows(&batch.shared.id), "it is told again");
    }

    #[test]
    fn refusals_and_panics_are_told() {
        let refused = DistantBench::start(|desk| desk.refuse("no kernel".into()));
        assert_eq!(refused.unwrap_err(), "no kernel");
        let gone = DistantBench::start(drop);
        assert_eq!(gone.unwrap_err(), PANICKED);
        let mut bench = DistantBench::start(|desk| desk.serve(&mut Echo)).unwrap();
        for _ in 0..2 {
            assert_eq!(bench.run(&batch(), None, "bad").unwrap_err(), PANICKED);
        }
    }
}
