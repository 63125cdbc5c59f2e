//! Probe `poll_tcp`: the same question by poll.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::connections::{Connections, DESCRIPTORS};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::system::expect;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "poll_tcp",
    class: Class::SystemCalls,
    words: "poll of 100 idle TCP descriptors, without waiting",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: Some(DESCRIPTORS),
    needs: "the loopback interface",
    rows: &[Row::plain("poll_tcp")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let connections = Connections::open(asked)?;
    let mut watched: Vec<_> = connections
        .watched(asked)
        .into_iter()
        .map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    Ok(Opened::latency(move |count| {
        let _open = &connections;
        timed(count, || {
            // SAFETY: so many entries can be read and written.
            let ready =
                unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, 0) };
            expect("poll", ready, 0)
        })
    }))
}
