//! Child processes, which end with the probe, however that ends, and helpers, which are held on
//! their own CPU.
//!
//! No figure comes from a helper that is not there: it reports on which CPU it runs before anything
//! is measured, and if it ends too early the probe ends with it.

use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::process::{self, ExitStatus};
use std::time::Duration;

use equipoise_kernel::child::{die_with_parent, discard, reap};
use equipoise_reporting::problem::Problem;

use crate::channel::{End, Ends};
use crate::cpus::{current_cpu, hold, sides};
use crate::handlers::Action;
use crate::probe::{OpenProbe, Operation, ProbeOptions};
use crate::system::{accepted, problem_of};

/// A child process, which is killed and reaped when dropped.
///
/// It stays in the process group of the probe, so that it ends with the group, and the kernel kills it
/// when the probe dies.
pub struct Child {
    pid: libc::pid_t,
}

impl Child {
    /// Starts a copy of this process, which has one thread. The copy does `work` and leaves.
    ///
    /// A problem of the work goes to standard error; the probe notices that the child is gone.
    pub fn start(work: impl FnOnce() -> Result<(), Problem>) -> Result<Self, Problem> {
        let parent = process::id();
        Self::fork(move || {
            die_with(parent).map_err(problem_of("prctl"))?;
            work()
        })
    }

    /// Starts a copy in a separate session, which is not killed when the probe dies: `work` must
    /// then end without help.
    pub fn start_alone(work: impl FnOnce() -> Result<(), Problem>) -> Result<Self, Problem> {
        Self::fork(move || {
            // SAFETY: takes no arguments; a new child leads no process group.
            accepted("setsid", unsafe { libc::setsid() })?;
            work()
        })
    }

    fn fork(work: impl FnOnce() -> Result<(), Problem>) -> Result<Self, Problem> {
        // SAFETY: this process has one thread, so the copy finds every lock as it was.
        let pid = accepted("fork", unsafe { libc::fork() })?;
        if pid > 0 {
            return Ok(Self { pid });
        }
        let status = match work() {
            Ok(()) => 0,
            Err(problem) => {
                // Standard error may be closed; there is nowhere else to report the problem.
                let _ = writeln!(io::stderr(), "the other side of the probe: {problem}");
                1
            }
        };
        // SAFETY: leaves without running the exit handlers of the parent.
        unsafe { libc::_exit(status) }
    }

    /// Waits until the child leaves without a signal.
    pub fn wait(self) -> Result<ExitStatus, Problem> {
        let (status, _) = reap(self.pid).map_err(problem_of("wait4"))?;
        std::mem::forget(self);
        Ok(status)
    }
}

/// Has the kernel kill this process when the thread of `parent` that started it ends; a parent that
/// is gone already is an error.
///
/// Allocates nothing and takes no lock.
pub fn die_with(parent: u32) -> io::Result<()> {
    die_with_parent()?;
    if std::os::unix::process::parent_id() != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: passes numbers only; the child was not reaped, so the number is still its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        discard(self.pid);
    }
}

/// A process that works for this one until it is dropped.
pub struct Helper {
    _child: Child,
    /// CPU on which the helper ran when it began.
    pub cpu: c_int,
}

impl Helper {
    /// Starts a helper on a CPU (`None` leaves it to the kernel). `work` must go on until the helper
    /// is dropped; the descriptors that it moves along are closed in this process.
    pub fn start(
        cpu: Option<usize>,
        work: impl FnOnce() -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        end_with_a_child(true)?;
        let (mut reader, mut writer) = io::pipe().map_err(problem_of("pipe"))?;
        let child = Child::start(move || {
            hold(cpu)?;
            writer
                .write_all(&current_cpu()?.to_ne_bytes())
                .map_err(problem_of("pipe"))?;
            drop(writer);
            work()?;
            Err(Problem::failure("it has nothing left to do"))
        })?;
        let mut cpu = [0; size_of::<c_int>()];
        reader
            .read_exact(&mut cpu)
            .map_err(problem_of("the other side"))?;
        Ok(Self {
            _child: child,
            cpu: c_int::from_ne_bytes(cpu),
        })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // From here on the end of the helper is expected. The default is always accepted.
        let _ = end_with_a_child(false);
    }
}

/// Opens a channel, starts a helper that does `work` at its other end, and repeats an operation that
/// moves `bytes` at this end.
pub fn exchange(
    options: &ProbeOptions,
    ends: impl FnOnce() -> Result<Ends, Problem>,
    work: fn(End) -> Result<(), Problem>,
    bytes: u64,
    repeat: impl FnMut(&mut End, u64) -> Result<Duration, Problem> + 'static,
) -> Result<OpenProbe, Problem> {
    let sides = sides(options.placement)?;
    hold(sides.measured)?;
    let (end, other) = ends()?;
    let helper = Helper::start(sides.other, move || work(other))?;
    let helper_cpu = helper.cpu.to_string();
    let exchange = Exchange {
        _helper: helper,
        end,
        repeat,
    };
    Ok(OpenProbe::bandwidth(bytes, exchange)
        .with_fact("cpu", current_cpu()?.to_string())
        .with_fact("helper_cpu", helper_cpu))
}

/// This side of a channel. The helper is dropped first: were the channel closed before, the helper
/// would end too early.
struct Exchange<Repeat> {
    _helper: Helper,
    end: End,
    repeat: Repeat,
}

impl<Repeat> Operation for Exchange<Repeat>
where
    Repeat: FnMut(&mut End, u64) -> Result<Duration, Problem>,
{
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem> {
        (self.repeat)(&mut self.end, count)
    }
}

/// Sets whether the end of a child ends this process, too. The process may wait for an answer (a
/// datagram, a futex) that no end of file replaces, and nothing else would wake it up.
fn end_with_a_child(ends: bool) -> Result<(), Problem> {
    let handler = if ends {
        leave as *const () as libc::sighandler_t
    } else {
        libc::SIG_DFL
    };
    Action::new(handler, 0).install(libc::SIGCHLD)
}

extern "C" fn leave(_: c_int) {
    const MESSAGE: &[u8] = b"equipoise-probe: the other side of the probe ended too early\n";
    // SAFETY: both calls are async-signal-safe, and the bytes are static.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, pipe};

    #[test]
    fn a_child_does_its_work_and_is_gone_when_dropped() {
        let (mut reader, mut writer) = pipe().expect("a pipe");
        let child = Child::start(move || {
            writer.write_all(b"x").expect("written");
            loop {
                std::thread::park();
            }
        })
        .expect("started");
        let mut byte = [0];
        reader.read_exact(&mut byte).expect("the child wrote");
        let pid = child.pid;
        drop(child);
        // SAFETY: passes numbers only; signal 0 sends nothing.
        assert_eq!(unsafe { libc::kill(pid, 0) }, -1);
    }
}
