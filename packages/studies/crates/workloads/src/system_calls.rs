//! Counts the system calls of a function.
//!
//! A traced copy of the process (ptrace(2)) runs the function again. Tracing makes system calls
//! about a hundred times slower, so the traced run is never timed.

use std::mem::size_of;

use libc::{c_int, pid_t};

/// System call that marks the start and the end of the work. The work never makes this call.
const MARK: libc::c_long = libc::SYS_getppid;
/// Value of `ptrace_syscall_info.op` at the entry of a system call.
const ENTRY: u8 = 1;

/// Returns the number of system calls of `work`; `None` if tracing a child is forbidden.
pub fn count_system_calls(work: impl FnOnce()) -> Option<u64> {
    // SAFETY: the copy runs `work` and ends by `_exit`, so no cleanup runs twice.
    let child = unsafe { libc::fork() };
    match child {
        -1 => None,
        0 => run_traced(work),
        _ => count_between_marks(child),
    }
}

fn run_traced(work: impl FnOnce()) -> ! {
    // SAFETY: calls without arguments that point anywhere.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 {
            libc::raise(libc::SIGSTOP);
            libc::syscall(MARK);
            work();
            libc::syscall(MARK);
        }
        libc::_exit(0)
    }
}

/// Follows the copy to its end, and counts its system calls between the two marks.
fn count_between_marks(child: pid_t) -> Option<u64> {
    let mut status: c_int = 0;
    let mut marks = 0;
    let mut calls = 0;
    loop {
        // SAFETY: `status` is valid for writing, and the child was not reaped.
        if unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) } != child
            || libc::WIFEXITED(status)
            || libc::WIFSIGNALED(status)
        {
            return (marks == 2).then_some(calls);
        }
        if libc::WSTOPSIG(status) == libc::SIGSTOP {
            let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
            // SAFETY: the child is stopped; the options are passed by value.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, child, 0, options) };
        } else if let Some(number) = entered_call(child) {
            if number == MARK {
                marks += 1;
            } else if marks == 1 {
                calls += 1;
            }
        }
        // SAFETY: the child is stopped, and continues to its next system call.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, child, 0, 0) };
    }
}

/// Returns the number of the system call that the stopped child enters; `None` if it enters none.
fn entered_call(child: pid_t) -> Option<libc::c_long> {
    // SAFETY: zero is a valid value of every field.
    let mut call: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    // SAFETY: `call` is valid for writing over its size.
    let bytes = unsafe {
        libc::ptrace(
            libc::PTRACE_GET_SYSCALL_INFO,
            child,
            size_of::<libc::ptrace_syscall_info>(),
            &raw mut call,
        )
    };
    if bytes <= 0 || call.op != ENTRY {
        return None;
    }
    // SAFETY: at an entry the kernel fills in this member.
    let number = unsafe { call.u.entry.nr };
    libc::c_long::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::count_system_calls;

    #[test]
    fn every_system_call_is_counted() {
        for calls in [0, 1, 7] {
            let counted = count_system_calls(|| {
                for _ in 0..calls {
                    // SAFETY: a call without arguments.
                    unsafe { libc::syscall(libc::SYS_getuid) };
                }
            });
            assert_eq!(counted, Some(calls));
        }
    }
}
