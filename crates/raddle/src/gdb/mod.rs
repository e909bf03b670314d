//! `raddle replay --gdb PORT`: serves a recorded run to gdb, forwards and backwards.
//!
//! Reading order: [`serve`], [`target`] (what gdb asks for), [`registers`] (how it wants them).

mod registers;
mod target;

use std::net::TcpListener;

use anyhow::{Context, anyhow};
use gdbstub::common::Signal;
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{GdbStub, MultiThreadStopReason};
use gdbstub::target::Target;
use raddle_explore::Replayer;
use raddle_explore::travel::Travel;

use crate::message;
use target::Session;

/// Waits for one gdb and serves it until it leaves. Port 0 lets the system choose.
pub(crate) fn serve(replayer: Replayer<'_>, port: u16, program: &str) -> anyhow::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))
        .with_context(|| format!("cannot listen on port {port} of this machine"))?;
    let port = listener.local_addr()?.port();
    message::note(&format!(
        "waiting for gdb: gdb -ex 'set sysroot /' -ex 'target remote :{port}' {program}"
    ));
    let mut session = Session::new(Travel::new(replayer));
    let (stream, _) = listener.accept().context("gdb could not connect")?;
    stream.set_nodelay(true)?;
    let connection: Box<dyn ConnectionExt<Error = std::io::Error>> = Box::new(stream);
    GdbStub::new(connection)
        .run_blocking::<Loop<'_>>(&mut session)
        .map_err(|error| anyhow!("the conversation with gdb broke off: {error}"))?;
    Ok(())
}

struct Loop<'r>(std::marker::PhantomData<&'r ()>);

type Waited<'r> = Result<
    Event<MultiThreadStopReason<u64>>,
    WaitForStopReasonError<<Session<'r> as Target>::Error, std::io::Error>,
>;

impl<'r> BlockingEventLoop for Loop<'r> {
    type Target = Session<'r>;
    type Connection = Box<dyn ConnectionExt<Error = std::io::Error>>;
    type StopReason = MultiThreadStopReason<u64>;

    /// Replays are short: what was asked for is done when gdb wants to know.
    fn wait_for_stop_reason(target: &mut Session<'r>, _: &mut Self::Connection) -> Waited<'r> {
        Ok(Event::TargetStopped(target.go()))
    }

    fn on_interrupt(
        _: &mut Session<'r>,
    ) -> Result<Option<Self::StopReason>, <Session<'r> as Target>::Error> {
        Ok(Some(MultiThreadStopReason::Signal(Signal::SIGINT)))
    }
}
