//! Probe `tcp_connect`: socket, connect and close, over the loopback interface.
//!
//! The other end is a socket that listens, which the kernel answers for: nothing else has to run
//! before connect returns. What it has taken in is accepted between the rounds, untimed.

use std::net::{SocketAddr, TcpListener, TcpStream};

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::rounds::in_rounds;
use crate::sockets::{close_without_waiting, tcp_listener};
use crate::system::problem_of;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "tcp_connect",
    class: Class::Ipc,
    words: "socket, connect and close over the loopback; closed by a reset",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "a loopback interface",
    rows: &[Row::plain("tcp_connect")],
    open,
};

fn open(_: &Asked) -> Result<Opened, Problem> {
    let listener = tcp_listener()?;
    let address = listener
        .local_addr()
        .map_err(|error| problem_of("getsockname", &error))?;
    Ok(Opened::latency(move |count| {
        in_rounds(count, |round| {
            let took = timed(round, || connect(address))?;
            accept(&listener, round)?;
            Ok(took)
        })
    }))
}

fn connect(address: SocketAddr) -> Result<(), Problem> {
    let stream =
        TcpStream::connect(address).map_err(|error| problem_of("connect over TCP", &error))?;
    close_without_waiting(&stream)
}

fn accept(listener: &TcpListener, round: u64) -> Result<(), Problem> {
    for _ in 0..round {
        listener
            .accept()
            .map_err(|error| problem_of("accept over TCP", &error))?;
    }
    Ok(())
}
