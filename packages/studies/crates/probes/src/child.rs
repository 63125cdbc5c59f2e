//! Child processes, and helpers: children that run on a CPU of their own and work for the probe.
//!
//! A child ends with the probe, even if the probe is killed. A helper reports its CPU before the
//! measurement starts. If a helper ends too early, the probe ends, too.

use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::process::{self, ExitStatus};
use std::time::Duration;

use equipoise_kernel::child::{die_with_parent, discard, reap};
use equipoise_reporting::problem::Problem;

use crate::channel::{End, Ends};
use crate::cpus::{current_cpu, pin_thread, side_cpus};
use crate::handlers::Action;
use crate::probe::{OpenProbe, Operation, ProbeOptions};
use crate::system::{check_negative, problem_of};

/// A child process, which is killed and reaped when dropped. The child is in the process group of
/// the probe, so a signal to the group ends both. If the probe dies, the kernel kills the child.
pub struct Child {
    pid: libc::pid_t,
}

impl Child {
    /// Starts a copy of this process that does `work` and exits. This process must have one thread.
    /// A problem of the work is written to standard error.
    pub fn start(work: impl FnOnce() -> Result<(), Problem>) -> Result<Self, Problem> {
        let parent = process::id();
        Self::fork(move || {
            end_with_parent(parent).map_err(problem_of("prctl"))?;
            work()
        })
    }

    /// Starts a copy in a separate session. The copy is not killed when the probe dies.
    pub fn start_session(work: impl FnOnce() -> Result<(), Problem>) -> Result<Self, Problem> {
        Self::fork(move || {
            // SAFETY: takes no arguments; a new child leads no process group.
            check_negative("setsid", unsafe { libc::setsid() })?;
            work()
        })
    }

    fn fork(work: impl FnOnce() -> Result<(), Problem>) -> Result<Self, Problem> {
        // SAFETY: this process has one thread, so no lock is held in the copy.
        let pid = check_negative("fork", unsafe { libc::fork() })?;
        if pid > 0 {
            return Ok(Self { pid });
        }
        let status = match work() {
            Ok(()) => 0,
            Err(problem) => {
                // If standard error is closed, the problem cannot be reported.
                let _ = writeln!(io::stderr(), "the other side of the probe: {problem}");
                1
            }
        };
        // SAFETY: ends the copy without running the exit handlers of the parent.
        unsafe { libc::_exit(status) }
    }

    /// Waits for the end of the child, without killing it; returns its exit status.
    pub fn wait(self) -> Result<ExitStatus, Problem> {
        let (status, _) = reap(self.pid).map_err(problem_of("wait4"))?;
        std::mem::forget(self);
        Ok(status)
    }
}

/// Lets the kernel kill this process when the starting thread ends. `parent` is the process of that
/// thread. Fails if `parent` has ended. Allocates nothing and takes no lock.
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    die_with_parent()?;
    if std::os::unix::process::parent_id() != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: passes numbers only; the child was not reaped, so its id was not reused.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        discard(self.pid);
    }
}

/// A child process that works for this process until the helper is dropped.
pub struct Helper {
    _child: Child,
    /// CPU on which the helper started.
    pub cpu: c_int,
}

impl Helper {
    /// Starts a helper on a CPU (`None`: any CPU). `work` must continue until the helper is
    /// dropped. Descriptors that are moved into `work` are closed in this process.
    pub fn start(
        cpu: Option<usize>,
        work: impl FnOnce() -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        set_exit_on_child_end(true)?;
        let (mut reader, mut writer) = io::pipe().map_err(problem_of("pipe"))?;
        let child = Child::start(move || {
            pin_thread(cpu)?;
            writer
                .write_all(&current_cpu()?.to_ne_bytes())
                .map_err(problem_of("pipe"))?;
            drop(writer);
            work()?;
            Err(Problem::failure("its work ended before the probe"))
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
        // From now on, the helper may end. The kernel always accepts the default action.
        let _ = set_exit_on_child_end(false);
    }
}

/// Returns a probe that exchanges bytes with a helper. `ends` opens the channel. This process does
/// the operation `repeat` at its end, and the helper does `work` at the other end.
pub fn exchange(
    options: &ProbeOptions,
    ends: impl FnOnce() -> Result<Ends, Problem>,
    work: fn(End) -> Result<(), Problem>,
    bytes_per_operation: u64,
    repeat: impl FnMut(&mut End, u64) -> Result<Duration, Problem> + 'static,
) -> Result<OpenProbe, Problem> {
    let cpus = side_cpus(options.placement)?;
    pin_thread(cpus.measured)?;
    let (end, other) = ends()?;
    let helper = Helper::start(cpus.other, move || work(other))?;
    let helper_cpu = helper.cpu.to_string();
    let exchange = Exchange {
        _helper: helper,
        end,
        repeat,
    };
    Ok(OpenProbe::bandwidth(bytes_per_operation, exchange)
        .with_fact("cpu", current_cpu()?.to_string())
        .with_fact("helper_cpu", helper_cpu))
}

/// This end of a channel, and the helper at the other end. The helper is dropped first: a closed
/// channel would end it with an error.
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

/// Sets whether this process exits when a child ends. Without the exit, the process could wait
/// forever for a datagram or a futex.
fn set_exit_on_child_end(exits: bool) -> Result<(), Problem> {
    let handler = if exits {
        exit_with_message as *const () as libc::sighandler_t
    } else {
        libc::SIG_DFL
    };
    Action::new(handler, 0).install(libc::SIGCHLD)
}

extern "C" fn exit_with_message(_: c_int) {
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
    fn a_child_does_its_work_and_ends_when_dropped() {
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
