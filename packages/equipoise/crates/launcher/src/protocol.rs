//! The JSON lines of the pipe: one requests a trial, one reports it.
//!
//! Arguments, environment and paths are bytes, not text. They travel as JSON strings in
//! which each character, U+0000 to U+00FF, represents the byte of that value, so that every
//! byte string round-trips and the common ones stay readable.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

/// A byte string without NUL, as the kernel wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(CString);

impl Bytes {
    /// Returns the bytes for the kernel.
    pub fn as_c_str(&self) -> &CStr {
        &self.0
    }

    /// Returns the text for a report.
    pub fn to_text(&self) -> String {
        text_of(self.0.as_bytes())
    }
}

/// Returns the text in which each character represents one byte.
pub fn text_of(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string of characters up to U+00FF, one for each byte, without NUL")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        let bytes = text
            .chars()
            .map(u8::try_from)
            .collect::<Result<Vec<u8>, _>>()
            .map_err(|_| E::custom("a character above U+00FF stands for no byte"))?;
        CString::new(bytes)
            .map(Bytes)
            .map_err(|_| E::custom("a NUL byte cannot be passed to a program"))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(BytesVisitor)
    }
}

/// Destination of the standard output of a trial; never a pipe that could block it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    /// To `/dev/null`.
    Discard,
    /// To the descriptor that the launcher was given with `--inherit-stdout`.
    Inherit,
    /// Counted and discarded.
    Count,
    /// Into this file, emptied first.
    File {
        /// The file.
        path: Bytes,
    },
}

/// One trial to run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// File to execute, if it is not the first argument.
    pub program: Option<Bytes>,
    /// The argument vector, at least one.
    pub argv: Vec<Bytes>,
    /// The complete environment, each entry `KEY=VALUE`.
    pub environment: Vec<Bytes>,
    /// Working folder.
    pub working_folder: Bytes,
    /// The file for its standard input; `/dev/null` without one.
    pub input: Option<Bytes>,
    /// Destination of its standard output.
    pub output: Output,
    /// Seconds after which every descendant is killed.
    pub timeout_s: f64,
    /// Bytes of the end of its standard error that are reported.
    pub error_cap_bytes: u32,
    /// CPUs that it may use, if not all.
    pub cpus: Option<Vec<u32>>,
    /// Whether its addresses are random; absent for the default.
    pub random_addresses: Option<bool>,
    /// Whether it may have transparent huge pages; absent for the default.
    pub huge_pages: Option<bool>,
    /// User and group to run as; by default those of the launcher.
    #[serde(default)]
    pub user: Option<User>,
}

/// A user and the only group of it that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The number of the user.
    pub uid: u32,
    /// The number of the group.
    pub gid: u32,
}

/// How the descendants of a trial are contained.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// In a separate cgroup and process group.
    Cgroup,
    /// In a separate process group.
    #[default]
    ProcessGroup,
}

/// The report of one trial. A value that could not be read is null; `unknown` has the reason.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Report {
    /// The process.
    pub pid: Option<i32>,
    /// Nanoseconds from just before the start to just after the end was seen.
    pub wall_ns: Option<u64>,
    /// Processor time in user mode, of the process and the children it waited for.
    pub user_s: Option<f64>,
    /// Processor time in the kernel, likewise.
    pub sys_s: Option<f64>,
    /// Peak resident memory of the largest of these processes.
    pub max_rss_bytes: Option<u64>,
    /// The launcher's own peak after the trial; `max_rss_bytes` is never below the launcher's peak
    /// at the start (except for the kernel's rounding).
    pub floor_rss_bytes: Option<u64>,
    /// Faults served without I/O.
    pub minor_faults: Option<u64>,
    /// Faults served with I/O.
    pub major_faults: Option<u64>,
    /// Number of times that it waited.
    pub voluntary_switches: Option<u64>,
    /// Number of times that it was preempted.
    pub involuntary_switches: Option<u64>,
    /// Reads from storage, in units of 512 bytes.
    pub block_reads: Option<u64>,
    /// Writes to storage, in units of 512 bytes.
    pub block_writes: Option<u64>,
    /// Exit status, if it exited.
    pub exit: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Whether the timeout killed it.
    pub timed_out: bool,
    /// The signal that had stopped it when it was killed, if one had.
    pub stopped_by: Option<i32>,
    /// Why it could not be started (text of bytes).
    pub could_not_start: Option<String>,
    /// Error number of the failed start.
    pub start_errno: Option<i32>,
    /// The end of its standard error (text of bytes).
    pub error_tail: String,
    /// Bytes written to standard error.
    pub error_bytes: Option<u64>,
    /// Bytes written to standard output, if they were counted.
    pub output_bytes: Option<u64>,
    /// Descendants that were still there after its end and had to be killed.
    pub left_behind: u32,
    /// How the descendants were contained.
    pub containment: Containment,
    /// The CPU on which it ran last.
    pub cpu: Option<u32>,
    /// Seconds for which its main thread could have run but waited for a CPU.
    pub run_delay_s: Option<f64>,
    /// Whether the kernel killed it or a descendant for want of memory.
    pub out_of_memory: Option<bool>,
    /// Counters of `--counters`, of the process and all of its descendants until its end.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<&'static str, Option<f64>>,
    /// Reason for each field that is null or incomplete, and for each feature that did not work.
    pub unknown: BTreeMap<&'static str, String>,
}

/// The fields about the resources of the trial.
pub const USAGE_FIELDS: [&str; 11] = [
    "user_s",
    "sys_s",
    "max_rss_bytes",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
    "block_reads",
    "block_writes",
    "cpu",
    "run_delay_s",
];

impl Report {
    /// Enters why a field is unknown.
    pub fn lacks(&mut self, field: &'static str, reason: impl Into<String>) {
        self.unknown.insert(field, reason.into());
    }

    /// Returns the value of a field; enters the reason if it could not be read.
    pub fn value<Value>(
        &mut self,
        field: &'static str,
        result: Result<Value, impl fmt::Display>,
    ) -> Option<Value> {
        result
            .map_err(|reason| self.lacks(field, reason.to_string()))
            .ok()
    }

    /// Enters why everything that the trial consumed is unknown.
    pub fn usage_unknown(&mut self, reason: &str) {
        for field in USAGE_FIELDS {
            self.lacks(field, reason);
        }
    }
}

/// Answer to a line that is not a request.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// The error in the line.
    pub refused: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_is_one_byte() {
        let bytes: Bytes = serde_json::from_str("\"a\u{ff}\u{80}\"").expect("valid");
        assert_eq!(bytes.as_c_str().to_bytes(), b"a\xff\x80");
        assert_eq!(bytes.to_text(), "a\u{ff}\u{80}");
    }

    #[test]
    fn what_is_no_byte_string_is_refused() {
        assert!(serde_json::from_str::<Bytes>("\"\u{100}\"").is_err());
        assert!(serde_json::from_str::<Bytes>("\"a\\u0000b\"").is_err());
    }

    #[test]
    fn a_request_names_every_field() {
        let line = r#"{"argv":["/bin/true"],"environment":["A=1"],"working_folder":"/",
            "input":null,"output":{"kind":"file","path":"/x"},"timeout_s":1.5,
            "error_cap_bytes":4096}"#;
        let request: Request = serde_json::from_str(line).expect("valid");
        assert_eq!(request.program, None);
        assert!(matches!(request.output, Output::File { path } if path.to_text() == "/x"));
    }
}
