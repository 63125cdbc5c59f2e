//! `thread`, `threads_many`: threads of pthreads, without the work that Rust adds.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::cpus::{hold, sides};
use crate::probe::{Class, OpenProbe, Parameter, Placement, Probe, ProbeOptions, timed};
use crate::system::{succeeded, wrong};

pub const THREAD: Probe = Probe {
    name: "thread",
    summary: "pthread_create of a thread that ends at once, pthread_join",
    placements: &[Placement::None, Placement::SameCpu],
    ..Probe::latency(Class::Thread, open_thread)
};

fn open_thread(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    hold(sides(options.placement)?.measured)?;
    Ok(OpenProbe::latency(|count| {
        let mut token = 0;
        timed(count, || {
            token += 1;
            Idle::start(token)?.join()
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
    hold(sides(options.placement)?.measured)?;
    let many = to_usize(options.count);
    let mut threads = Vec::with_capacity(many);
    Ok(OpenProbe::latency(move |count| {
        let took = timed(count, || {
            for token in 1..=many {
                threads.push(Idle::start(token)?);
            }
            threads.drain(..).try_for_each(Idle::join)
        })?;
        Ok(took.div_f64(many as f64))
    }))
}

/// A thread that ends at once and returns its argument.
pub struct Idle {
    thread: libc::pthread_t,
    token: usize,
}

impl Idle {
    /// Starts the thread with the default attributes.
    #[inline]
    pub fn start(token: usize) -> Result<Self, Problem> {
        let mut thread = MaybeUninit::uninit();
        // SAFETY: the thread can be written; it uses its argument as a number only.
        let code = unsafe {
            let token = token as *mut c_void;
            libc::pthread_create(thread.as_mut_ptr(), null(), return_argument, token)
        };
        succeeded("pthread_create", code)?;
        // SAFETY: the call filled it.
        let thread = unsafe { thread.assume_init() };
        Ok(Self { thread, token })
    }

    /// Waits for the end of the thread.
    #[inline]
    pub fn join(self) -> Result<(), Problem> {
        let mut returned = null_mut();
        // SAFETY: the thread was started and is joined once; its answer can be written.
        let code = unsafe { libc::pthread_join(self.thread, &raw mut returned) };
        succeeded("pthread_join", code)?;
        if returned as usize != self.token {
            return Err(wrong("a thread", returned as usize, self.token));
        }
        Ok(())
    }
}

extern "C" fn return_argument(token: *mut c_void) -> *mut c_void {
    token
}
