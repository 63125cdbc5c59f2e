//! TCP connections over the loopback interface that leave nothing behind.
//!
//! A connection that is closed in the usual way waits for late packets (`TIME_WAIT`) for a
//! minute, whatever became of its process. These are reset instead, and say so before they
//! connect, so that there is no moment at which a killed probe leaves one.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};

use equipoise_reporting::problem::Problem;

use crate::system::{accepted, expect, problem_of};

#[expect(clippy::cast_possible_truncation, reason = "a small number")]
const INTERNET: libc::sa_family_t = libc::AF_INET as libc::sa_family_t;

const PLACE: &str = "TCP over 127.0.0.1";

/// Both ends of a connection.
///
/// # Errors
/// What the system says.
pub fn tcp_pair() -> Result<(TcpStream, TcpStream), Problem> {
    let listener = tcp_listener()?;
    let one = tcp_connect(listener.local_addr().map_err(refused)?.port())?;
    let own = one.local_addr().map_err(refused)?;
    loop {
        let (other, from) = listener.accept().map_err(refused)?;
        // Any process of this machine may have connected first.
        if from == own {
            return Ok((one, other));
        }
    }
}

/// Listens on a port that the kernel chooses; what it accepts is reset when closed.
///
/// # Errors
/// What the system says.
pub fn tcp_listener() -> Result<TcpListener, Problem> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(refused)?;
    close_without_waiting(&listener)?;
    Ok(listener)
}

/// Connects to a port of this machine; the connection is reset when closed.
///
/// # Errors
/// What the system says.
#[inline]
pub fn tcp_connect(port: u16) -> Result<TcpStream, Problem> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: passes numbers only.
    let socket = accepted("socket", unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    // SAFETY: a new descriptor that nobody else owns.
    let socket = unsafe { TcpStream::from_raw_fd(socket) };
    close_without_waiting(&socket)?;
    // SAFETY: all-zero is a valid address.
    let mut to: libc::sockaddr_in = unsafe { MaybeUninit::zeroed().assume_init() };
    to.sin_family = INTERNET;
    to.sin_port = port.to_be();
    to.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
    // SAFETY: an address of so many bytes can be read.
    let result = unsafe {
        let to = (&raw const to).cast();
        libc::connect(socket.as_raw_fd(), to, length_of::<libc::sockaddr_in>())
    };
    expect("connect", result, 0)?;
    Ok(socket)
}

/// Has the connection reset when it is closed; what a listener accepts is as the listener.
///
/// # Errors
/// What `setsockopt` says.
#[inline]
pub fn close_without_waiting(socket: &impl AsRawFd) -> Result<(), Problem> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the option is valid for reading the size that is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            length_of::<libc::linger>(),
        )
    };
    expect("setsockopt(SO_LINGER)", result, 0)
}

#[expect(clippy::cast_possible_truncation, reason = "a few bytes")]
const fn length_of<Kind>() -> libc::socklen_t {
    size_of::<Kind>() as libc::socklen_t
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err passes it")]
fn refused(error: io::Error) -> Problem {
    problem_of(PLACE, &error)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn what_one_end_writes_the_other_reads() {
        let (mut one, mut other) = tcp_pair().expect("connected");
        one.write_all(b"x").expect("written");
        let mut byte = [0];
        other.read_exact(&mut byte).expect("read");
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn a_closed_connection_is_reset_and_waits_for_nothing() {
        for first in [true, false] {
            let (one, other) = tcp_pair().expect("connected");
            let (closed, mut left) = if first { (one, other) } else { (other, one) };
            drop(closed);
            let error = left.read(&mut [0]).expect_err("the other end is gone");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
    }
}
