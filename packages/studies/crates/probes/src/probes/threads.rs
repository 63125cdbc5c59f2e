//! `thread`, `threads_many`: threads by pthreads, without the work of Rust's own threads.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::cpus::{pin_thread, side_cpus};
use crate::probe::{Class, OpenProbe, Parameter, Placement, Probe, ProbeOptions, timed};
use crate::system::{check_error_number, wrong_result};

pub const THREAD: Probe = Probe {
    name: "thread",
    summary: "pthread_create of a thread that ends at once, pthread_join",
    placements: &[Placement::None, Placement::SameCpu],
    ..Probe::latency(Class::Thread, open_thread)
};

fn open_thread(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    pin_thread(side_cpus(options.placement)?.measured)?;
    Ok(OpenProbe::latency(|count| {
        let mut token = 0;
        timed(count, || {
            token += 1;
            EmptyThread::start(token)?.join()
        })
    }))
}

pub const THREADS_MANY: Probe = Probe {
    name: "threads_many",
    summary: "one of 64 threads that are all created before the first is joined",
    placements: &[Placement::None, Placement::SameCpu],
    count: Some(Parameter {
        summary: "threads that are created before the first is joined",
        default: 64,
        minimum: 1,
        maximum: 10_000,
    }),
    ..Probe::latency(Class::Thread, open_threads_many)
};

fn open_threads_many(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    pin_thread(side_cpus(options.placement)?.measured)?;
    let thread_count = to_usize(options.count);
    let mut threads = Vec::with_capacity(thread_count);
    Ok(OpenProbe::latency(move |count| {
        let elapsed = timed(count, || {
            for token in 1..=thread_count {
                threads.push(EmptyThread::start(token)?);
            }
            threads.drain(..).try_for_each(EmptyThread::join)
        })?;
        Ok(elapsed.div_f64(thread_count as f64))
    }))
}

/// A thread that ends at once and returns its argument.
pub struct EmptyThread {
    thread: libc::pthread_t,
    token: usize,
}

impl EmptyThread {
    /// Starts the thread with the default attributes.
    #[inline]
    pub fn start(token: usize) -> Result<Self, Problem> {
        let mut thread = MaybeUninit::uninit();
        // SAFETY: the thread can be written; it uses its argument as a number only.
        let code = unsafe {
            let token = token as *mut c_void;
            libc::pthread_create(thread.as_mut_ptr(), null(), return_argument, token)
        };
        check_error_number("pthread_create", code)?;
        // SAFETY: the call filled it.
        let thread = unsafe { thread.assume_init() };
        Ok(Self { thread, token })
    }

    /// Waits for the end of the thread, and checks the number that it returns.
    #[inline]
    pub fn join(self) -> Result<(), Problem> {
        let mut returned = null_mut();
        // SAFETY: the thread was started and is joined once; its answer can be written.
        let code = unsafe { libc::pthread_join(self.thread, &raw mut returned) };
        check_error_number("pthread_join", code)?;
        if returned as usize != self.token {
            return Err(wrong_result("a thread", returned as usize, self.token));
        }
        Ok(())
    }
}

extern "C" fn return_argument(token: *mut c_void) -> *mut c_void {
    token
}
