//! Observes system calls by `ptrace`, which stops threads at the entry and the return of each call.

use std::collections::HashMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use equipoise_kernel::call::check;
use equipoise_kernel::child;
use equipoise_kernel::clock::monotonic_ns;
use equipoise_reporting::problem::Problem;

use crate::calls::account::{Account, Observation};
use crate::calls::event::{Action, Event};
use crate::command::{End, PausedCommand};
use crate::signals;

/// Options for every traced thread. The last option kills the threads if the tracer is killed.
const TRACE_OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

/// Signal of a stop at a system call, because of the option `PTRACE_O_TRACESYSGOOD`.
const SYSTEM_CALL_STOP: libc::c_int = libc::SIGTRAP | 0x80;

/// Architectures (`AUDIT_ARCH_*`), and the number of the call `exit`, which ends one thread.
const EXIT_CALLS: [(u32, u64); 4] = [
    (0xC000_003E, 60), // x86-64
    (0x4000_0003, 1),  // i386
    (0xC000_00B7, 93), // AArch64
    (0x4000_0028, 1),  // Arm
];

/// Starts the command, and observes the command and its descendants until the command has ended.
/// Descendants that still run then are no longer traced.
pub fn observe(mut paused: PausedCommand) -> Result<Observation, Problem> {
    let pid = paused.pid;
    let not_traceable = |error: io::Error| {
        Problem::failure(format!(
            "ptrace: {error}; without tracepoints, only ptrace observes system calls: allow it in \
             the container (--cap-add SYS_PTRACE), or run as root"
        ))
    };
    request(libc::PTRACE_SEIZE, pid, TRACE_OPTIONS as usize).map_err(not_traceable)?;
    request(libc::PTRACE_INTERRUPT, pid, 0).map_err(not_traceable)?;
    paused.release()?;
    let mut tracer = Tracer {
        command: pid,
        processes: HashMap::from([(pid, thread_id(pid))]),
        account: Account::default(),
        has_executed: false,
    };
    let end = tracer.run()?;
    if !tracer.has_executed {
        paused.wait_for_exec()?;
    }
    tracer.detach_all();
    // SAFETY: has no conditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    let remark = "set-user-ID programs ran without the rights of that user, as they were traced";
    let remarks = (!is_root).then(|| remark.to_owned()).into_iter().collect();
    tracer.account.finish();
    Ok(Observation {
        account: tracer.account,
        end,
        remarks,
        lost_records: 0,
    })
}

struct Tracer {
    command: libc::pid_t,
    /// The process of each traced thread.
    processes: HashMap<libc::pid_t, u32>,
    account: Account,
    /// Whether the command has begun. Earlier calls belong to the observer.
    has_executed: bool,
}

impl Tracer {
    fn run(&mut self) -> Result<End, Problem> {
        loop {
            let (thread, status) = child::wait_for_any(libc::__WALL)
                .map_err(Problem::system("waiting for the observed command"))?;
            if let Some(end) = End::of(status) {
                self.record(thread, Action::Ended);
                self.processes.remove(&thread);
                if thread == self.command {
                    signals::stop_forwarding();
                    return Ok(end);
                }
            } else {
                self.handle_stop(thread, status.into_raw());
            }
        }
    }

