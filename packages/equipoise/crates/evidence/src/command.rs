//! The observed command: paused before its exec until the observer is ready.

use std::ffi::{CString, OsString};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::ptr;

use equipoise_kernel::call::{check, owned};
use equipoise_kernel::child;
use equipoise_reporting::problem::Problem;
use serde::Serialize;

use crate::signals;

/// A child that waits to become the command.
pub struct PausedCommand {
    /// Process number.
    pub pid: libc::pid_t,
    gate: PipeWriter,
    refusal: PipeReader,
}

/// A child that has become the command.
pub struct RunningCommand {
    /// Process number.
    pub pid: libc::pid_t,
}

/// How the command ended: one of the two is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct End {
    /// Exit status.
    pub exit: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
}

impl End {
    /// Reads what `wait` reported; `None` if the child has only stopped.
    pub fn of(status: ExitStatus) -> Option<Self> {
        let (exit, signal) = (status.code(), status.signal());
        (exit.is_some() || signal.is_some()).then_some(Self { exit, signal })
    }
}

/// Starts a child that waits; it is killed if this process is.
pub fn start_paused(command: Vec<OsString>) -> Result<PausedCommand, Problem> {
    let words: Vec<CString> = command
        .into_iter()
        .map(|word| CString::new(word.into_vec()))
        .collect::<Result<_, _>>()
        .map_err(|_| Problem::usage("a word of the command has a NUL in it"))?;
    if words.is_empty() {
        return Err(Problem::usage("no command was given after --"));
    }
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(ptr::null());
    let (gate_out, gate_in) = pipe()?;
    let (refusal_out, refusal_in) = pipe()?;
    // A signal of the terminal is for the command, whose end is ours too. Others are handed on.
    // A file of ours that grows beyond `ulimit -f` is an error of that file alone.
    // SAFETY: passes numbers only.
    let file_too_long = unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGQUIT, libc::SIG_IGN);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    // SAFETY: this process has one thread, so the child may use everything.
    let pid = check(unsafe { libc::fork() });
    match pid.map_err(Problem::system("a new process"))? {
        0 => {
            drop(gate_in);
            // SAFETY: the last call has returned it.
            unsafe { libc::signal(libc::SIGXFSZ, file_too_long) };
            become_command(&pointers, &gate_out, &refusal_in)
        }
        pid => {
            signals::forward_to(pid);
            Ok(PausedCommand {
                pid,
                gate: gate_in,
                refusal: refusal_out,
            })
        }
    }
}

fn become_command(words: &[*const libc::c_char], gate: &PipeReader, refusal: &PipeWriter) -> ! {
    let mut byte = 0_u8;
    // SAFETY: `byte` is valid for writing, `words` ends with null and its strings with NUL.
    unsafe {
        let _ = child::die_with_parent();
        if libc::read(gate.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::signal(libc::SIGQUIT, libc::SIG_DFL);
            // Rust ignores it in its own programs.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::execvp(words[0], words.as_ptr());
        }
        let errno = *libc::__errno_location();
        let bytes = size_of_val(&errno);
        libc::write(refusal.as_raw_fd(), (&raw const errno).cast(), bytes);
        libc::_exit(127)
    }
}

impl PausedCommand {
    /// Resumes the child; returns once it has become the command, or why that is refused.
    pub fn start(mut self) -> Result<RunningCommand, Problem> {
        self.release()?;
        self.check_refusal()?;
        Ok(RunningCommand { pid: self.pid })
    }

    /// Resumes the child, and does not wait for its exec.
    pub fn release(&mut self) -> Result<(), Problem> {
        self.gate
            .write_all(b".")
            .map_err(Problem::system("the observed command"))
    }

    /// Waits for the exec of the child; an error if the system refuses it.
    pub fn check_refusal(&mut self) -> Result<(), Problem> {
        let mut errno = Vec::new();
        // Its end of the pipe closes at the exec.
        self.refusal
            .read_to_end(&mut errno)
            .map_err(Problem::system("the observed command"))?;
        let Ok(bytes) = <[u8; 4]>::try_from(errno.as_slice()) else {
            return Ok(());
        };
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(bytes));
        Err(Problem::system("the command cannot be executed")(error))
    }
}

impl RunningCommand {
    /// Returns a descriptor that is readable when the command has ended.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: passes numbers only; the child was not reaped. The call returns a new descriptor.
        unsafe { owned(libc::syscall(libc::SYS_pidfd_open, self.pid, 0)) }
    }

    /// Waits for the end of the command.
    pub fn wait(&self) -> io::Result<End> {
        let (status, _) = child::reap(self.pid)?;
        signals::stop_forwarding();
        Ok(End {
            exit: status.code(),
            signal: status.signal(),
        })
    }
}

fn pipe() -> Result<(PipeReader, PipeWriter), Problem> {
    io::pipe().map_err(Problem::system("a pipe"))
}
