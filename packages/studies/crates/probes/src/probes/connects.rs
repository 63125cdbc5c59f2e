//! `tcp_connect`, `unix_connect`: socket, connect and close.
//!
//! The other end is a listening socket, for which the kernel answers: no other process has to run
//! before connect returns. Connections are accepted between rounds, untimed, because only a limited
//! number may wait to be accepted.

use std::io;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use equipoise_reporting::problem::Problem;

use crate::channel::{close_without_waiting, tcp_listener};
use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, rounds, timed};
use crate::system::problem_of;

pub const TCP_CONNECT: Probe = Probe {
    name: "tcp_connect",
    summary: "socket, connect and close over the loopback; closed by a reset",
    needs: "a loopback interface",
    ..Probe::latency(Class::Ipc, open_tcp)
};

fn open_tcp(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let listener = tcp_listener()?;
    let address = listener.local_addr().map_err(problem_of("getsockname"))?;
    let connect = move || {
        let stream = TcpStream::connect(address).map_err(problem_of("connect over TCP"))?;
        close_without_waiting(&stream)
    };
    Ok(in_rounds(connect, move || listener.accept().map(drop)))
}

/// Probe `unix_connect`.
///
/// The address is abstract: it is not a file, and ends with the socket.
pub const UNIX_CONNECT: Probe = Probe {
    name: "unix_connect",
    summary: "socket, connect and close over AF_UNIX, to an abstract address",
    ..Probe::latency(Class::Ipc, open_unix)
};

fn open_unix(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let name = format!("equipoise-probe-{}", std::process::id());
    let place = format!("AF_UNIX at @{name}");
    let refused = problem_of(&place);
    let address = SocketAddr::from_abstract_name(&name).map_err(refused)?;
    let listener = UnixListener::bind_addr(&address).map_err(refused)?;
    let connect = move || {
        UnixStream::connect_addr(&address)
            .map(drop)
            .map_err(problem_of("connect over AF_UNIX"))
    };
    Ok(in_rounds(connect, move || listener.accept().map(drop)))
}

/// Connections that wait to be accepted; every system lets more of them wait.
const ROUND: u64 = 32;

/// Returns a probe that times `connect` and runs `accept` for each connection after a round.
fn in_rounds(
    mut connect: impl FnMut() -> Result<(), Problem> + 'static,
    mut accept: impl FnMut() -> io::Result<()> + 'static,
) -> OpenProbe {
    OpenProbe::latency(move |count| {
        let mut took = Duration::ZERO;
        for round in rounds(count, ROUND) {
            took += timed(round, &mut connect)?;
            for _ in 0..round {
                accept().map_err(problem_of("accept"))?;
            }
        }
        Ok(took)
    })
}
