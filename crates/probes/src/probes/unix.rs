//! Probe `unix`: round trips of one byte through a pair of `AF_UNIX` stream sockets.

use std::os::unix::net::UnixStream;

use equipoise_reporting::problem::Problem;

use crate::channel::{End, Ends};
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::{self, PLACEMENTS};
use crate::system::problem_of;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "unix",
    class: Class::Ipc,
    words: "one byte to another process and its answer back, through AF_UNIX streams",
    metric: Metric::Latency,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "",
    rows: &[
        Row::plain("unix_same_cpu").at(Placement::SameCpu),
        Row::plain("unix_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| round_trip::open(asked, ends),
};

/// A pair of connected sockets without a name.
///
/// # Errors
/// What the system says.
pub fn ends() -> Result<Ends, Problem> {
    let (one, other) = UnixStream::pair().map_err(|error| problem_of("socketpair", &error))?;
    Ok((End::of_socket(one)?, End::of_socket(other)?))
}
