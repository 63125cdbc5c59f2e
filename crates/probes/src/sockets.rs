//! TCP connections over the loopback interface that leave nothing behind.

use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use equipoise_reporting::problem::Problem;

use crate::system::{expect, problem_of};

/// Both ends of a connection over 127.0.0.1, which ends without a trace when they are closed.
///
/// # Errors
/// What the system says.
pub fn tcp_pair() -> Result<(TcpStream, TcpStream), Problem> {
    let listener = tcp_listener()?;
    let ends = |error: io::Error| problem_of("TCP over 127.0.0.1", &error);
    let one = TcpStream::connect(listener.local_addr().map_err(ends)?).map_err(ends)?;
    loop {
        let (other, from) = listener.accept().map_err(ends)?;
        // Any process of this machine may have connected first.
        if from == one.local_addr().map_err(ends)? {
            close_without_waiting(&one)?;
            close_without_waiting(&other)?;
            return Ok((one, other));
        }
    }
}

/// Listens on a port of 127.0.0.1 that the kernel chooses.
///
/// # Errors
/// What the system says.
pub fn tcp_listener() -> Result<TcpListener, Problem> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .map_err(|error| problem_of("TCP on 127.0.0.1", &error))
}

/// Resets the connection when it is closed, so that no socket waits for late packets
/// (`TIME_WAIT`) after the probe.
///
/// # Errors
/// What `setsockopt` says.
pub fn close_without_waiting(socket: &impl AsRawFd) -> Result<(), Problem> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let size = libc::socklen_t::try_from(size_of::<libc::linger>()).unwrap_or_default();
    // SAFETY: the option is valid for reading the size that is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size,
        )
    };
    expect("setsockopt(SO_LINGER)", result, 0)
}
