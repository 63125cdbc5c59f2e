//! The JSON lines of the pipe: a line requests a trial, and a line reports its result.
//!
//! Arguments, environment and paths are bytes, not text. In JSON strings a character from U+0000 to
//! U+00FF stands for one byte, so every byte string can be sent.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

/// A byte string without NUL, which system calls accept as a C string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(CString);

impl Bytes {
    pub fn as_c_str(&self) -> &CStr {
        &self.0
    }

    /// Returns the bytes as text for a report, one character for each byte.
    pub fn to_text(&self) -> String {
        text_of(self.0.as_bytes())
    }
}

/// Returns a text in which each character is one byte.
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
            .map_err(|_| E::custom("a character above U+00FF does not stand for a byte"))?;
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

/// Destination of the standard output of a trial. A pipe could block the trial, so it is not
/// offered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    Discard,
    /// The output goes to the descriptor of the launcher's option `--inherit-stdout`.
    Inherit,
    /// The launcher counts the bytes and discards them.
    Count,
    /// The output goes to a file, which is emptied first.
    File {
        path: Bytes,
    },
}

/// One trial to run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// File to execute; by default the first argument.
    pub program: Option<Bytes>,
    /// The argument vector, with at least one argument.
    pub argv: Vec<Bytes>,
    /// The complete environment, each entry `KEY=VALUE`.
    pub environment: Vec<Bytes>,
    pub working_folder: Bytes,
    /// File for standard input; by default `/dev/null`.
    pub input: Option<Bytes>,
    pub output: Output,
    /// Seconds after which the launcher kills the program and all of its descendants.
    pub timeout_s: f64,
    /// Number of bytes to report from the end of standard error.
    pub error_cap_bytes: u32,
    /// CPUs that the program may use; by default all.
    pub cpus: Option<Vec<u32>>,
    /// Whether the kernel randomises the addresses of the process; absent for the system's default.
    pub random_addresses: Option<bool>,
    /// Whether the process may have transparent huge pages; absent for the system's default.
    pub huge_pages: Option<bool>,
    /// User and group to run as; by default those of the launcher.
    #[serde(default)]
    pub user: Option<User>,
    /// Instant of the monotonic clock at which to start, so that trials of two launchers start
    /// together; by default at once. The launcher then waits on the `cpus` of the trial.
    #[serde(default)]
    pub start_at_ns: Option<u64>,
}

/// A user and a group to run a program as. The program gets no other groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

/// How the launcher finds the descendants of a trial, to end them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// They are in a separate cgroup and process group.
    Cgroup,
    /// They are in a separate process group.
    #[default]
    ProcessGroup,
}

/// The report of one trial. A value that could not be read is null; `unknown` has the reason. In
/// the comments below, "the process" is the process that the launcher started.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Report {
    pub pid: Option<i32>,
    /// Instant of the monotonic clock just before the start.
    pub started_ns: Option<u64>,
    /// Nanoseconds from just before the start until the launcher saw the end.
    pub wall_ns: Option<u64>,
    /// Processor time in user mode, of the process and the children it waited for.
    pub user_s: Option<f64>,
    /// Processor time in the kernel, of the process and the children it waited for.
    pub sys_s: Option<f64>,
    /// Peak resident memory of the largest of these processes.
    pub max_rss_bytes: Option<u64>,
    /// The launcher's own peak memory. The kernel lets the peak of a trial start there. So if
    /// `max_rss_bytes` is close to this value, the process may have used less.
    pub floor_rss_bytes: Option<u64>,
    /// Page faults that needed no I/O.
    pub minor_faults: Option<u64>,
    /// Page faults that needed I/O.
    pub major_faults: Option<u64>,
    /// Number of context switches because the process waited.
    pub voluntary_switches: Option<u64>,
    /// Number of context switches because the process was preempted.
    pub involuntary_switches: Option<u64>,
    /// Reads from storage, in units of 512 bytes.
    pub block_reads: Option<u64>,
    /// Writes to storage, in units of 512 bytes.
    pub block_writes: Option<u64>,
    /// Exit status; null if the process did not start or a signal ended it.
    pub exit: Option<i32>,
    /// Signal that ended the process, if any.
    pub signal: Option<i32>,
    /// Whether the launcher killed the process after the timeout.
    pub timed_out: bool,
    /// Signal that stopped the process before the launcher killed it, if any.
    pub stopped_by: Option<i32>,
    /// Why the program could not be started (one character for each byte).
    pub could_not_start: Option<String>,
    /// System error number (`errno`) of a start that failed.
    pub start_errno: Option<i32>,
    /// The end of standard error (one character for each byte).
    pub error_tail: String,
    pub error_bytes: Option<u64>,
    /// Number of bytes written to standard output, if they were counted.
    pub output_bytes: Option<u64>,
    /// Number of descendants that outlived the process, so that the launcher had to kill them.
    pub left_behind: u32,
    pub containment: Containment,
    pub cpu: Option<u32>,
    /// Seconds for which the main thread could have run but waited for a CPU.
    pub run_delay_s: Option<f64>,
    /// Whether the kernel killed the process or a descendant because memory ran out.
    pub out_of_memory: Option<bool>,
    /// Values of the counters in `--counters`, for the process and all of its descendants.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<&'static str, Option<f64>>,
    /// Reason for each field that is null or incomplete, and for each feature that did not work.
    pub unknown: BTreeMap<&'static str, String>,
}

/// Names of the fields about the resources that a trial used.
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
    pub fn set_unknown(&mut self, field: &'static str, reason: impl Into<String>) {
        self.unknown.insert(field, reason.into());
    }

    /// Returns the value of a field. If it could not be read, records the reason; returns `None`.
    pub fn value_or_reason<Value>(
        &mut self,
        field: &'static str,
        result: Result<Value, impl fmt::Display>,
    ) -> Option<Value> {
        result
            .map_err(|reason| self.set_unknown(field, reason.to_string()))
            .ok()
    }

    pub fn set_usage_unknown(&mut self, reason: &str) {
        for field in USAGE_FIELDS {
            self.set_unknown(field, reason);
        }
    }
}

/// Answer to a line that is not a request.
#[derive(Debug, Serialize)]
pub struct Refusal {
    pub refused: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_of_a_json_string_is_one_byte() {
        let bytes: Bytes = serde_json::from_str("\"a\u{ff}\u{80}\"").expect("valid");
        assert_eq!(bytes.as_c_str().to_bytes(), b"a\xff\x80");
        assert_eq!(bytes.to_text(), "a\u{ff}\u{80}");
    }

    #[test]
    fn strings_with_nul_or_characters_above_ff_are_refused() {
        assert!(serde_json::from_str::<Bytes>("\"\u{100}\"").is_err());
        assert!(serde_json::from_str::<Bytes>("\"a\\u0000b\"").is_err());
    }

    #[test]
    fn a_request_may_leave_out_optional_fields() {
        let line = r#"{"argv":["/bin/true"],"environment":["A=1"],"working_folder":"/",
            "input":null,"output":{"kind":"file","path":"/x"},"timeout_s":1.5,
            "error_cap_bytes":4096}"#;
        let request: Request = serde_json::from_str(line).expect("valid");
        assert_eq!((request.program, request.start_at_ns), (None, None));
        assert!(matches!(request.output, Output::File { path } if path.to_text() == "/x"));
    }
}
