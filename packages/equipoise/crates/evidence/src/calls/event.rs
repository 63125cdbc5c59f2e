//! Events that either method reports, in order for each thread.

use serde::Serializer;

/// One event of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time by the monotonic clock.
    pub ns: u64,
    pub process: u32,
    pub thread: u32,
    pub action: Action,
}

impl Event {
    pub fn caller(&self) -> Caller {
        Caller {
            process: self.process,
            thread: self.thread,
        }
    }
}

/// The thread that makes a call, and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub process: u32,
    pub thread: u32,
}

impl Caller {
    /// The first thread of a process.
    #[cfg(test)]
    pub fn main(process: u32) -> Self {
        Self {
            process,
            thread: process,
        }
    }

    /// Returns the folders of the process in `/proc`, in the order in which to try them.
    ///
    /// `/proc` shows the files and the memory of a process neither under the process number, if the
    /// first thread has ended, nor under the number of another ended thread.
    pub fn folders(self) -> [String; 2] {
        let process = format!("/proc/{}", self.process);
        [format!("{process}/task/{}", self.thread), process]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It entered the system call with a number.
    Entered { number: u64, arguments: [u64; 6] },
    /// Its call returned a result: a negative error number if it failed.
    Left { result: i64 },
    /// It made a thread, in a new process or in its own.
    Forked { process: u32, thread: u32 },
    /// It has become another program.
    Executed,
    /// It has ended.
    Ended,
}

/// Writes nanoseconds as seconds.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde passes it")]
pub fn in_seconds<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(seconds(*ns))
}

/// Nanoseconds of an event as seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}
