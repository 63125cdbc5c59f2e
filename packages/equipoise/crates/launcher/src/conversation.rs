//! The pipe to the client. The client sends requests, and gets a report for each.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::ptr;

use serde::Serialize;

use equipoise_kernel::clock::SECOND_NS;

/// Maximum length of a line, longer than any arguments and environment that Linux accepts.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Size of the buffer between requests. A larger buffer is freed, because the kernel never reports
/// a lower peak memory for a trial than for the launcher.
const IDLE_BUFFER_BYTES: usize = 64 << 10;

/// Maximum number of bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// A message from the pipe.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// One line, without its newline.
    Line(&'a [u8]),
    /// The client has closed the pipe, or a signal stopped the launcher.
    End,
}

/// The pipe, as standard input and standard output.
pub struct Conversation {
    input: ManuallyDrop<File>,
    output: ManuallyDrop<File>,
    buffer: Vec<u8>,
}

impl Conversation {
    pub fn new() -> Self {
        // SAFETY: Rust's runtime keeps both open, and the launcher never closes them.
        let (input, output) = unsafe { (File::from_raw_fd(0), File::from_raw_fd(1)) };
        Self {
            input: ManuallyDrop::new(input),
            output: ManuallyDrop::new(output),
            buffer: Vec::new(),
        }
    }

    /// Returns the descriptor on which `poll` reports a hang-up when the client closes the pipe.
    pub fn input_descriptor(&self) -> RawFd {
        self.input.as_raw_fd()
    }

    /// Waits for one line, or until the descriptor `stop` is readable.
    pub fn receive(&mut self, stop: BorrowedFd<'_>) -> io::Result<Message<'_>> {
        self.buffer.clear();
        self.buffer.shrink_to(IDLE_BUFFER_BYTES);
        loop {
            let mut watched = [
                watch(self.input_descriptor(), libc::POLLIN),
                watch(stop.as_raw_fd(), libc::POLLIN),
            ];
            poll(&mut watched, None)?;
            if watched[1].revents != 0 {
                return Ok(Message::End);
            }
            let start = self.buffer.len();
            self.buffer.resize(start + READ_BYTES, 0);
            let count = match self.input.read(&mut self.buffer[start..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    self.buffer.truncate(start);
                    continue;
                }
                result => result?,
            };
            self.buffer.truncate(start + count);
            if count == 0 {
                return Ok(Message::End);
            }
            // The client sends one request at a time, so no byte follows the newline.
            if self.buffer.last() == Some(&b'\n') {
                return Ok(Message::Line(&self.buffer[..self.buffer.len() - 1]));
            }
            if self.buffer.len() > MAX_LINE_BYTES {
                let kind = ErrorKind::InvalidData;
                return Err(io::Error::new(kind, "a request is longer than 64 MiB"));
            }
        }
    }

    /// Sends one line; returns an error if the client has closed the pipe.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.output.write_all(&line)
    }
}

/// Returns an entry for [`poll`] that waits for `events` on a descriptor.
pub fn watch(descriptor: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd: descriptor,
        events,
        revents: 0,
    }
}

/// Waits for an event on a descriptor, at most `timeout_ns`; `None` waits without a limit. If a
/// signal interrupts the wait, no entry has an event.
pub fn poll(watched: &mut [libc::pollfd], timeout_ns: Option<u64>) -> io::Result<()> {
    let timeout = timeout_ns.map(timespec);
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let count = libc::nfds_t::try_from(watched.len()).map_err(io::Error::other)?;
    // SAFETY: the array has `count` entries, the time outlives the call, and the signal mask is
    // null.
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

fn timespec(duration_ns: u64) -> libc::timespec {
    // Longer waits are cut to i32::MAX seconds (68 years).
    let seconds = i32::try_from(duration_ns / SECOND_NS).unwrap_or(i32::MAX);
    // The remainder is below 10⁹, so it fits.
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
    fn a_duration_is_split_into_seconds_and_nanoseconds() {
        let duration = timespec(3 * SECOND_NS + 5);
        assert_eq!((duration.tv_sec, duration.tv_nsec), (3, 5));
    }
}
