//! Adds up the system calls, files, locks and processes of an observed command from its events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::calls::descriptors::Descriptors;
use crate::calls::event::{Action, Caller, Event};
use crate::calls::kinds::{self, OnDescriptor};
use crate::calls::locks::Locks;
use crate::command::End;
use syscalls::Sysno;

/// The observations of one run.
pub struct Observation {
    pub account: Account,
    pub end: End,
    /// Sentences about what could not be observed.
    pub remarks: Vec<String>,
    /// Number of records that the kernel dropped. The counts may be too low by this number.
    pub lost_records: u64,
}

/// Sums over all executions of one system call.
#[derive(Debug, Default)]
pub struct Calls {
    pub count: u64,
    /// Time from entry to return, summed over the calls that returned.
    pub ns: u64,
    pub longest_ns: u64,
    /// Number of failed calls by error number.
    pub errors: BTreeMap<i32, u64>,
    pub sizes: FrequentNumbers,
    /// Sum of the size arguments.
    pub bytes_requested: u64,
    /// Arguments that select the operation of the call.
    pub modes: FrequentNumbers,
    /// Sum of the returned sizes, for calls that return a size.
    pub bytes_transferred: u64,
    /// Number of calls without an observed return: the last call of a thread, or a lost record.
    pub unfinished: u64,
}

/// A call that has not returned yet.
#[derive(Debug, Clone, Copy)]
struct PendingCall {
    ns: u64,
    number: u64,
    arguments: [u64; 6],
}

/// Sums over the actions of the command and its descendants.
#[derive(Debug, Default)]
pub struct Account {
    /// The calls of each system call, by its number.
    pub calls: BTreeMap<u64, Calls>,
    pub locks: Locks,
    pub processes: HashSet<u32>,
    pub threads: HashSet<u32>,
    pub programs: u64,
    /// Time that threads spent in calls that wait (`kinds::waits`).
    pub waiting_ns: u64,
    pub descriptors: Descriptors,
    /// The call that each thread has not returned from.
    pending: HashMap<u32, PendingCall>,
}

impl Account {
    pub fn add(&mut self, event: &Event) {
        match event.action {
            Action::Entered { number, arguments } => self.add_entry(event, number, arguments),
            Action::Left { result } => self.add_return(event, result),
            Action::Forked { process, thread } => {
                self.processes.insert(process);
                self.threads.insert(thread);
            }
            Action::Executed => {
                self.programs += 1;
                self.processes.insert(event.process);
                self.threads.insert(event.thread);
                // An exec closes some descriptors, but it is unknown which.
                self.descriptors.close_all(event.process, event.ns);
            }
            Action::Ended => {
                self.mark_unfinished(event.thread);
                if event.thread == event.process {
                    self.descriptors.close_all(event.process, event.ns);
                }
            }
        }
    }

    /// Closes the account after the last event.
    pub fn finish(&mut self) {
        for (_, pending) in std::mem::take(&mut self.pending) {
            self.calls.entry(pending.number).or_default().unfinished += 1;
        }
    }

    fn add_entry(&mut self, event: &Event, number: u64, arguments: [u64; 6]) {
        self.mark_unfinished(event.thread);
        self.processes.insert(event.process);
        self.threads.insert(event.thread);
        let calls = self.calls.entry(number).or_default();
        calls.count += 1;
        if let Some(call) = kinds::known(number) {
            if let Some(index) = kinds::size_argument(call) {
                calls.sizes.add(arguments[index]);
                calls.bytes_requested = calls.bytes_requested.saturating_add(arguments[index]);
            }
            if let Some(index) = kinds::mode_argument(call) {
                calls.modes.add(arguments[index]);
            }
            if call == Sysno::futex && Locks::is_wait(arguments[1]) {
                self.locks.wait_began(event.caller(), arguments[0]);
            }
            match kinds::on_descriptor(call) {
                None => {}
                Some(kind @ (OnDescriptor::Closes | OnDescriptor::Replaces)) => {
                    let closed = arguments[usize::from(kind == OnDescriptor::Replaces)];
                    self.descriptors.close(event.process, closed, event.ns);
                }
                // `use_of` looks the name of the file up, so call it while the process exists.
                Some(kind) => {
                    self.descriptors.use_of(event.caller(), arguments[0]);
                    if kind == OnDescriptor::Copies {
                        self.descriptors.use_of(event.caller(), arguments[1]);
                    }
                }
            }
        }
        let ns = event.ns;
        self.pending.insert(
            event.thread,
            PendingCall {
                ns,
                number,
                arguments,
            },
        );
    }

    fn add_return(&mut self, event: &Event, result: i64) {
        let Some(pending) = self.pending.remove(&event.thread) else {
            return; // the call began before the observation
        };
        let ns = event.ns.saturating_sub(pending.ns);
        let calls = self.calls.entry(pending.number).or_default();
        calls.ns += ns;
        calls.longest_ns = calls.longest_ns.max(ns);
        if let Some(errno) = errno_of(result) {
            *calls.errors.entry(errno).or_default() += 1;
        }
        let Some(call) = kinds::known(pending.number) else {
            return;
        };
        let bytes = u64::try_from(result).unwrap_or(0);
        if kinds::waits(call) {
            self.waiting_ns += ns;
        }
        if call == Sysno::futex && Locks::is_wait(pending.arguments[1]) {
            let address = pending.arguments[0];
            self.locks.wait_ended(event.process, address, ns);
        }
        if let Some(kind) = kinds::on_descriptor(call) {
            if kind.returns_bytes() {
                calls.bytes_transferred += bytes;
            }
            self.add_descriptor_use(event.caller(), kind, pending.arguments, bytes, ns);
        }
    }

