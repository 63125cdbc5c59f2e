//! The other process of a probe that needs two, held on its own CPU.
//!
//! No figure comes from a helper that is not there: it says on which CPU it runs before anything
//! is measured, and if it ends too early the probe ends with it.

use std::ffi::c_int;
use std::io::{self, PipeWriter, Read, Write};

use equipoise_reporting::problem::Problem;

use crate::child::Child;
use crate::cpus::hold;
use crate::handlers::Action;
use crate::system::{accepted, problem_of};

const FAILED: c_int = 1;

/// A process that works for this one until it is dropped.
pub struct Helper {
    _child: Child,
    cpu: c_int,
}

impl Helper {
    /// Starts one on that CPU (`None`: wherever the kernel puts it). `work` must go on for as
    /// long as the helper is kept; what it takes along is closed in this process.
    ///
    /// # Errors
    /// If the system refuses the process or the CPU, or the helper ends before it works.
    pub fn start(
        cpu: Option<usize>,
        work: impl FnOnce() -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        end_with_a_child(true)?;
        let (mut ready, told) = io::pipe().map_err(|error| problem_of("pipe", &error))?;
        let child = Child::start(move || {
            hold(cpu)?;
            say_the_cpu(told)?;
            work()?;
            Err(Problem::failure("it has nothing left to do"))
        })?;
        let mut found = [0; size_of::<c_int>()];
        ready
            .read_exact(&mut found)
            .map_err(|error| problem_of("the other side", &error))?;
        Ok(Self {
            _child: child,
            cpu: c_int::from_ne_bytes(found),
        })
    }

    /// The CPU on which it found itself when it began.
    pub fn cpu(&self) -> c_int {
        self.cpu
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // From here on the end of the helper is no surprise. The default is always accepted.
        let _ = end_with_a_child(false);
    }
}

/// The CPU that the calling thread runs on.
///
/// # Errors
/// What `sched_getcpu` says.
pub fn cpu_here() -> Result<c_int, Problem> {
    // SAFETY: takes nothing and touches no memory of ours.
    accepted("sched_getcpu", unsafe { libc::sched_getcpu() })
}

fn say_the_cpu(mut told: PipeWriter) -> Result<(), Problem> {
    told.write_all(&cpu_here()?.to_ne_bytes())
        .map_err(|error| problem_of("pipe", &error))
}

/// Whether the end of a child ends this process too: it may be waiting for an answer (a datagram,
/// a futex) that no end of file stands in for, and nothing else would wake it up.
fn end_with_a_child(so: bool) -> Result<(), Problem> {
    let handler = if so {
        leave as *const () as libc::sighandler_t
    } else {
        libc::SIG_DFL
    };
    Action::new(handler, 0).install(libc::SIGCHLD)
}

extern "C" fn leave(_: c_int) {
    const WORDS: &[u8] = b"equipoise-probe: the other side of the probe ended too early\n";
    // SAFETY: both calls are async-signal-safe, and the bytes are there for ever.
    unsafe {
        libc::write(libc::STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len());
        libc::_exit(FAILED)
    }
}
