//! The pipe to the process that drives the launcher: one line in, one line out.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::ptr;

use serde::Serialize;

use equipoise_kernel::clock::SECOND_NS;

/// Longest line: longer than any argument vector with its environment that Linux executes.
const MAX_LINE: usize = 64 << 20;

/// Room that is kept between requests. The rest goes back, because the peak memory of a trial is
/// never below that of the launcher.
const KEPT_ROOM: usize = 64 << 10;

const CHUNK: usize = 16 << 10;

/// A message from the pipe.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// One line.
    Line(&'a [u8]),
    /// The other side is gone, or a signal stopped the launcher.
    End,
}

/// The pipe, as standard input and standard output.
pub struct Conversation {
    input: ManuallyDrop<File>,
    output: ManuallyDrop<File>,
    room: Vec<u8>,
}

impl Conversation {
    /// Uses standard input and standard output.
    pub fn new() -> Self {
        // SAFETY: both are open from start to end (Rust's runtime sees to that), and are
        // never closed by the launcher.
        let (input, output) = unsafe { (File::from_raw_fd(0), File::from_raw_fd(1)) };
        Self {
            input: ManuallyDrop::new(input),
            output: ManuallyDrop::new(output),
            room: Vec::new(),
        }
    }

    /// Returns the descriptor that hangs up when the other side is gone.
    pub fn input(&self) -> RawFd {
        self.input.as_raw_fd()
    }

    /// Waits for one line.
    pub fn receive(&mut self, stop: BorrowedFd<'_>) -> io::Result<Message<'_>> {
        self.room.clear();
        self.room.shrink_to(KEPT_ROOM);
        loop {
            let mut watched = [
                watch(self.input(), libc::POLLIN),
                watch(stop.as_raw_fd(), libc::POLLIN),
            ];
            poll(&mut watched, None)?;
            if watched[1].revents != 0 {
                return Ok(Message::End);
            }
            let start = self.room.len();
            self.room.resize(start + CHUNK, 0);
            let count = match self.input.read(&mut self.room[start..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    self.room.truncate(start);
                    continue;
                }
                other => other?,
            };
            self.room.truncate(start + count);
            if count == 0 {
                return Ok(Message::End);
            }
            // One request at a time: the end of the line is the end of the request.
            if self.room.last() == Some(&b'\n') {
                return Ok(Message::Line(&self.room[..self.room.len() - 1]));
            }
            if self.room.len() > MAX_LINE {
                let kind = ErrorKind::InvalidData;
                return Err(io::Error::new(kind, "a request without an end"));
            }
        }
    }

    /// Sends one line; an error if the other side is gone.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.output.write_all(&line)
    }
}

/// Returns one entry for [`poll`].
pub fn watch(descriptor: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd: descriptor,
        events,
        revents: 0,
    }
}

/// Waits until something happens on a descriptor, or for `timeout_ns`; `None` has no limit. An
/// interruption by a signal is not an error.
pub fn poll(watched: &mut [libc::pollfd], timeout_ns: Option<u64>) -> io::Result<()> {
    let timeout = timeout_ns.map(timespec);
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let count = libc::nfds_t::try_from(watched.len()).map_err(io::Error::other)?;
    // SAFETY: the array has `count` entries, the time outlives the call, and no signal mask
    // is given.
    let status = unsafe { libc::ppoll(watched.as_mut_ptr(), count, timeout, ptr::null()) };
    if status >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == ErrorKind::Interrupted => {
            for entry in watched {
                entry.revents = 0;
            }
            Ok(())
        }
        error => Err(error),
    }
}

/// Returns a span of time for `ppoll`.
fn timespec(duration_ns: u64) -> libc::timespec {
    // Longer waits are cut to i32::MAX seconds (68 years).
    let seconds = i32::try_from(duration_ns / SECOND_NS).unwrap_or(i32::MAX);
    // A remainder below 10^9 fits.
    let nanoseconds = i32::try_from(duration_ns % SECOND_NS).unwrap_or(i32::MAX);
    libc::timespec {
        tv_sec: seconds.into(),
        tv_nsec: nanoseconds.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_split_into_seconds_and_nanoseconds() {
        let span = timespec(3 * SECOND_NS + 5);
        assert_eq!((span.tv_sec, span.tv_nsec), (3, 5));
    }
}
