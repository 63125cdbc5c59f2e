//! `io_uring_nop`, `io_uring_read_byte`: operations through `io_uring`, many for each system call.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;
use io_uring::IoUring;
use io_uring::opcode::{Nop, Read};
use io_uring::squeue::Entry;
use io_uring::types::Fd;

use crate::probe::{Class, OpenProbe, Operation, Parameter, Probe, ProbeOptions, rounds};
use crate::system::{check_result, problem_of, wrong_result};

pub const IO_URING_NOP: Probe = Probe {
    name: "io_uring_nop",
    summary: "an operation that does nothing, handed over by io_uring 32 at a time",
    count: Some(OPERATIONS_PER_CALL),
    needs: NEEDS,
    // SAFETY: the operation points to nothing.
    ..Probe::latency(Class::SystemCalls, |options| unsafe {
        open(options, Nop::new().build(), 0, ())
    })
};

pub const IO_URING_READ_BYTE: Probe = Probe {
    name: "io_uring_read_byte",
    summary: "read of one byte from /dev/zero, handed over by io_uring 32 at a time",
    count: Some(OPERATIONS_PER_CALL),
    needs: NEEDS,
    ..Probe::latency(Class::SystemCalls, open_io_uring_read_byte)
};

/// File that is read.
const PATH: &str = "/dev/zero";

fn open_io_uring_read_byte(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let file = File::open(PATH).map_err(problem_of(PATH))?;
    let mut byte = Box::new(1_u8);
    let read = Read::new(Fd(file.as_raw_fd()), &raw mut *byte, 1).build();
    // SAFETY: the file and the byte are kept. The byte stays in its box.
    unsafe { open(options, read, 1, (file, byte)) }
}

/// The `--count` of operations for each system call.
pub const OPERATIONS_PER_CALL: Parameter = Parameter {
    summary: "operations handed over at a time",
    default: 32,
    minimum: 1,
    maximum: 4096,
};
/// Requirements of both probes.
pub const NEEDS: &str =
    "io_uring, which many containers forbid (seccomp, kernel.io_uring_disabled)";

/// A ring for one kind of operation.
struct Submissions<Data> {
    ring: IoUring,
    operations_per_call: u64,
    operation: Entry,
    /// Result of the operation.
    expected: i32,
    /// Memory and files that the operation points to.
    _data: Data,
}

/// Returns a probe with a ring for one kind of operation.
///
/// # Safety
/// `data` must own the operation's memory and files, at addresses that a move does not change.
unsafe fn open<Data: 'static>(
    options: &ProbeOptions,
    operation: Entry,
    expected: i32,
    data: Data,
) -> Result<OpenProbe, Problem> {
    let entries = u32::try_from(options.count).expect("within the parameter's range");
    let ring = IoUring::new(entries).map_err(problem_of("io_uring_setup"))?;
    Ok(OpenProbe::latency(Submissions {
        ring,
        operations_per_call: options.count,
        operation,
        expected,
        _data: data,
    }))
}

impl<Data> Submissions<Data> {
    /// Submits operations by one system call, which returns when all are complete.
    fn submit(&mut self, operations: usize) -> Result<(), Problem> {
        let mut queue = self.ring.submission();
        for _ in 0..operations {
            // SAFETY: the caller of `open` promised valid data, and the operation ends before the
            // return.
            unsafe { queue.push(&self.operation) }
                .map_err(|_| Problem::failure("the ring of io_uring is full"))?;
        }
        drop(queue);
        let submitted = self
            .ring
            .submit_and_wait(operations)
            .map_err(problem_of("io_uring_enter"))?;
        let mut completions = 0;
        for completion in self.ring.completion() {
            let result = completion.result();
            check_result("an operation by io_uring", result, self.expected)?;
            completions += 1;
        }
        if (submitted, completions) != (operations, operations) {
            return Err(wrong_result(
                "io_uring_enter",
                submitted.min(completions),
                operations,
            ));
        }
        Ok(())
    }
}

impl<Data> Operation for Submissions<Data> {
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem> {
        let started = Instant::now();
        for operations in rounds(count, self.operations_per_call) {
            self.submit(to_usize(operations))?;
        }
        Ok(started.elapsed())
    }
}
