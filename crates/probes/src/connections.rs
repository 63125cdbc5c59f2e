//! Many idle TCP connections, for the calls that watch descriptors.

use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::Parameter;
use crate::sockets::tcp_pair;

/// How many descriptors are watched.
pub const DESCRIPTORS: Parameter = Parameter {
    words: "TCP descriptors that are watched, of which none is ready",
    default: 100,
    least: 2,
    most: 900,
};

/// Connections over the loopback interface on which nothing is sent.
pub struct Connections {
    ends: Vec<TcpStream>,
}

impl Connections {
    /// Makes as many as were asked for: both ends of each connection are watched, and of the
    /// last one end if the number is odd.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(asked: &Asked) -> Result<Self, Problem> {
        let mut ends = Vec::new();
        for _ in 0..asked.count.div_ceil(2) {
            let (one, other) = tcp_pair()?;
            ends.extend([one, other]);
        }
        Ok(Self { ends })
    }

    /// The descriptors to watch.
    pub fn watched(&self, asked: &Asked) -> Vec<RawFd> {
        let count = usize::try_from(asked.count).unwrap_or(usize::MAX);
        self.ends
            .iter()
            .take(count)
            .map(AsRawFd::as_raw_fd)
            .collect()
    }
}
