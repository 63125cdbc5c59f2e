//! System calls by `ptrace`: every thread is stopped at the entry and at the return of each.

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

/// Options of every traced thread; the threads die with the tracer.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

/// The call `exit`, which ends one thread, by the architecture as the kernel's audit numbers it.
const ENDS_A_THREAD: [(u32, u64); 4] = [
    (0xC000_003E, 60), // x86-64
    (0x4000_0003, 1),  // i386
    (0xC000_00B7, 93), // AArch64
    (0x4000_0028, 1),  // Arm
];

/// Starts the command and observes it and its descendants until it has ended; descendants that
/// outlive it go on untraced.
pub fn observe(mut paused: PausedCommand) -> Result<Observation, Problem> {
    let pid = paused.pid;
    let refused = |error: io::Error| {
        Problem::failure(format!(
            "ptrace: {error}; it is the only way without tracepoints: a container has to allow it \
             (--cap-add SYS_PTRACE), or run as root"
        ))
    };
    request(libc::PTRACE_SEIZE, pid, OPTIONS as usize).map_err(refused)?;
    request(libc::PTRACE_INTERRUPT, pid, 0).map_err(refused)?;
    paused.release()?;
    let mut tracer = Tracer {
        command: pid,
        processes: HashMap::from([(pid, number(pid))]),
        account: Account::default(),
        executing: false,
    };
    let end = tracer.run()?;
    if !tracer.executing {
        paused.check_refusal()?;
    }
    tracer.detach_all();
    // SAFETY: has no conditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    let remark = "programs that gain rights (set-user-ID) ran without them while they were traced";
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
    /// Whether the command has executed: before, its calls are ours.
    executing: bool,
}

impl Tracer {
    fn run(&mut self) -> Result<End, Problem> {
        loop {
            let (thread, status) = child::wait_for_any(libc::__WALL)
                .map_err(Problem::system("waiting for the observed command"))?;
            if let Some(end) = End::of(status) {
                self.note(thread, Action::Ended);
                self.processes.remove(&thread);
                if thread == self.command {
                    signals::stop_forwarding();
                    return Ok(end);
                }
            } else {
                self.stopped(thread, status.into_raw());
            }
        }
    }

