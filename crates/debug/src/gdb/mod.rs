//! `--gdb PORT` of `raddle replay` and `raddle kernel replay`: serves a recorded run to gdb, forwards and backwards.
//!
//! Reading order: [`Server`], `target` (what gdb asks for), `registers` and `libraries` (how it wants them).

mod libraries;
mod registers;
mod target;

use gdbstub::common::Signal;
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{GdbStub, MultiThreadStopReason};
use gdbstub::target::Target;
use raddle_sched::travel::{Rerun, Travel};
use thiserror::Error;

use target::Session;

/// The conversation did not come to its end.
#[derive(Debug, Error)]
#[error("the conversation with gdb broke off: {0}")]
pub struct BrokenOff(String);

/// A connection to gdb.
pub type Connection = Box<dyn ConnectionExt<Error = std::io::Error>>;

/// A recorded run that waits for gdb.
#[derive(Debug)]
pub struct Server<R>(Session<R>);

impl<R: Rerun> Server<R> {
    /// Runs through the recording once.
    pub fn new(run: R) -> Self {
        Self(Session::new(Travel::new(run)))
    }

    /// Serves one gdb until it leaves.
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn serve(mut self, connection: Connection) -> Result<(), BrokenOff> {
        let served = GdbStub::new(connection).run_blocking::<Loop<R>>(&mut self.0);
        served.map_err(|error| BrokenOff(error.to_string()))?;
        Ok(())
    }
}

/// gdb's event loop over a run.
struct Loop<R>(std::marker::PhantomData<R>);

type Waited<R> = Result<
    Event<MultiThreadStopReason<u64>>,
    WaitForStopReasonError<<Session<R> as Target>::Error, std::io::Error>,
>;

impl<R: Rerun> BlockingEventLoop for Loop<R> {
    type Target = Session<R>;
    type Connection = Connection;
    type StopReason = MultiThreadStopReason<u64>;

    /// Replays are short: what was asked for is done when gdb wants to know.
    fn wait_for_stop_reason(target: &mut Session<R>, _: &mut Self::Connection) -> Waited<R> {
        Ok(Event::TargetStopped(target.go()))
    }

    fn on_interrupt(
        _: &mut Session<R>,
    ) -> Result<Option<Self::StopReason>, <Session<R> as Target>::Error> {
        Ok(Some(MultiThreadStopReason::Signal(Signal::SIGINT)))
    }
}
