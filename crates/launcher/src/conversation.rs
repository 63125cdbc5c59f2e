//! The pipe to whoever drives the launcher: one line in, one line out.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};

use serde::Serialize;

use crate::clock;

/// Longer than any argument vector with its environment that Linux executes.
const LONGEST_LINE: usize = 64 << 20;

/// Room that is kept between requests; the rest goes back, because the launcher's memory is
/// the least that a trial's can be.
const KEPT_ROOM: usize = 64 << 10;

const CHUNK: usize = 16 << 10;

/// What came over the pipe.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// One line.
    Line(&'a [u8]),
    /// The other side is gone, or a signal told us to stop.
    End,
}

/// The pipe, as standard input and standard output.
pub struct Conversation {
    input: ManuallyDrop<File>,
    output: ManuallyDrop<File>,
    room: Vec<u8>,
}

impl Conversation {
    /// Over standard input and standard output.
    #[must_use]
    pub fn new() -> Self {
        // SAFETY: both are open from start to end (Rust's runtime sees to that), and are
        // never closed by us.
        let (input, output) = unsafe { (File::from_raw_fd(0), File::from_raw_fd(1)) };
        Self {
            input: ManuallyDrop::new(input),
            output: ManuallyDrop::new(output),
            room: Vec::new(),
        }
    }

    /// The descriptor that hangs up when the other side is gone.
    #[must_use]
    pub fn input(&self) -> RawFd {
        self.input.as_raw_fd()
    }

    /// Waits for one line.
    ///
    /// # Errors
    /// What `poll` or `read` says, or that a line has no end.
    pub fn hear(&mut self, stop: BorrowedFd<'_>) -> io::Result<Heard<'_>> {
        self.room.clear();
        self.room.shrink_to(KEPT_ROOM);
        loop {
            let mut watched = [
                watch(self.input(), libc::POLLIN),
                watch(stop.as_raw_fd(), libc::POLLIN),
            ];
            poll(&mut watched, None)?;
            if watched[1].revents != 0 {
                return Ok(Heard::End);
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
                return Ok(Heard::End);
            }
            // One request at a time: a line's end is the end of what was sent.
            if self.room.last() == Some(&b'\n') {
                return Ok(Heard::Line(&self.room[..self.room.len() - 1]));
            }
            if self.room.len() > LONGEST_LINE {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "a request without an end",
                ));
            }
        }
    }

    /// Says one line.
    ///
    /// # Errors
    /// What `write` says; the other side may be gone.
    pub fn say(&mut self, words: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(words)?;
        line.push(b'\n');
        self.output.write_all(&line)
    }
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

/// One entry for [`poll`].
#[must_use]
pub fn watch(descriptor: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd: descriptor,
        events,
        revents: 0,
    }
}

/// Waits until something happens on one of them, or for so long; `None` for ever.
///
/// # Errors
/// What `ppoll` says; an interruption is none.
pub fn poll(watched: &mut [libc::pollfd], most_ns: Option<u64>) -> io::Result<()> {
    let most = most_ns.map(clock::timespec);
    let most = most.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = libc::nfds_t::try_from(watched.len()).map_err(io::Error::other)?;
    // SAFETY: the array has `count` entries, the time outlives the call, and no signal mask
    // is given.
    let status = unsafe { libc::ppoll(watched.as_mut_ptr(), count, most, std::ptr::null()) };
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
