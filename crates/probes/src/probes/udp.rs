//! Probe `udp`: round trips of one byte through UDP on the loopback interface.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use equipoise_reporting::problem::Problem;

use crate::channel::{End, Ends};
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::{self, PLACEMENTS};
use crate::system::problem_of;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "udp",
    class: Class::Ipc,
    words: "one byte to another process and its answer back, through UDP on the loopback",
    metric: Metric::Latency,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "a loopback interface",
    rows: &[
        Row::plain("udp_same_cpu").at(Placement::SameCpu),
        Row::plain("udp_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| round_trip::open(asked, ends),
};

fn ends() -> Result<Ends, Problem> {
    let (one, other) = pair().map_err(|error| problem_of("UDP on 127.0.0.1", &error))?;
    Ok((End::of_socket(one)?, End::of_socket(other)?))
}

/// Two sockets that hear each other and nobody else.
fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let one = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    Ok((one, other))
}