    /// Handles the event for which a thread has stopped, and resumes the thread.
    fn handle_stop(&mut self, thread: libc::pid_t, status: libc::c_int) {
        let signal = libc::WSTOPSIG(status);
        let mut resume = libc::PTRACE_SYSCALL;
        let mut delivered_signal = 0;
        let event = status >> 16;
        match event {
            0 if signal == SYSTEM_CALL_STOP => resume = self.handle_call(thread),
            0 => delivered_signal = signal,
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.handle_fork(thread);
            }
            libc::PTRACE_EVENT_EXEC => self.handle_exec(thread),
            // In a group stop the thread stays stopped. A new thread stops with SIGTRAP.
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => resume = libc::PTRACE_LISTEN,
            _ => {}
        }
        // An error is ignored: if the thread has died, the next wait reports its end.
        let delivered_signal = usize::try_from(delivered_signal).unwrap_or(0);
        drop(request(resume, thread, delivered_signal));
        if resume == libc::PTRACE_DETACH {
            self.record(thread, Action::Ended);
            self.processes.remove(&thread);
        }
    }

    /// Records the call that a thread enters or leaves; returns the request to resume the thread.
    fn handle_call(&mut self, thread: libc::pid_t) -> libc::c_uint {
        // SAFETY: all-zero is a value of this plain structure.
        let mut call: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let (kind, bytes) = (libc::PTRACE_GET_SYSCALL_INFO, size_of_val(&call));
        // SAFETY: `call` is valid for writing its size.
        let length = unsafe { libc::ptrace(kind, thread, bytes, &raw mut call) };
        if length <= 0 || !self.has_executed {
            return libc::PTRACE_SYSCALL;
        }
        match call.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                // SAFETY: `op` states which member of the union is valid.
                let entry = unsafe { call.u.entry };
                let (number, arguments) = (entry.nr, entry.args);
                self.record(thread, Action::Entered { number, arguments });
                let ends_thread = EXIT_CALLS.contains(&(call.arch, number));
                if ends_thread && self.is_first_of_descendant(thread) {
                    return libc::PTRACE_DETACH;
                }
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => {
                // SAFETY: `op` states which member of the union is valid.
                let result = unsafe { call.u.exit.sval };
                self.record(thread, Action::Left { result });
            }
            _ => {}
        }
        libc::PTRACE_SYSCALL
    }

    /// Whether the thread is the first thread of a descendant process.
    ///
    /// If such a thread ends before the other threads, the kernel reports its end only when the
    /// process ends. The tracer would wait for this report, even after the end of the command.
    fn is_first_of_descendant(&mut self, thread: libc::pid_t) -> bool {
        thread != self.command && self.process_of(thread) == thread_id(thread)
    }

    fn handle_fork(&mut self, thread: libc::pid_t) {
        let Some(child) = event_message(thread) else {
            return;
        };
        let parent = self.process_of(thread);
        let is_thread = Path::new(&format!("/proc/{parent}/task/{child}")).exists();
        let process = if is_thread { parent } else { thread_id(child) };
        self.processes.insert(child, process);
        let child_id = thread_id(child);
        let action = Action::Forked {
            process,
            thread: child_id,
        };
        self.record(thread, action);
    }

    fn handle_exec(&mut self, thread: libc::pid_t) {
        // If another thread executes a program, it gets the number of the first thread.
        if let Some(former) = event_message(thread).filter(|former| *former != thread) {
            self.record(former, Action::Ended);
            self.processes.remove(&former);
        }
        self.processes.insert(thread, thread_id(thread));
        self.has_executed |= thread == self.command;
        self.record(thread, Action::Executed);
    }

    fn record(&mut self, thread: libc::pid_t, action: Action) {
        let process = self.process_of(thread);
        self.account.add(&Event {
            ns: monotonic_ns(),
            process,
            thread: thread_id(thread),
            action,
        });
    }

    fn process_of(&mut self, thread: libc::pid_t) -> u32 {
        *self.processes.entry(thread).or_insert_with(|| {
            // The first stop of a thread may come before the fork event of its parent.
            thread_group(thread).unwrap_or_else(|| thread_id(thread))
        })
    }

    /// Stops tracing all threads, in the order in which they stop. A thread that waits for its
    /// vforked child stops later than the child.
    fn detach_all(&mut self) {
        for thread in std::mem::take(&mut self.processes).into_keys() {
            interrupt(thread);
        }
        // The last wait fails because no child is left.
        while let Ok((thread, status)) = child::wait_for_any(libc::__WALL) {
            if status.stopped_signal().is_some() {
                detach(thread, status.into_raw());
            }
        }
    }
}

fn interrupt(thread: libc::pid_t) {
    drop(request(libc::PTRACE_INTERRUPT, thread, 0));
}

/// Resumes a stopped thread untraced, with the signal for which it has stopped.
fn detach(thread: libc::pid_t, status: libc::c_int) {
    let signal = libc::WSTOPSIG(status);
    let delivered_signal = match status >> 16 {
        0 if signal != SYSTEM_CALL_STOP => signal,
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            // The child may be running, and not be among the known threads.
            if let Some(child) = event_message(thread) {
                interrupt(child);
            }
            0
        }
        _ => 0,
    };
    let delivered_signal = usize::try_from(delivered_signal).unwrap_or(0);
    drop(request(libc::PTRACE_DETACH, thread, delivered_signal));
}

fn thread_group(thread: libc::pid_t) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Returns the new child of a thread; after an exec, the number that the thread had before.
fn event_message(thread: libc::pid_t) -> Option<libc::pid_t> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: `message` is valid for writing.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, 0, &raw mut message) };
    check(result).ok()?;
    libc::pid_t::try_from(message).ok()
}

fn request(operation: libc::c_uint, thread: libc::pid_t, data: usize) -> io::Result<()> {
    // SAFETY: these operations take numbers only.
    check(unsafe { libc::ptrace(operation, thread, 0, data) }).map(drop)
}

fn thread_id(pid: libc::pid_t) -> u32 {
    pid.unsigned_abs()
}
