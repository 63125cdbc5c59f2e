//! Probe `unix_connect`: socket, connect and close, over `AF_UNIX`.
//!
//! As `tcp_connect`. The address is an abstract one: it is no file, and ends with the socket.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::rounds::in_rounds;
use crate::system::problem_of;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "unix_connect",
    class: Class::Ipc,
    words: "socket, connect and close over AF_UNIX, to an abstract address",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "",
    rows: &[Row::plain("unix_connect")],
    open,
};

fn open(_: &Asked) -> Result<Opened, Problem> {
    let name = format!("equipoise-probe-{}", std::process::id());
    let on = |error| problem_of(&format!("AF_UNIX at @{name}"), &error);
    let address = SocketAddr::from_abstract_name(&name).map_err(on)?;
    let listener = UnixListener::bind_addr(&address).map_err(on)?;
    Ok(Opened::latency(move |count| {
        in_rounds(count, |round| {
            let took = timed(round, || connect(&address))?;
            accept(&listener, round)?;
            Ok(took)
        })
    }))
}

fn connect(address: &SocketAddr) -> Result<(), Problem> {
    UnixStream::connect_addr(address)
        .map(drop)
        .map_err(|error| problem_of("connect over AF_UNIX", &error))
}

fn accept(listener: &UnixListener, round: u64) -> Result<(), Problem> {
    for _ in 0..round {
        listener
            .accept()
            .map_err(|error| problem_of("accept over AF_UNIX", &error))?;
    }
    Ok(())
}
