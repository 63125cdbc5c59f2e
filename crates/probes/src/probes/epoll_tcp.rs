//! Probe `epoll_tcp`: the same question by epoll.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::connections::{Connections, DESCRIPTORS};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::system::{accepted, expect};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "epoll_tcp",
    class: Class::SystemCalls,
    words: "epoll_wait on 100 idle TCP descriptors, without waiting",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: Some(DESCRIPTORS),
    needs: "the loopback interface",
    rows: &[Row::plain("epoll_tcp")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let connections = Connections::open(asked)?;
    // SAFETY: passes numbers only.
    let queue = accepted("epoll_create1", unsafe { libc::epoll_create1(0) })?;
    // SAFETY: a new descriptor that nobody else owns.
    let queue = unsafe { OwnedFd::from_raw_fd(queue) };
    for descriptor in connections.watched(asked) {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN.cast_unsigned(),
            u64: 0,
        };
        // SAFETY: the event can be read.
        let result = unsafe {
            let add = libc::EPOLL_CTL_ADD;
            libc::epoll_ctl(queue.as_raw_fd(), add, descriptor, &raw mut event)
        };
        expect("epoll_ctl", result, 0)?;
    }
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
    Ok(Opened::latency(move |count| {
        let _open = &connections;
        timed(count, || {
            // SAFETY: sixteen events can be written.
            let ready = unsafe { libc::epoll_wait(queue.as_raw_fd(), events.as_mut_ptr(), 16, 0) };
            expect("epoll_wait", ready, 0)
        })
    }))
}
