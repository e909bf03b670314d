//! `--gdb PORT` of `raddle replay` and `raddle kernel replay`: serves a recorded run to gdb, forwards and backwards.
//!
//! Reading order: [`serve`], [`target`] (what gdb asks for), [`registers`] and [`libraries`] (how it wants them).

mod libraries;
mod registers;
mod target;

use std::net::TcpListener;

use anyhow::{Context, anyhow};
use gdbstub::common::Signal;
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{GdbStub, MultiThreadStopReason};
use gdbstub::target::Target;
use raddle_sched::travel::{Rerun, Travel};

use crate::message;
use target::Session;

/// Waits for one gdb and serves it until it leaves. Port 0 lets the system choose; `options` are what else gdb
/// should be called with.
pub(crate) fn serve<R: Rerun>(run: R, port: u16, options: &str) -> anyhow::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))
        .with_context(|| format!("cannot listen on port {port} of this machine"))?;
    let port = listener.local_addr()?.port();
    message::note(&format!(
        "waiting for gdb: gdb {options} -ex 'target remote :{port}'"
    ));
    let mut session = Session::new(Travel::new(run));
    let (stream, _) = listener.accept().context("gdb could not connect")?;
    stream.set_nodelay(true)?;
    let connection: Box<dyn ConnectionExt<Error = std::io::Error>> = Box::new(stream);
    GdbStub::new(connection)
        .run_blocking::<Loop<R>>(&mut session)
        .map_err(|error| anyhow!("the conversation with gdb broke off: {error}"))?;
    Ok(())
}

struct Loop<R>(std::marker::PhantomData<R>);

type Waited<R> = Result<
    Event<MultiThreadStopReason<u64>>,
    WaitForStopReasonError<<Session<R> as Target>::Error, std::io::Error>,
>;

impl<R: Rerun> BlockingEventLoop for Loop<R> {
    type Target = Session<R>;
    type Connection = Box<dyn ConnectionExt<Error = std::io::Error>>;
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
