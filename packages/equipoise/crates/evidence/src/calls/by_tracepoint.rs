//! System calls by the tracepoints of the kernel: no thread is stopped.

use std::collections::{HashSet, VecDeque};

use equipoise_kernel::clock::monotonic_ns;
use equipoise_kernel::perf::{EventOptions, TRACEPOINT, flag, sample};
use equipoise_reporting::problem::Problem;

use crate::calls::account::{Account, Observation};
use crate::calls::event::{Action, Event};
use crate::command::PausedCommand;
use crate::perf::record::{Reader, Record, time_of};
use crate::perf::rings::Rings;
use crate::perf::tracepoint;

/// On all processors together.
const RING_BYTES: usize = 32 << 20;

/// The numbers of `sys_enter` and `sys_exit`.
pub struct Tracepoints {
    enter: u64,
    exit: u64,
}

/// Finds out whether tracepoints can be used; the error is the reason why not.
pub fn prepare() -> Result<Tracepoints, String> {
    let numbers = tracepoint::numbers(&["raw_syscalls/sys_enter", "raw_syscalls/sys_exit"])?;
    let tracepoints = Tracepoints {
        enter: numbers[0],
        exit: numbers[1],
    };
    let own = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
    Rings::open(&tracepoints.events(), own, 1 << 16)
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

/// Starts the command and observes it until it has ended.
pub fn observe(tracepoints: &Tracepoints, paused: PausedCommand) -> Result<Observation, Problem> {
    let mut rings = Rings::open(&tracepoints.events(), paused.pid, RING_BYTES)
        .map_err(Problem::system("perf_event_open"))?;
    let running = paused.start()?;
    let refused = Problem::system("the observed command");
    let descriptor = running.descriptor().map_err(refused)?;
    let mut merged = Merged::new(tracepoints, rings.len());
    let mut ended = false;
    while !ended {
        let before_ns = monotonic_ns();
        ended = rings.wait(&descriptor).map_err(refused)?;
        rings.drain(|ring, record| merged.add(ring, record));
        merged.release_until(before_ns);
    }
    let end = running.wait().map_err(refused)?;
    rings.drain(|ring, record| merged.add(ring, record));
    merged.release_until(u64::MAX);
    merged.account.finish();
    Ok(Observation {
        end,
        remarks: merged.remarks(),
        lost_records: merged.lost,
        account: merged.account,
    })
}

/// The records of all processors in one order.
struct Merged {
    enter: u64,
    queues: Vec<VecDeque<Event>>,
    account: Account,
    lost: u64,
    /// Threads that have executed something, until they ask something of the kernel.
    executed: HashSet<u32>,
    /// Programs of which nothing was reported, as if they had ended at once.
    unreported: u64,
}

impl Merged {
    fn new(tracepoints: &Tracepoints, rings: usize) -> Self {
        Self {
            enter: tracepoints.enter,
            queues: (0..rings).map(|_| VecDeque::new()).collect(),
            account: Account::default(),
            lost: 0,
            executed: HashSet::new(),
            unreported: 0,
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
            Record::Command {
                process,
                thread,
                at_exec: true,
            } => Some((process, thread, Action::Executed)),
            Record::Lost(count) => {
                self.lost += count;
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

    /// Accounts for records before `ns`: no processor can still send an earlier one.
    fn release_until(&mut self, ns: u64) {
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
                    self.executed.insert(event.thread);
                }
                Action::Entered { .. } if !self.executed.is_empty() => {
                    self.executed.remove(&event.thread);
                }
                Action::Ended if self.executed.remove(&event.thread) => self.unreported += 1,
                _ => {}
            }
            self.account.take(&event);
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.lost > 0 {
            remarks.push(format!(
                "{} records had no room and are missing: the calls came faster than they could be \
                 read",
                self.lost
            ));
        }
        if self.unreported > 0 {
            remarks.push(format!(
                "all calls of {} programs: the kernel stops reporting at one that gains rights \
                 (set-user-ID)",
                self.unreported
            ));
        }
        remarks
    }
}

/// The process, the thread, and the fields of the tracepoint after its common fields.
fn read_call(mut reader: Reader<'_>, enter: u64) -> Option<(u32, u32, Action)> {
    let (process, thread, _ns) = (reader.u32()?, reader.u32()?, reader.u64()?);
    let _bytes = reader.u32()?;
    let event = reader.u32()? & 0xFFFF;
    let _common = reader.u32()?;
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

    fn merged() -> Merged {
        Merged::new(&Tracepoints { enter: 1, exit: 2 }, 2)
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
    fn records_of_two_processors_are_taken_in_the_order_of_their_times() {
        let mut merged = merged();
        merged.queues[0].push_back(event(30, Action::Left { result: 0 }));
        merged.queues[1].push_back(event(10, ENTERED));
        merged.release_until(20);
        assert_eq!(merged.account.calls[&0].ns, 0);
        merged.release_until(u64::MAX);
        assert_eq!(merged.account.calls[&0].ns, 20);
    }

    #[test]
    fn a_program_of_which_nothing_is_reported_is_remarked() {
        let mut merged = merged();
        merged.queues[0].extend([event(1, Action::Executed), event(2, Action::Ended)]);
        merged.release_until(u64::MAX);
        assert_eq!(merged.remarks().len(), 1);
    }

    #[test]
    fn a_program_that_asks_and_ends_is_nothing_to_remark() {
        let mut merged = merged();
        merged.queues[0].extend([event(1, Action::Executed), event(2, ENTERED)]);
        merged.queues[0].push_back(event(3, Action::Ended));
        merged.release_until(u64::MAX);
        assert!(merged.remarks().is_empty());
    }
}
