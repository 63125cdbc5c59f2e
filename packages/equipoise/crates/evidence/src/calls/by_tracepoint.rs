//! Observes system calls by the tracepoints of the kernel, which stop no thread.

use std::collections::{HashSet, VecDeque};

use equipoise_kernel::clock::monotonic_ns;
use equipoise_kernel::perf::{EventOptions, TRACEPOINT, flag, sample};
use equipoise_reporting::problem::Problem;

use crate::calls::account::{Account, Observation};
use crate::calls::event::{Action, Event};
use crate::command::PausedCommand;
use crate::perf::record::{Reader, Record, time_of};
use crate::perf::rings::{MIN_RING_BYTES, Rings};
use crate::perf::tracepoint;

/// Bytes of the rings of all processors together.
const RING_BYTES: usize = 32 << 20;

/// Ids of the tracepoints `sys_enter` and `sys_exit`.
pub struct Tracepoints {
    enter: u64,
    exit: u64,
}

/// Returns the tracepoints; the error is the reason why they cannot be used.
pub fn find_usable() -> Result<Tracepoints, String> {
    let ids = tracepoint::ids(&["raw_syscalls/sys_enter", "raw_syscalls/sys_exit"])?;
    let tracepoints = Tracepoints {
        enter: ids[0],
        exit: ids[1],
    };
    let own_process = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
    Rings::open(&tracepoints.events(), own_process, MIN_RING_BYTES)
        .map_err(|error| format!("perf_event_open: {error}"))?;
    Ok(tracepoints)
}

impl Tracepoints {
    fn events(&self) -> [EventOptions; 2] {
        let tasks = flag::TASKS | flag::COMMANDS | flag::COMMANDS_AT_EXEC;
        [(self.enter, tasks), (self.exit, 0)].map(|(event, flags)| EventOptions {
            class: TRACEPOINT,
            event,
            flags,
            period_or_frequency: 1,
            sample_type: sample::RAW,
            ..EventOptions::default()
        })
    }
}

/// Starts the command and observes it until its end.
pub fn observe(tracepoints: &Tracepoints, paused: PausedCommand) -> Result<Observation, Problem> {
    let mut rings = Rings::open(&tracepoints.events(), paused.pid, RING_BYTES)
        .map_err(Problem::system("perf_event_open"))?;
    let running = paused.start()?;
    let to_problem = Problem::system("the observed command");
    let descriptor = running.descriptor().map_err(to_problem)?;
    let mut merged_records = MergedRecords::new(tracepoints, rings.len());
    let mut has_ended = false;
    while !has_ended {
        let before_ns = monotonic_ns();
        has_ended = rings.wait(&descriptor).map_err(to_problem)?;
        rings.drain(|ring, record| merged_records.add(ring, record));
        merged_records.account_before(before_ns);
    }
    let end = running.wait().map_err(to_problem)?;
    rings.drain(|ring, record| merged_records.add(ring, record));
    merged_records.account_before(u64::MAX);
    merged_records.account.finish();
    Ok(Observation {
        end,
        remarks: merged_records.remarks(),
        lost_records: merged_records.lost_records,
        account: merged_records.account,
    })
}

/// Merges the records of all processors in the order of their times.
struct MergedRecords {
    /// Id of the tracepoint `sys_enter`.
    enter: u64,
    /// Events of each processor that are not in the account yet.
    queues: Vec<VecDeque<Event>>,
    account: Account,
    lost_records: u64,
    /// Threads that have executed a program, but have made no system call since then.
    threads_without_call: HashSet<u32>,
    /// Number of programs that ended without a reported call.
    unreported_programs: u64,
}

impl MergedRecords {
    fn new(tracepoints: &Tracepoints, rings: usize) -> Self {
        Self {
            enter: tracepoints.enter,
            queues: (0..rings).map(|_| VecDeque::new()).collect(),
            account: Account::default(),
            lost_records: 0,
            threads_without_call: HashSet::new(),
            unreported_programs: 0,
        }
    }

