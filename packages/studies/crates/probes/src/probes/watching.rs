//! `select_tcp`, `poll_tcp`, `epoll_tcp`: ask the kernel which of many idle connections have data.

use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::channel::tcp_pair;
use crate::probe::{Class, OpenProbe, Parameter, Probe, ProbeOptions, timed};
use crate::system::{check_negative, check_result};

pub const SELECT_TCP: Probe = Probe {
    name: "select_tcp",
    summary: "select on 100 idle TCP descriptors, without waiting",
    count: Some(DESCRIPTOR_COUNT),
    needs: "the loopback interface",
    ..Probe::latency(Class::SystemCalls, open_select_tcp)
};

fn open_select_tcp(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let (connections, descriptors) = idle_connections(options)?;
    // SAFETY: all-zero is an empty set.
    let mut watched: libc::fd_set = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut descriptor_limit = 0;
    for descriptor in descriptors {
        if usize::try_from(descriptor).is_ok_and(|number| number >= libc::FD_SETSIZE) {
            return Err(Problem::failure(format!(
                "descriptor {descriptor} is too high for select; give a smaller --count"
            )));
        }
        // SAFETY: the number is within the set.
        unsafe { libc::FD_SET(descriptor, &raw mut watched) };
        descriptor_limit = descriptor_limit.max(descriptor + 1);
    }
    Ok(OpenProbe::latency(move |count| {
        let _open = &connections;
        timed(count, || {
            // The call overwrites the set with its answer.
            let mut readable = watched;
            let mut no_wait = libc::timeval {
                tv_sec: 0,
                tv_usec: 0,
            };
            // SAFETY: the set and the time can be read and written.
            let ready = unsafe {
                libc::select(
                    descriptor_limit,
                    &raw mut readable,
                    null_mut(),
                    null_mut(),
                    &raw mut no_wait,
                )
            };
            check_result("select", ready, 0)
        })
    }))
}

pub const POLL_TCP: Probe = Probe {
    name: "poll_tcp",
    summary: "poll of 100 idle TCP descriptors, without waiting",
    count: Some(DESCRIPTOR_COUNT),
    needs: "the loopback interface",
    ..Probe::latency(Class::SystemCalls, open_poll_tcp)
};

fn open_poll_tcp(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let (connections, descriptors) = idle_connections(options)?;
    let mut watched: Vec<_> = descriptors
        .into_iter()
        .map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    Ok(OpenProbe::latency(move |count| {
        let _open = &connections;
        timed(count, || {
            // SAFETY: the entries are valid for reading and writing.
            let ready =
                unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, 0) };
            check_result("poll", ready, 0)
        })
    }))
}

pub const EPOLL_TCP: Probe = Probe {
    name: "epoll_tcp",
    summary: "epoll_wait on 100 idle TCP descriptors, without waiting",
    count: Some(DESCRIPTOR_COUNT),
    needs: "the loopback interface",
    ..Probe::latency(Class::SystemCalls, open_epoll_tcp)
};

fn open_epoll_tcp(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let (connections, descriptors) = idle_connections(options)?;
    // SAFETY: passes numbers only.
    let queue = check_negative("epoll_create1", unsafe { libc::epoll_create1(0) })?;
    // SAFETY: a new descriptor without another owner.
    let queue = unsafe { OwnedFd::from_raw_fd(queue) };
    for descriptor in descriptors {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN.cast_unsigned(),
            u64: 0,
        };
        // SAFETY: the event can be read.
        let result = unsafe {
            let add = libc::EPOLL_CTL_ADD;
            libc::epoll_ctl(queue.as_raw_fd(), add, descriptor, &raw mut event)
        };
        check_result("epoll_ctl", result, 0)?;
    }
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
    Ok(OpenProbe::latency(move |count| {
        let _open = &connections;
        timed(count, || {
            // SAFETY: sixteen events can be written.
            let ready = unsafe { libc::epoll_wait(queue.as_raw_fd(), events.as_mut_ptr(), 16, 0) };
            check_result("epoll_wait", ready, 0)
        })
    }))
}

const DESCRIPTOR_COUNT: Parameter = Parameter {
    summary: "TCP descriptors that are watched, of which none is ready",
    default: 100,
    minimum: 2,
    maximum: 900,
};

/// Opens idle connections over the loopback interface. Returns all ends, and the descriptors to
/// watch. If their number is odd, only one end of the last connection is watched.
fn idle_connections(options: &ProbeOptions) -> Result<(Vec<TcpStream>, Vec<RawFd>), Problem> {
    let mut ends = Vec::new();
    for _ in 0..options.count.div_ceil(2) {
        let (one, other) = tcp_pair()?;
        ends.extend([one, other]);
    }
    let watched = ends.iter().take(to_usize(options.count));
    let watched = watched.map(AsRawFd::as_raw_fd).collect();
    Ok((ends, watched))
}