    fn add_descriptor_use(
        &mut self,
        caller: Caller,
        kind: OnDescriptor,
        arguments: [u64; 6],
        bytes: u64,
        ns: u64,
    ) {
        if kind == OnDescriptor::Copies {
            let source = self.descriptors.use_of(caller, arguments[1]);
            source.reads += 1;
            source.bytes_read += bytes;
        }
        if matches!(kind, OnDescriptor::Closes | OnDescriptor::Replaces) {
            return;
        }
        let file = self.descriptors.use_of(caller, arguments[0]);
        file.ns += ns;
        match kind {
            OnDescriptor::Reads => {
                file.reads += 1;
                file.bytes_read += bytes;
            }
            OnDescriptor::Syncs => file.syncs += 1,
            _ => {
                file.writes += 1;
                file.bytes_written += bytes;
            }
        }
    }

    fn mark_unfinished(&mut self, thread: u32) {
        if let Some(pending) = self.pending.remove(&thread) {
            self.calls.entry(pending.number).or_default().unfinished += 1;
        }
    }
}

/// Returns the error number of a result. The kernel returns errors as the numbers from -4095 to -1.
fn errno_of(result: i64) -> Option<i32> {
    let errno = i32::try_from(-result).ok();
    errno.filter(|errno| (1..=4095).contains(errno))
}

/// Largest number of different numbers that are counted at the same time.
const MAX_COUNTED_NUMBERS: usize = 64;
/// Largest number of different numbers that are reported.
const MAX_REPORTED_NUMBERS: usize = 8;

/// Counts how often numbers occur, in little memory (Misra and Gries 1982). With more than
/// `MAX_COUNTED_NUMBERS` different numbers, rare ones are dropped, and counts are lower bounds.
#[derive(Debug, Default)]
pub struct FrequentNumbers {
    counts: HashMap<u64, u64>,
}

impl FrequentNumbers {
    pub fn add(&mut self, number: u64) {
        if let Some(count) = self.counts.get_mut(&number) {
            *count += 1;
        } else if self.counts.len() < MAX_COUNTED_NUMBERS {
            self.counts.insert(number, 1);
        } else {
            self.counts.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }

    /// Returns the most frequent numbers and lower bounds of their counts.
    pub fn top(&self) -> Vec<(u64, u64)> {
        let counts = self.counts.iter();
        let mut all: Vec<_> = counts.map(|(number, count)| (*number, *count)).collect();
        all.sort_by_key(|(number, count)| (Reverse(*count), *number));
        all.truncate(MAX_REPORTED_NUMBERS);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ns: u64, action: Action) -> Event {
        Event {
            ns,
            process: 1_000_000_000,
            thread: 1_000_000_000,
            action,
        }
    }

    fn number_of(call: Sysno) -> u64 {
        u64::try_from(call.id()).expect("a number")
    }

    fn call(account: &mut Account, at: u64, call: Sysno, arguments: [u64; 6], result: i64) {
        let number = number_of(call);
        account.add(&event(at, Action::Entered { number, arguments }));
        account.add(&event(at + 100, Action::Left { result }));
    }

    #[test]
    fn the_count_time_and_sizes_of_a_call_are_added_up() {
        let mut account = Account::default();
        for at in [0, 1000, 2000] {
            let arguments = [0, 40_960, 0, 0, 0, 0];
            call(&mut account, at, Sysno::mmap, arguments, 0x7000_0000);
        }
        let calls = &account.calls[&number_of(Sysno::mmap)];
        assert_eq!((calls.count, calls.ns, calls.longest_ns), (3, 300, 100));
        assert_eq!(calls.sizes.top(), [(40_960, 3)]);
        assert!(calls.errors.is_empty());
    }

    #[test]
    fn errors_are_counted_by_number_and_add_no_bytes() {
        let mut account = Account::default();
        let arguments = [3, 0, 512, 0, 0, 0];
        let error = -i64::from(libc::EAGAIN);
        call(&mut account, 0, Sysno::read, arguments, error);
        call(&mut account, 500, Sysno::read, arguments, 17);
        let calls = &account.calls[&number_of(Sysno::read)];
        assert_eq!(calls.errors, BTreeMap::from([(libc::EAGAIN, 1)]));
        assert_eq!((calls.bytes_requested, calls.bytes_transferred), (1024, 17));
    }

    #[test]
    fn a_call_that_never_returns_is_unfinished() {
        let mut account = Account::default();
        let number = number_of(Sysno::exit_group);
        let arguments = [0; 6];
        account.add(&event(0, Action::Entered { number, arguments }));
        account.add(&event(5, Action::Ended));
        assert_eq!(account.calls[&number].unfinished, 1);
        assert_eq!(account.calls[&number].count, 1);
    }

    #[test]
    fn few_different_numbers_are_counted_exactly() {
        let mut frequent = FrequentNumbers::default();
        for number in [5, 7, 5, 9, 5, 7] {
            frequent.add(number);
        }
        assert_eq!(frequent.top(), [(5, 3), (7, 2), (9, 1)]);
    }

    #[test]
    fn a_frequent_number_is_found_among_many_rare_ones() {
        let mut frequent = FrequentNumbers::default();
        for rare in 0..10_000 {
            frequent.add(1_000_000 + rare);
            frequent.add(42);
        }
        let (number, count) = frequent.top()[0];
        assert_eq!(number, 42);
        assert!((9_500..=10_000).contains(&count), "{count}");
    }
}
