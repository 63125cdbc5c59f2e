//! Probe `select_tcp`: whether any of many connections has something to read.

use std::mem::MaybeUninit;
use std::ptr::null_mut;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::connections::{Connections, DESCRIPTORS};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::system::expect;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "select_tcp",
    class: Class::SystemCalls,
    words: "select on 100 idle TCP descriptors, without waiting",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: Some(DESCRIPTORS),
    needs: "the loopback interface",
    rows: &[Row::plain("select_tcp")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let connections = Connections::open(asked)?;
    // SAFETY: all-zero is an empty set.
    let mut watched: libc::fd_set = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut beyond = 0;
    for descriptor in connections.watched(asked) {
        if usize::try_from(descriptor).is_ok_and(|number| number >= libc::FD_SETSIZE) {
            return Err(Problem::failure(format!(
                "descriptor {descriptor} is too high for select; watch fewer with --count"
            )));
        }
        // SAFETY: the number is within the set.
        unsafe { libc::FD_SET(descriptor, &raw mut watched) };
        beyond = beyond.max(descriptor + 1);
    }
    Ok(Opened::latency(move |count| {
        let _open = &connections;
        timed(count, || {
            // The call writes its answer over the set.
            let mut readable = watched;
            let mut at_once = libc::timeval {
                tv_sec: 0,
                tv_usec: 0,
            };
            // SAFETY: the set and the time can be read and written.
            let ready = unsafe {
                libc::select(
                    beyond,
                    &raw mut readable,
                    null_mut(),
                    null_mut(),
                    &raw mut at_once,
                )
            };
            expect("select", ready, 0)
        })
    }))
}
