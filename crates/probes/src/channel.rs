//! Whatever carries bytes between this process and a helper, in both directions.

use std::fs::File;
use std::io::{self, Read, Write, pipe};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use equipoise_reporting::problem::Problem;

use crate::sockets::tcp_pair;
use crate::system::{problem_of, wrong};

/// One end of a channel.
pub struct End {
    incoming: File,
    outgoing: File,
}

/// The two ends of a channel: this process's and the helper's.
pub type Ends = (End, End);

impl End {
    /// An end that reads here and writes there.
    pub fn new(incoming: impl Into<OwnedFd>, outgoing: impl Into<OwnedFd>) -> Self {
        Self {
            incoming: incoming.into().into(),
            outgoing: outgoing.into().into(),
        }
    }

    /// An end that reads and writes the same socket.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn of_socket(socket: impl Into<OwnedFd>) -> Result<Self, Problem> {
        let socket: OwnedFd = socket.into();
        let again = socket
            .try_clone()
            .map_err(|error| problem_of("dup", &error))?;
        Ok(Self::new(socket, again))
    }

    /// Sends one byte.
    ///
    /// # Errors
    /// If not exactly one byte is taken.
    pub fn send(&mut self, byte: u8) -> Result<(), Problem> {
        match self.outgoing.write(&[byte]) {
            Ok(1) => Ok(()),
            Ok(bytes) => Err(wrong("write of one byte", bytes, 1)),
            Err(error) => Err(problem_of("write", &error)),
        }
    }

    /// Waits for one byte.
    ///
    /// # Errors
    /// If none comes because the other end is closed, or more than one.
    pub fn receive(&mut self) -> Result<u8, Problem> {
        // Room for a second byte, so that one too many is noticed.
        let mut bytes = [0; 2];
        match self.incoming.read(&mut bytes) {
            Ok(1) => Ok(bytes[0]),
            Ok(received) => Err(wrong("read of one byte", received, 1)),
            Err(error) => Err(problem_of("read", &error)),
        }
    }

    /// Sends a number.
    ///
    /// # Errors
    /// What the system says.
    pub fn send_number(&mut self, number: u64) -> Result<(), Problem> {
        self.outgoing
            .write_all(&number.to_ne_bytes())
            .map_err(|error| problem_of("write", &error))
    }

    /// Waits for a number.
    ///
    /// # Errors
    /// If the other end is closed before all of it came.
    pub fn receive_number(&mut self) -> Result<u64, Problem> {
        let mut bytes = [0; size_of::<u64>()];
        self.incoming
            .read_exact(&mut bytes)
            .map_err(|error| problem_of("read", &error))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Sends all of these bytes.
    ///
    /// # Errors
    /// What the system says.
    pub fn send_all(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        self.outgoing
            .write_all(bytes)
            .map_err(|error| problem_of("write", &error))
    }

    /// Waits for some bytes and says how many came; never none.
    ///
    /// # Errors
    /// If the other end is closed.
    pub fn receive_some(&mut self, room: &mut [u8]) -> Result<usize, Problem> {
        match self.incoming.read(room) {
            Ok(0) => Err(Problem::failure("the other end is closed")),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(problem_of("read", &error)),
        }
    }
}

/// Two pipes, one for each direction.
///
/// # Errors
/// What the system says.
pub fn pipes() -> Result<Ends, Problem> {
    let pipe = || pipe().map_err(|error| problem_of("pipe", &error));
    let (question_in, question_out) = pipe()?;
    let (answer_in, answer_out) = pipe()?;
    Ok((
        End::new(answer_in, question_out),
        End::new(question_in, answer_out),
    ))
}

/// A pair of connected `AF_UNIX` stream sockets without a name.
///
/// # Errors
/// What the system says.
pub fn unix_streams() -> Result<Ends, Problem> {
    let (one, other) = UnixStream::pair().map_err(|error| problem_of("socketpair", &error))?;
    Ok((End::of_socket(one)?, End::of_socket(other)?))
}

/// Two UDP sockets on 127.0.0.1 that hear each other and nobody else.
///
/// # Errors
/// What the system says.
pub fn udp_sockets() -> Result<Ends, Problem> {
    let connected = || -> io::Result<_> {
        let one = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        one.connect(other.local_addr()?)?;
        other.connect(one.local_addr()?)?;
        Ok((one, other))
    };
    let (one, other) = connected().map_err(|error| problem_of("UDP over 127.0.0.1", &error))?;
    Ok((End::of_socket(one)?, End::of_socket(other)?))
}

/// A TCP connection over 127.0.0.1 on which every byte is sent at once.
///
/// # Errors
/// What the system says.
pub fn tcp_streams() -> Result<Ends, Problem> {
    let (one, other) = tcp_pair()?;
    for stream in [&one, &other] {
        stream
            .set_nodelay(true)
            .map_err(|error| problem_of("setsockopt(TCP_NODELAY)", &error))?;
    }
    Ok((End::of_socket(one)?, End::of_socket(other)?))
}
