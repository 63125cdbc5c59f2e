//! Starts the observed command, which waits before its exec until the observer is ready.

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
    pub pid: libc::pid_t,
    /// A byte in this pipe resumes the child.
    start_pipe: PipeWriter,
    /// The child writes its errno here if the exec fails. The exec closes the pipe.
    error_pipe: PipeReader,
}

/// A child that has become the command.
pub struct RunningCommand {
    pub pid: libc::pid_t,
}

/// How the command ended: with an exit status or by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct End {
    pub exit: Option<i32>,
    pub signal: Option<i32>,
}

impl End {
    /// Returns the end from a status of `wait`; `None` if the child has only stopped.
    pub fn of(status: ExitStatus) -> Option<Self> {
        let (exit, signal) = (status.code(), status.signal());
        (exit.is_some() || signal.is_some()).then_some(Self { exit, signal })
    }
}

/// Starts a child that waits to become the command. If this process is killed, the child is, too.
pub fn start_paused(command: Vec<OsString>) -> Result<PausedCommand, Problem> {
    let arguments: Vec<CString> = command
        .into_iter()
        .map(|argument| CString::new(argument.into_vec()))
        .collect::<Result<_, _>>()
        .map_err(|_| Problem::usage("an argument of the command contains a NUL byte"))?;
    if arguments.is_empty() {
        return Err(Problem::usage("no command was given after --"));
    }
    let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(ptr::null());
    let (start_reader, start_writer) = pipe()?;
    let (error_reader, error_writer) = pipe()?;
    // The terminal sends its signals to the command, too. This process must end after the command.
    // If a file of this process exceeds `ulimit -f`, the write must fail without a signal.
    // SAFETY: passes numbers only.
    let file_size_handler = unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGQUIT, libc::SIG_IGN);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    // SAFETY: this process has one thread, so the child may use everything.
    let pid = check(unsafe { libc::fork() });
    match pid.map_err(Problem::system("no process can be started"))? {
        0 => {
            drop(start_writer);
            // SAFETY: the last call of `signal` returned this handler.
            unsafe { libc::signal(libc::SIGXFSZ, file_size_handler) };
            become_command(&pointers, &start_reader, &error_writer)
        }
        pid => {
            signals::forward_to(pid);
            Ok(PausedCommand {
                pid,
                start_pipe: start_writer,
                error_pipe: error_reader,
            })
        }
    }
}

/// In the child: waits for the byte in the pipe `start`, and becomes the command.
fn become_command(argv: &[*const libc::c_char], start: &PipeReader, error: &PipeWriter) -> ! {
    let mut byte = 0_u8;
    // SAFETY: `byte` is valid for writing, `argv` ends with null and its strings with NUL.
    unsafe {
        let _ = child::die_with_parent();
        if libc::read(start.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::signal(libc::SIGQUIT, libc::SIG_DFL);
            // Programs in Rust ignore SIGPIPE.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::execvp(argv[0], argv.as_ptr());
        }
        let errno = *libc::__errno_location();
        let bytes = size_of_val(&errno);
        libc::write(error.as_raw_fd(), (&raw const errno).cast(), bytes);
        libc::_exit(127)
    }
}

impl PausedCommand {
    /// Resumes the child and waits until it has become the command; an error if its exec fails.
    pub fn start(mut self) -> Result<RunningCommand, Problem> {
        self.release()?;
        self.wait_for_exec()?;
        Ok(RunningCommand { pid: self.pid })
    }

    /// Resumes the child without waiting for its exec.
    pub fn release(&mut self) -> Result<(), Problem> {
        self.start_pipe
            .write_all(b".")
            .map_err(Problem::system("the observed command"))
    }

    /// Waits for the exec of the child; an error if the exec fails.
    pub fn wait_for_exec(&mut self) -> Result<(), Problem> {
        let mut errno = Vec::new();
        self.error_pipe
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
    io::pipe().map_err(Problem::system("no pipe can be made"))
}
