//! `tcp_connect`, `unix_connect`: socket, connect and close.
//!
//! The other end is a socket that listens, which the kernel answers for: nothing else has to run
//! before connect returns. Connections are accepted between rounds, untimed, because only a limited
//! number may wait to be accepted.

use std::io;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use equipoise_reporting::problem::Problem;

use crate::channel::{close_without_waiting, tcp_listener};
use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, Row, timed};
use crate::system::problem_of;

/// Probe `tcp_connect`.
pub const TCP_CONNECT: Probe = Probe {
    name: "tcp_connect",
    class: Class::Ipc,
    summary: "socket, connect and close over the loopback; closed by a reset",
    needs: "a loopback interface",
    rows: &[Row::plain("tcp_connect")],
    ..Probe::latency(open_tcp)
};

fn open_tcp(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let listener = tcp_listener()?;
    let address = listener
        .local_addr()
        .map_err(|error| problem_of("getsockname", &error))?;
    let connect = move || {
        let stream =
            TcpStream::connect(address).map_err(|error| problem_of("connect over TCP", &error))?;
        close_without_waiting(&stream)
    };
    Ok(in_rounds(connect, move || listener.accept().map(drop)))
}

/// Probe `unix_connect`.
///
/// The address is an abstract one: it is no file, and ends with the socket.
pub const UNIX_CONNECT: Probe = Probe {
    name: "unix_connect",
    class: Class::Ipc,
    summary: "socket, connect and close over AF_UNIX, to an abstract address",
    rows: &[Row::plain("unix_connect")],
    ..Probe::latency(open_unix)
};

fn open_unix(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let name = format!("equipoise-probe-{}", std::process::id());
    let refused = |error| problem_of(&format!("AF_UNIX at @{name}"), &error);
    let address = SocketAddr::from_abstract_name(&name).map_err(refused)?;
    let listener = UnixListener::bind_addr(&address).map_err(refused)?;
    let connect = move || {
        UnixStream::connect_addr(&address)
            .map(drop)
            .map_err(|error| problem_of("connect over AF_UNIX", &error))
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
        rounds(count, |round| {
            let took = timed(round, &mut connect)?;
            for _ in 0..round {
                accept().map_err(|error| problem_of("accept", &error))?;
            }
            Ok(took)
        })
    })
}

/// Splits `count` connections into rounds, and returns the time of all rounds.
fn rounds(
    count: u64,
    mut round: impl FnMut(u64) -> Result<Duration, Problem>,
) -> Result<Duration, Problem> {
    let mut took = Duration::ZERO;
    let mut left = count;
    while left > 0 {
        let now = left.min(ROUND);
        took += round(now)?;
        left -= now;
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_round_is_larger_than_what_may_wait_and_all_are_timed() {
        let mut sizes = Vec::new();
        let took = rounds(2 * ROUND + 3, |round| {
            sizes.push(round);
            Ok(Duration::from_millis(round))
        });
        assert_eq!(sizes, [ROUND, ROUND, 3]);
        assert_eq!(took.unwrap(), Duration::from_millis(2 * ROUND + 3));
    }
}