    fn add(&mut self, ring: usize, bytes: &[u8]) {
        let (Some(record), Some(ns)) = (Record::read(bytes), time_of(bytes)) else {
            return;
        };
        let action = match record {
            Record::Sample(reader) => read_call(reader, self.enter),
            Record::Fork(task) => {
                let (process, thread) = (task.process, task.thread);
                let action = Action::Forked { process, thread };
                Some((task.parent_process, task.parent_thread, action))
            }
            Record::Exit(task) => Some((task.process, task.thread, Action::Ended)),
            Record::ThreadName {
                process,
                thread,
                at_exec: true,
            } => Some((process, thread, Action::Executed)),
            Record::Lost(count) => {
                self.lost_records += count;
                None
            }
            _ => None,
        };
        self.queues[ring].extend(action.map(|(process, thread, action)| Event {
            ns,
            process,
            thread,
            action,
        }));
    }

    /// Adds the events before `ns` to the account. All of them must be in the queues.
    fn account_before(&mut self, ns: u64) {
        loop {
            let next = self
                .queues
                .iter()
                .enumerate()
                .filter_map(|(index, queue)| Some((queue.front()?.ns, index)))
                .min();
            let Some((_, index)) = next.filter(|(at, _)| *at < ns) else {
                return;
            };
            let Some(event) = self.queues[index].pop_front() else {
                return;
            };
            match event.action {
                Action::Executed => {
                    self.threads_without_call.insert(event.thread);
                }
                Action::Entered { .. } if !self.threads_without_call.is_empty() => {
                    self.threads_without_call.remove(&event.thread);
                }
                Action::Ended if self.threads_without_call.remove(&event.thread) => {
                    self.unreported_programs += 1;
                }
                _ => {}
            }
            self.account.add(&event);
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.lost_records > 0 {
            remarks.push(format!(
                "{} records are missing: the calls came faster than they could be read",
                self.lost_records
            ));
        }
        if self.unreported_programs > 0 {
            remarks.push(format!(
                "all calls of {} programs are missing: the kernel stops reporting a program that \
                 gains rights (set-user-ID)",
                self.unreported_programs
            ));
        }
        remarks
    }
}

/// Returns the process, the thread and the action of a tracepoint's record.
fn read_call(mut reader: Reader<'_>, enter: u64) -> Option<(u32, u32, Action)> {
    let (process, thread, _ns) = (reader.u32()?, reader.u32()?, reader.u64()?);
    let _length = reader.u32()?;
    // The first fields of every tracepoint: its id in 16 bits, flags, and the process.
    let event = reader.u32()? & 0xFFFF;
    let _process = reader.u32()?;
    let number = reader.u64()?;
    let action = if u64::from(event) == enter {
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = reader.u64()?;
        }
        Action::Entered { number, arguments }
    } else {
        Action::Left {
            result: reader.u64()?.cast_signed(),
        }
    };
    Some((process, thread, action))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged_records() -> MergedRecords {
        MergedRecords::new(&Tracepoints { enter: 1, exit: 2 }, 2)
    }

    fn event(ns: u64, action: Action) -> Event {
        Event {
            ns,
            process: 1_000_000_000,
            thread: 1_000_000_000,
            action,
        }
    }

    const ENTERED: Action = Action::Entered {
        number: 0,
        arguments: [0; 6],
    };

    #[test]
    fn records_of_two_processors_are_added_in_the_order_of_their_times() {
        let mut merged_records = merged_records();
        merged_records.queues[0].push_back(event(30, Action::Left { result: 0 }));
        merged_records.queues[1].push_back(event(10, ENTERED));
        merged_records.account_before(20);
        assert_eq!(merged_records.account.calls[&0].ns, 0);
        merged_records.account_before(u64::MAX);
        assert_eq!(merged_records.account.calls[&0].ns, 20);
    }

    #[test]
    fn a_program_without_a_reported_call_gives_a_remark() {
        let mut merged_records = merged_records();
        merged_records.queues[0].extend([event(1, Action::Executed), event(2, Action::Ended)]);
        merged_records.account_before(u64::MAX);
        assert_eq!(merged_records.remarks().len(), 1);
    }

    #[test]
    fn a_program_with_a_reported_call_gives_no_remark() {
        let mut merged_records = merged_records();
        merged_records.queues[0].extend([event(1, Action::Executed), event(2, ENTERED)]);
        merged_records.queues[0].push_back(event(3, Action::Ended));
        merged_records.account_before(u64::MAX);
        assert!(merged_records.remarks().is_empty());
    }
}
