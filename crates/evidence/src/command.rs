//! The observed command: held before its exec until the observer is ready.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::ptr;

use serde::Serialize;

use crate::problem::Problem;
use crate::signals;

/// A child that waits to become the command.
pub struct Held {
    /// Its number.
    pub pid: libc::pid_t,
    gate: File,
    refusal: File,
}

/// A child that has become the command.
pub struct Running {
    /// Its number.
    pub pid: libc::pid_t,
}

/// How the command ended: one of the two is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct End {
    /// Its exit status.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl End {
    /// Reads what `wait` reported; `None` if the child has only stopped.
    pub fn of(status: libc::c_int) -> Option<Self> {
        if libc::WIFEXITED(status) {
            let exit = Some(libc::WEXITSTATUS(status));
            Some(Self { exit, signal: None })
        } else if libc::WIFSIGNALED(status) {
            let signal = Some(libc::WTERMSIG(status));
            Some(Self { exit: None, signal })
        } else {
            None
        }
    }
}

/// Starts a child that waits; it is killed if this process is.
///
/// # Errors
/// The command is empty or has a NUL in it, or the system refuses a pipe or a process.
pub fn hold(command: Vec<OsString>) -> Result<Held, Problem> {
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
    // What the terminal sends is for the command; we end with it. What others send is handed on.
    // A file of ours that grows beyond `ulimit -f` is an error of that file alone.
    // SAFETY: passes numbers only.
    let file_too_long = unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGQUIT, libc::SIG_IGN);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    // SAFETY: this process has one thread, so the child may do what it likes.
    match unsafe { libc::fork() } {
        -1 => Err(Problem::system(
            "a new process",
            &io::Error::last_os_error(),
        )),
        0 => {
            drop(gate_in);
            // SAFETY: it is what the last call has returned.
            unsafe { libc::signal(libc::SIGXFSZ, file_too_long) };
            become_command(&pointers, &gate_out, &refusal_in)
        }
        pid => {
            signals::forward_to(pid);
            Ok(Held {
                pid,
                gate: File::from(gate_in),
                refusal: File::from(refusal_out),
            })
        }
    }
}

fn become_command(words: &[*const libc::c_char], gate: &OwnedFd, refusal: &OwnedFd) -> ! {
    let mut byte = 0_u8;
    // SAFETY: `byte` is valid for writing, `words` ends with null and its strings with NUL.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::read(gate.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::signal(libc::SIGQUIT, libc::SIG_DFL);
            // Rust ignores it in its own programs.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::execvp(words[0], words.as_ptr());
        }
        let errno = *libc::__errno_location();
        libc::write(
            refusal.as_raw_fd(),
            (&raw const errno).cast(),
            size_of_val(&errno),
        );
        libc::_exit(127)
    }
}

impl Held {
    /// Lets it go on; `Running` once it has become the command.
    ///
    /// # Errors
    /// The command cannot be executed.
    pub fn start(mut self) -> Result<Running, Problem> {
        self.open_gate()?;
        self.check_refusal()?;
        Ok(Running { pid: self.pid })
    }

    /// Lets it go on, and does not wait for its exec.
    ///
    /// # Errors
    /// The pipe to it is broken.
    pub fn open_gate(&mut self) -> Result<(), Problem> {
        self.gate
            .write_all(b".")
            .map_err(|error| Problem::system("the observed command", &error))
    }

    /// Waits for its exec.
    ///
    /// # Errors
    /// The command cannot be executed.
    pub fn check_refusal(&mut self) -> Result<(), Problem> {
        let mut errno = Vec::new();
        // Its end of the pipe closes at the exec.
        self.refusal
            .read_to_end(&mut errno)
            .map_err(|error| Problem::system("the observed command", &error))?;
        match <[u8; 4]>::try_from(errno.as_slice()) {
            Err(_) => Ok(()),
            Ok(bytes) => Err(Problem::system(
                "the command cannot be executed",
                &io::Error::from_raw_os_error(i32::from_ne_bytes(bytes)),
            )),
        }
    }
}

impl Running {
    /// A descriptor that is readable when it has ended.
    ///
    /// # Errors
    /// What `pidfd_open` says.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: passes numbers only; the child was not reaped.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid, 0) };
        owned(descriptor)
    }

    /// Reaps it.
    ///
    /// # Errors
    /// What `waitpid` says.
    pub fn wait(&self) -> io::Result<End> {
        loop {
            let mut status = 0;
            // SAFETY: the status is valid for writing.
            if unsafe { libc::waitpid(self.pid, &raw mut status, 0) } < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            } else if let Some(end) = End::of(status) {
                signals::stop_forwarding();
                return Ok(end);
            }
        }
    }
}

/// Takes a descriptor that a system call has returned.
///
/// # Errors
/// The call has failed.
pub fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    let descriptor = RawFd::try_from(descriptor).map_err(io::Error::other)?;
    // SAFETY: the call returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Problem> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is valid for writing two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Problem::system("a pipe", &io::Error::last_os_error()));
    }
    // SAFETY: pipe2 returned two new descriptors that nobody else owns.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}
