//! `--gdb PORT` of `raddle replay` and `raddle kernel replay`: waits for gdb on a port of this machine.

use std::net::TcpListener;

use anyhow::Context;
use raddle_debug::gdb::Server;
use raddle_sched::travel::Rerun;

use crate::message;

/// Waits for one gdb and serves it until it leaves. Port 0 lets the system choose; `options` are what else gdb
/// should be called with.
pub(crate) fn serve<R: Rerun>(run: R, port: u16, options: &str) -> anyhow::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))
        .with_context(|| format!("cannot listen on port {port} of this machine"))?;
    let port = listener.local_addr()?.port();
    message::note(&format!(
        "waiting for gdb: gdb {options} -ex 'target remote :{port}'"
    ));
    let server = Server::new(run);
    let (stream, _) = listener.accept().context("gdb could not connect")?;
    stream.set_nodelay(true)?;
    server.serve(Box::new(stream))?;
    Ok(())
}
