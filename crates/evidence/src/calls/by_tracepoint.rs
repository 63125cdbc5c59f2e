//! System calls by the tracepoints of the kernel: nothing is stopped.

use std::collections::{HashSet, VecDeque};

use crate::calls::Seen;
use crate::calls::account::Account;
use crate::calls::moment::{Moment, What};
use crate::clock::monotonic_ns;
use crate::command::Held;
use crate::perf::event::{Wanted, flag, sample};
use crate::perf::record::{Reader, Record, time_of};
use crate::perf::rings::Rings;
use crate::perf::tracepoint;
use crate::problem::Problem;

const RING_BYTES: usize = 8 << 20;

/// The numbers of `sys_enter` and `sys_exit`.
pub struct Tracepoints {
    enter: u64,
    exit: u64,
}

/// Finds out whether tracepoints can be had.
///
/// # Errors
/// Why not, in words.
pub fn prepare() -> Result<Tracepoints, String> {
    let numbers = tracepoint::numbers(&["raw_syscalls/sys_enter", "raw_syscalls/sys_exit"])?;
    let tracepoints = Tracepoints {
        enter: numbers[0],
        exit: numbers[1],
    };
    let own = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
    Rings::open(&tracepoints.wanted(), own, 1 << 16)
        .map_err(|error| format!("perf_event_open: {error}"))?;
    Ok(tracepoints)
}

impl Tracepoints {
    fn wanted(&self) -> [Wanted; 2] {
        const TRACEPOINT: u32 = 2;
        [
            (
                self.enter,
                flag::TASKS | flag::COMMANDS | flag::COMMANDS_AT_EXEC,
            ),
            (self.exit, 0),
        ]
        .map(|(event, flags)| Wanted {
            class: TRACEPOINT,
            event,
            flags,
            period_or_frequency: 1,
            sample_type: sample::RAW,
            user_registers: 0,
            user_stack_bytes: 0,
        })
    }
}

/// Starts the command and observes it until it has ended.
///
/// # Errors
/// It cannot be executed or observed.
pub fn observe(tracepoints: &Tracepoints, held: Held) -> Result<Seen, Problem> {
    let mut rings = Rings::open(&tracepoints.wanted(), held.pid, RING_BYTES)
        .map_err(|error| Problem::system("perf_event_open", &error))?;
    let running = held.start()?;
    let refused = |error| Problem::system("the observed command", &error);
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
    Ok(Seen {
        end,
        remarks: merged.remarks(),
        account: {
            merged.account.finish();
            merged.account
        },
    })
}

/// The records of all processors in one order.
struct Merged {
    enter: u64,
    queues: Vec<VecDeque<Moment>>,
    account: Account,
    lost: u64,
    /// Processes that executed something, until they end.
    executed: HashSet<u32>,
}

impl Merged {
    fn new(tracepoints: &Tracepoints, rings: usize) -> Self {
        Self {
            enter: tracepoints.enter,
            queues: (0..rings).map(|_| VecDeque::new()).collect(),
            account: Account::default(),
            lost: 0,
            executed: HashSet::new(),
        }
    }

    fn add(&mut self, ring: usize, bytes: &[u8]) {
        let (Some(record), Some(ns)) = (Record::read(bytes), time_of(bytes)) else {
            return;
        };
        let moment = match record {
            Record::Sample(reader) => read_call(reader, self.enter),
            Record::Fork(task) => Some(Moment {
                ns,
                process: task.parent_process,
                thread: task.parent_thread,
                what: What::Forked {
                    process: task.process,
                    thread: task.thread,
                },
            }),
            Record::Exit(task) => Some(Moment {
                ns,
                process: task.process,
                thread: task.thread,
                what: What::Ended,
            }),
            Record::Command {
                process,
                thread,
                at_exec: true,
            } => Some(Moment {
                ns,
                process,
                thread,
                what: What::Executed,
            }),
            Record::Lost(count) => {
                self.lost += count;
                None
            }
            _ => None,
        };
        self.queues[ring].extend(moment);
    }

    /// Accounts for what was before: a record of another processor that is still to come is later.
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
            let Some(moment) = self.queues[index].pop_front() else {
                return;
            };
            match moment.what {
                What::Executed => {
                    self.executed.insert(moment.process);
                }
                What::Ended if moment.process == moment.thread => {
                    self.executed.remove(&moment.process);
                }
                _ => {}
            }
            self.account.take(&moment);
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
        let gained = self
            .executed
            .iter()
            .filter(|process| !is_alive(**process))
            .count();
        if gained > 0 {
            remarks.push(format!(
                "{gained} processes were not seen to their end: the kernel stops reporting at a \
                 program that gains rights (set-user-ID)"
            ));
        }
        remarks
    }
}

fn is_alive(process: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

/// The thread, the time, and what the tracepoint has behind its common fields.
fn read_call(mut reader: Reader<'_>, enter: u64) -> Option<Moment> {
    let (process, thread, ns) = (reader.u32()?, reader.u32()?, reader.u64()?);
    let _bytes = reader.u32()?;
    let event = reader.u32()? & 0xFFFF;
    let _common = reader.u32()?;
    let number = reader.u64()?;
    let what = if u64::from(event) == enter {
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = reader.u64()?;
        }
        What::Entered { number, arguments }
    } else {
        What::Left {
            result: reader.u64()?.cast_signed(),
        }
    };
    Some(Moment {
        ns,
        process,
        thread,
        what,
    })
}