    /// Handles the reason why the thread has stopped, and resumes it.
    fn stopped(&mut self, thread: libc::pid_t, status: libc::c_int) {
        const SYSTEM_CALL: libc::c_int = libc::SIGTRAP | 0x80;
        let signal = libc::WSTOPSIG(status);
        let event = status >> 16;
        let mut go_on = libc::PTRACE_SYSCALL;
        let mut deliver = 0;
        match event {
            0 if signal == SYSTEM_CALL => go_on = self.at_call(thread),
            0 => deliver = signal,
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.forked(thread);
            }
            libc::PTRACE_EVENT_EXEC => self.executed(thread),
            // A group stop is obeyed; the first stop of a new thread is not a group stop.
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => go_on = libc::PTRACE_LISTEN,
            _ => {}
        }
        // The next wait reports a thread that has died meanwhile.
        let deliver = usize::try_from(deliver).unwrap_or(0);
        drop(request(go_on, thread, deliver));
        if go_on == libc::PTRACE_DETACH {
            self.note(thread, Action::Ended);
            self.processes.remove(&thread);
        }
    }

    /// Notes the call that the thread enters or leaves; returns the request that resumes it.
    fn at_call(&mut self, thread: libc::pid_t) -> libc::c_uint {
        // SAFETY: all-zero is a value of this plain structure.
        let mut call: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let (kind, bytes) = (libc::PTRACE_GET_SYSCALL_INFO, size_of_val(&call));
        // SAFETY: `call` is valid for writing its size.
        let length = unsafe { libc::ptrace(kind, thread, bytes, &raw mut call) };
        if length <= 0 || !self.executing {
            return libc::PTRACE_SYSCALL;
        }
        match call.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                // SAFETY: the kernel said that this part is there.
                let entry = unsafe { call.u.entry };
                let (number, arguments) = (entry.nr, entry.args);
                self.note(thread, Action::Entered { number, arguments });
                let ends_thread = ENDS_A_THREAD.contains(&(call.arch, number));
                if ends_thread && self.is_first_of_descendant(thread) {
                    return libc::PTRACE_DETACH;
                }
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => {
                // SAFETY: the kernel said that this part is there.
                let result = unsafe { call.u.exit.sval };
                self.note(thread, Action::Left { result });
            }
            _ => {}
        }
        libc::PTRACE_SYSCALL
    }

    /// Whether the thread is the first of its process, and not of the command itself.
    ///
    /// If such a thread ends before others, the kernel reports its end only when the process ends,
    /// and the thread cannot be detached until then. Its tracer has to wait for the process, even
    /// if the process outlives the command.
    fn is_first_of_descendant(&mut self, thread: libc::pid_t) -> bool {
        thread != self.command && self.process_of(thread) == number(thread)
    }

    fn forked(&mut self, thread: libc::pid_t) {
        let Some(child) = message(thread) else { return };
        let parent = self.process_of(thread);
        let is_thread = Path::new(&format!("/proc/{parent}/task/{child}")).exists();
        let process = if is_thread { parent } else { number(child) };
        self.processes.insert(child, process);
        let thread_number = number(child);
        let forked = Action::Forked {
            process,
            thread: thread_number,
        };
        self.note(thread, forked);
    }

    fn executed(&mut self, thread: libc::pid_t) {
        // Another thread of the process may have executed; it continues with the number of the
        // first thread.
        if let Some(former) = message(thread).filter(|former| *former != thread) {
            self.note(former, Action::Ended);
            self.processes.remove(&former);
        }
        self.processes.insert(thread, number(thread));
        self.executing |= thread == self.command;
        self.note(thread, Action::Executed);
    }

    fn note(&mut self, thread: libc::pid_t, action: Action) {
        let process = self.process_of(thread);
        self.account.take(&Event {
            ns: monotonic_ns(),
            process,
            thread: number(thread),
            action,
        });
    }

    fn process_of(&mut self, thread: libc::pid_t) -> u32 {
        *self.processes.entry(thread).or_insert_with(|| {
            // Its first stop may come before the event of its parent.
            thread_group(thread).unwrap_or_else(|| number(thread))
        })
    }

    /// Stops tracing all threads, in whatever order they stop: a thread that waits for the child it
    /// has vforked stops only when that child is untraced.
    fn detach_all(&mut self) {
        for thread in std::mem::take(&mut self.processes).into_keys() {
            interrupt(thread);
        }
        // The last wait fails, as no child is left.
        while let Ok((thread, status)) = child::wait_for_any(libc::__WALL) {
            if status.stopped_signal().is_some() {
                detach(thread, status.into_raw());
            }
        }
    }
}

/// Stops a thread, if it is still traced.
fn interrupt(thread: libc::pid_t) {
    drop(request(libc::PTRACE_INTERRUPT, thread, 0));
}

/// Lets a thread that has stopped go on untraced, with the signal that it has stopped for.
fn detach(thread: libc::pid_t, status: libc::c_int) {
    let signal = libc::WSTOPSIG(status);
    let deliver = match status >> 16 {
        0 if signal != libc::SIGTRAP | 0x80 => signal,
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            // It may be running, unknown so far.
            if let Some(child) = message(thread) {
                interrupt(child);
            }
            0
        }
        _ => 0,
    };
    let deliver = usize::try_from(deliver).unwrap_or(0);
    drop(request(libc::PTRACE_DETACH, thread, deliver));
}

fn thread_group(thread: libc::pid_t) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

fn message(thread: libc::pid_t) -> Option<libc::pid_t> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: `message` is valid for writing.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, 0, &raw mut message) };
    check(result).ok()?;
    libc::pid_t::try_from(message).ok()
}

fn request(request: libc::c_uint, thread: libc::pid_t, data: usize) -> io::Result<()> {
    // SAFETY: these requests take numbers only.
    check(unsafe { libc::ptrace(request, thread, 0, data) }).map(drop)
}

fn number(pid: libc::pid_t) -> u32 {
    pid.unsigned_abs()
}
