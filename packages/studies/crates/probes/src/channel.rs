//! Two-way channels (pipes and sockets) between this process and a helper process.

use std::fs::File;
use std::io::{self, Read, Write, pipe};
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use equipoise_reporting::problem::Problem;

use crate::system::{check_negative, check_result, problem_of, wrong_result};

/// One end of a two-way channel.
pub struct End {
    incoming: File,
    outgoing: File,
}

/// The two ends of a channel: first the end of this process, then the end of the helper.
pub type Ends = (End, End);

impl End {
    /// Makes an end that reads from one descriptor and writes to another.
    pub fn new(incoming: impl Into<OwnedFd>, outgoing: impl Into<OwnedFd>) -> Self {
        Self {
            incoming: incoming.into().into(),
            outgoing: outgoing.into().into(),
        }
    }

    /// Makes an end that reads and writes the same socket.
    pub fn of_socket(socket: impl Into<OwnedFd>) -> Result<Self, Problem> {
        let socket: OwnedFd = socket.into();
        let duplicate = socket.try_clone().map_err(problem_of("dup"))?;
        Ok(Self::new(socket, duplicate))
    }

    pub fn send(&mut self, byte: u8) -> Result<(), Problem> {
        match self.outgoing.write(&[byte]).map_err(problem_of("write"))? {
            1 => Ok(()),
            bytes => Err(wrong_result("write of one byte", bytes, 1)),
        }
    }

    /// Waits for one byte. Fails if the other end is closed or sends a second byte.
    pub fn receive(&mut self) -> Result<u8, Problem> {
        let mut bytes = [0; 2];
        match self.incoming.read(&mut bytes).map_err(problem_of("read"))? {
            1 => Ok(bytes[0]),
            received => Err(wrong_result("read of one byte", received, 1)),
        }
    }

    pub fn send_number(&mut self, number: u64) -> Result<(), Problem> {
        self.send_all(&number.to_ne_bytes())
    }

    pub fn receive_number(&mut self) -> Result<u64, Problem> {
        let mut bytes = [0; size_of::<u64>()];
        self.incoming
            .read_exact(&mut bytes)
            .map_err(problem_of("read"))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    pub fn send_all(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        self.outgoing.write_all(bytes).map_err(problem_of("write"))
    }

    /// Waits for some bytes, and returns their number. Fails if the other end is closed.
    pub fn receive_some(&mut self, buffer: &mut [u8]) -> Result<usize, Problem> {
        match self.incoming.read(buffer).map_err(problem_of("read"))? {
            0 => Err(Problem::failure("the other end is closed")),
            bytes => Ok(bytes),
        }
    }
}

/// Opens two pipes, one for each direction.
pub fn pipes() -> Result<Ends, Problem> {
    let pipe = || pipe().map_err(problem_of("pipe"));
    Ok(two_way(pipe()?, pipe()?))
}

/// Makes a channel of two one-way connections: this process asks, and the helper answers. Each
/// connection has a reading and a writing end.
pub fn two_way<Reader, Writer>(
    (question_reader, question_writer): (Reader, Writer),
    (answer_reader, answer_writer): (Reader, Writer),
) -> Ends
where
    Reader: Into<OwnedFd>,
    Writer: Into<OwnedFd>,
{
    let this_end = End::new(answer_reader, question_writer);
    (this_end, End::new(question_reader, answer_writer))
}

/// Opens a pair of connected `AF_UNIX` stream sockets without a name.
pub fn unix_streams() -> Result<Ends, Problem> {
    let (one, other) = UnixStream::pair().map_err(problem_of("socketpair"))?;
    Ok((End::of_socket(one)?, End::of_socket(other)?))
}

/// Opens two UDP sockets on 127.0.0.1 that are connected to each other.
pub fn udp_sockets() -> Result<Ends, Problem> {
    let connected = || -> io::Result<_> {
        let one = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        one.connect(other.local_addr()?)?;
        other.connect(one.local_addr()?)?;
        Ok((one, other))
    };
    let (one, other) = connected().map_err(problem_of("UDP over 127.0.0.1"))?;
    Ok((End::of_socket(one)?, End::of_socket(other)?))
}

/// Opens a TCP connection over 127.0.0.1 that sends every byte at once.
pub fn tcp_streams() -> Result<Ends, Problem> {
    let (one, other) = tcp_pair()?;
    for stream in [&one, &other] {
        stream
            .set_nodelay(true)
            .map_err(problem_of("setsockopt(TCP_NODELAY)"))?;
    }
    Ok((End::of_socket(one)?, End::of_socket(other)?))
}

#[expect(clippy::cast_possible_truncation, reason = "a small number")]
const AF_INET: libc::sa_family_t = libc::AF_INET as libc::sa_family_t;
const TCP: &str = "TCP over 127.0.0.1";

/// Opens a TCP connection over 127.0.0.1, and returns both ends.
pub fn tcp_pair() -> Result<(TcpStream, TcpStream), Problem> {
    let problem = problem_of(TCP);
    let listener = tcp_listener()?;
    let one = tcp_connect(listener.local_addr().map_err(problem)?.port())?;
    let address = one.local_addr().map_err(problem)?;
    loop {
        let (other, peer) = listener.accept().map_err(problem)?;
        // Another process of this machine may have connected to the listener.
        if peer == address {
            return Ok((one, other));
        }
    }
}

/// Listens on a port that the kernel chooses. Its connections are reset when they are closed.
pub fn tcp_listener() -> Result<TcpListener, Problem> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(problem_of(TCP))?;
    reset_on_close(&listener)?;
    Ok(listener)
}

/// Connects to a port of this machine. The connection is reset when it is closed.
#[inline]
pub fn tcp_connect(port: u16) -> Result<TcpStream, Problem> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: passes numbers only.
    let socket = check_negative("socket", unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    // SAFETY: a new descriptor without another owner.
    let socket = unsafe { TcpStream::from_raw_fd(socket) };
    reset_on_close(&socket)?;
    // SAFETY: all-zero is a valid address.
    let mut address: libc::sockaddr_in = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sin_family = AF_INET;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
    // SAFETY: the address is valid for reading over its length.
    let result = unsafe {
        let address = (&raw const address).cast();
        libc::connect(
            socket.as_raw_fd(),
            address,
            length_of::<libc::sockaddr_in>(),
        )
    };
    check_result("connect", result, 0)?;
    Ok(socket)
}

/// Lets the kernel reset a connection, or all connections of a listener, when they are closed.
#[inline]
pub fn reset_on_close(socket: &impl AsRawFd) -> Result<(), Problem> {
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
    check_result("setsockopt(SO_LINGER)", result, 0)
}

#[expect(clippy::cast_possible_truncation, reason = "a few bytes")]
const fn length_of<Kind>() -> libc::socklen_t {
    size_of::<Kind>() as libc::socklen_t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_reads_the_bytes_that_one_end_writes() {
        let (mut one, mut other) = tcp_pair().expect("connected");
        one.write_all(b"x").expect("written");
        let mut byte = [0];
        other.read_exact(&mut byte).expect("read");
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn a_closed_connection_is_reset() {
        for first in [true, false] {
            let (one, other) = tcp_pair().expect("connected");
            let (closed, mut open) = if first { (one, other) } else { (other, one) };
            drop(closed);
            let error = open.read(&mut [0]).expect_err("the other end is gone");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
    }
}
