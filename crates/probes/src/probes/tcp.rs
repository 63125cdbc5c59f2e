//! Probe `tcp`: round trips of one byte through TCP on the loopback interface.

use equipoise_reporting::problem::Problem;

use crate::channel::{End, Ends};
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::{self, PLACEMENTS};
use crate::sockets::tcp_pair;
use crate::system::problem_of;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "tcp",
    class: Class::Ipc,
    words: "one byte to another process and its answer back, through TCP on the loopback",
    metric: Metric::Latency,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "a loopback interface",
    rows: &[
        Row::plain("tcp_same_cpu").at(Placement::SameCpu),
        Row::plain("tcp_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| round_trip::open(asked, ends),
};

/// The two ends of a connection on which every byte is sent at once.
///
/// # Errors
/// What the system says.
pub fn ends() -> Result<Ends, Problem> {
    let (one, other) = tcp_pair()?;
    for stream in [&one, &other] {
        stream
            .set_nodelay(true)
            .map_err(|error| problem_of("setsockopt(TCP_NODELAY)", &error))?;
    }
    Ok((End::of_socket(one)?, End::of_socket(other)?))
}
