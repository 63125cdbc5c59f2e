//! The events of observed threads, which both methods (tracepoints and `ptrace`) report.

use serde::Serializer;

/// An action of an observed thread, with its time and the ids of the thread and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time on the monotonic clock.
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

/// The ids of the thread that makes a call, and of its process.
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

    /// Returns the folders of the thread and of the process in `/proc`. If the first thread of a
    /// process has ended, the folder of the process lacks its files and its memory.
    pub fn proc_folders(self) -> [String; 2] {
        let process = format!("/proc/{}", self.process);
        [format!("{process}/task/{}", self.thread), process]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The thread entered the system call with this number.
    Entered { number: u64, arguments: [u64; 6] },
    /// The system call returned this result, a negative error number if it failed.
    Left { result: i64 },
    /// The thread made another thread, in its own process or in a new process.
    Forked { process: u32, thread: u32 },
    /// The thread executed another program.
    Executed,
    /// The thread ended.
    Ended,
}

/// Serializes nanoseconds as seconds.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde passes it")]
pub fn in_seconds<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(seconds(*ns))
}

pub fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}
