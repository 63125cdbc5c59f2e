//! Writes the observations of system calls as a JSON document.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use equipoise_kernel::clock::monotonic_ns;

use crate::calls::account::{Calls, Observation};
use crate::calls::descriptors::{UNKNOWN_NAME, Use};
use crate::calls::event::seconds;
use crate::calls::kinds;
use crate::calls::locks::Waits;
use crate::command::End;

/// Largest number of files, and of locks, in the document: those with the most time.
const MAX_ENTRIES: usize = 256;

/// The JSON document. Times are in seconds.
#[derive(Debug, Serialize)]
pub struct Report {
    source: &'static str,
    version: u32,
    method: &'static str,
    wall_s: f64,
    end: End,
    processes: usize,
    threads: usize,
    programs: u64,
    waiting_s: f64,
    calls: Vec<CallsReport>,
    files: Vec<FileReport>,
    locks: Vec<LockReport>,
    unseen: Vec<String>,
    lost_records: u64,
}

#[derive(Debug, Serialize)]
struct CallsReport {
    name: String,
    count: u64,
    seconds: f64,
    longest_s: f64,
    waits: bool,
    errors: BTreeMap<String, u64>,
    unfinished: u64,
    /// `None` if no argument of the call is a number of bytes.
    bytes_requested: Option<u64>,
    bytes_transferred: Option<u64>,
    sizes: Vec<Frequency>,
    modes: Vec<Frequency>,
}

#[derive(Debug, Serialize)]
struct Frequency {
    value: u64,
    count: u64,
}

#[derive(Debug, Serialize)]
struct FileReport {
    name: String,
    #[serde(flatten)]
    usage: Use,
}

#[derive(Debug, Serialize)]
struct LockReport {
    place: String,
    #[serde(flatten)]
    waits: Waits,
}

impl Report {
    pub(super) fn new(method: &'static str, started_ns: u64, observation: Observation) -> Self {
        let account = &observation.account;
        let calls = account.calls.iter();
        let calls = calls.map(|(number, calls)| CallsReport::new(*number, calls));
        let mut calls: Vec<_> = calls.collect();
        calls.sort_by(|first, second| second.seconds.total_cmp(&first.seconds));
        let uses = account.descriptors.by_name();
        let use_of_unknown_files = uses.get(UNKNOWN_NAME).copied();
        let files = uses
            .into_iter()
            .map(|(name, usage)| FileReport { name, usage });
        let mut files: Vec<_> = files.collect();
        files.sort_by_key(|file| Reverse(file.usage.ns));
        let locks = account.locks.by_name().into_iter();
        let locks = locks.map(|(place, waits)| LockReport { place, waits });
        let mut locks: Vec<_> = locks.collect();
        locks.sort_by_key(|lock| Reverse(lock.waits.ns));
        let mut unseen = observation.remarks;
        if let Some(usage) = use_of_unknown_files {
            unseen.push(format!(
                "{} reads and writes have no file name: the files were closed before a look-up",
                usage.reads + usage.writes
            ));
        }
        for (noun, count) in [("files", files.len()), ("locks", locks.len())] {
            if count > MAX_ENTRIES {
                unseen.push(format!("only {MAX_ENTRIES} of {count} {noun} are reported"));
            }
        }
        files.truncate(MAX_ENTRIES);
        locks.truncate(MAX_ENTRIES);
        Self {
            source: "system_calls",
            version: 1,
            method,
            wall_s: seconds(monotonic_ns() - started_ns),
            end: observation.end,
            processes: account.processes.len(),
            threads: account.threads.len(),
            programs: account.programs,
            waiting_s: seconds(account.waiting_ns),
            calls,
            files,
            locks,
            unseen,
            lost_records: observation.lost_records,
        }
    }
}

impl CallsReport {
    fn new(number: u64, calls: &Calls) -> Self {
        let call = kinds::known(number);
        let has_size = call.and_then(kinds::size_argument).is_some();
        let descriptor_use = call.and_then(kinds::on_descriptor);
        let returns_size = descriptor_use.is_some_and(kinds::OnDescriptor::returns_bytes);
        let errors = calls.errors.iter();
        Self {
            name: kinds::name(number),
            count: calls.count,
            seconds: seconds(calls.ns),
            longest_s: seconds(calls.longest_ns),
            waits: call.is_some_and(kinds::waits),
            errors: errors
                .map(|(errno, count)| (errno_name(*errno), *count))
                .collect(),
            unfinished: calls.unfinished,
            bytes_requested: has_size.then_some(calls.bytes_requested),
            bytes_transferred: returns_size.then_some(calls.bytes_transferred),
            sizes: frequencies(calls.sizes.top()),
            modes: frequencies(calls.modes.top()),
        }
    }
}

fn frequencies(counts: Vec<(u64, u64)>) -> Vec<Frequency> {
    let frequency = |(value, count)| Frequency { value, count };
    counts.into_iter().map(frequency).collect()
}

fn errno_name(errno: i32) -> String {
    syscalls::Errno::new(errno)
        .name()
        .map_or_else(|| errno.to_string(), str::to_owned)
}
