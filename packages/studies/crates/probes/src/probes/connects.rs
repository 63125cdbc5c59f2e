//! `tcp_connect`, `unix_connect`: socket, connect and close.
//!
//! The other end is a listening socket, for which the kernel answers. So no other process has to
//! run before connect returns. Only a limited number of connections may wait to be accepted, so the
//! probe accepts all connections between two rounds, untimed.

use std::io;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use equipoise_reporting::problem::Problem;

use crate::channel::{reset_on_close, tcp_listener};
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
        reset_on_close(&stream)
    };
    Ok(in_rounds(connect, move || listener.accept().map(drop)))
}

/// Probe `unix_connect`. The address is abstract: it is not a file, and disappears with the socket.
pub const UNIX_CONNECT: Probe = Probe {
    name: "unix_connect",
    summary: "socket, connect and close over AF_UNIX, to an abstract address",
    ..Probe::latency(Class::Ipc, open_unix)
};

fn open_unix(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let name = format!("equipoise-probe-{}", std::process::id());
    let description = format!("AF_UNIX at @{name}");
    let problem = problem_of(&description);
    let address = SocketAddr::from_abstract_name(&name).map_err(problem)?;
    let listener = UnixListener::bind_addr(&address).map_err(problem)?;
    let connect = move || {
        UnixStream::connect_addr(&address)
            .map(drop)
            .map_err(problem_of("connect over AF_UNIX"))
    };
    Ok(in_rounds(connect, move || listener.accept().map(drop)))
}

/// Number of connections in a round. Every system lets more connections wait to be accepted.
const CONNECTIONS_PER_ROUND: u64 = 32;

/// Returns a probe that times rounds of `connect`, and accepts the connections after each round.
fn in_rounds(
    mut connect: impl FnMut() -> Result<(), Problem> + 'static,
    mut accept: impl FnMut() -> io::Result<()> + 'static,
) -> OpenProbe {
    OpenProbe::latency(move |count| {
        let mut elapsed = Duration::ZERO;
        for round in rounds(count, CONNECTIONS_PER_ROUND) {
            elapsed += timed(round, &mut connect)?;
            for _ in 0..round {
                accept().map_err(problem_of("accept"))?;
            }
        }
        Ok(elapsed)
    })
}
