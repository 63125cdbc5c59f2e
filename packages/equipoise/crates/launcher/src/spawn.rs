//! Starts a program without a shell, and without an allocation between clone and exec. The child
//! begins on the launcher's one CPU, which is awake. Just before its exec, it gets its own CPUs.

use std::ffi::{CStr, c_char, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use equipoise_kernel::call::owned;
use equipoise_kernel::child;
use equipoise_kernel::clock::monotonic_ns;
use equipoise_kernel::cpus::Cpus;

use crate::clone::{self, Stack};
use crate::protocol::Bytes;
use crate::settings::{Setting, Settings};
use crate::signals;

/// Standard streams of a child.
pub struct Streams {
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub error: OwnedFd,
}

/// A program to start, in the format that the kernel reads; prepared before the start.
pub struct Program<'a> {
    file: &'a CStr,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    working_folder: &'a CStr,
    streams: &'a Streams,
    signals_to_reset: &'a [libc::c_int],
    cpus: Option<Cpus>,
    settings: Settings,
    outcome: Outcome,
}

/// Errors of a start. The child writes them into the memory that it shares with the launcher.
struct Outcome {
    /// Number in `RESOURCES`, from 1, of the resource that failed; 0 for success.
    failed_resource: AtomicUsize,
    /// Error number of this resource.
    errno: AtomicI32,
    /// Error number if the child did not get the CPUs of the trial; 0 for success.
    affinity_errno: AtomicI32,
}

/// Resources that the child may fail to use.
const RESOURCES: [Resource; 6] = [
    Resource::Streams,
    Resource::WorkingFolder,
    Resource::Setting(Setting::Cpus),
    Resource::Setting(Setting::Addresses),
    Resource::Setting(Setting::User),
    Resource::Program,
];

/// Exit status of a child that could not execute its program. It is never reported.
const NOT_EXECUTED: libc::c_int = 127;

/// A process that executes its program.
pub struct Started {
    /// Process id, which is also the id of the process group.
    pub pid: libc::pid_t,
    /// Descriptor that is readable when all threads of the process have ended.
    pub process: OwnedFd,
    /// Time just before the start, by the monotonic clock.
    pub start_ns: u64,
    /// Error because of which the program may use only the launcher's one CPU.
    pub affinity_error: Option<io::Error>,
}

#[derive(Debug)]
pub struct StartError {
    /// Resource that could not be used.
    pub resource: Resource,
    pub error: io::Error,
}

/// A resource that a start needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Process,
    Streams,
    WorkingFolder,
    Program,
    Setting(Setting),
}

impl<'a> Program<'a> {
    /// Prepares the data that the kernel will read.
    pub fn new(
        file: &'a Bytes,
        arguments: &'a [Bytes],
        environment: &'a [Bytes],
        working_folder: &'a Bytes,
        streams: &'a Streams,
    ) -> Self {
        Self {
            file: file.as_c_str(),
            arguments: pointers(arguments),
            environment: pointers(environment),
            working_folder: working_folder.as_c_str(),
            streams,
            signals_to_reset: &[],
            cpus: None,
            settings: Settings::default(),
            outcome: Outcome {
                failed_resource: AtomicUsize::new(0),
                errno: AtomicI32::new(0),
                affinity_errno: AtomicI32::new(0),
            },
        }
    }

    /// Restores the default actions of these signals, which the launcher ignores, in the child.
    pub fn with_signals_to_reset(mut self, signals: &'a [libc::c_int]) -> Self {
        self.signals_to_reset = signals;
        self
    }

    /// Sets the CPUs of the trial; `None` leaves the child on the CPUs of the launcher.
    pub fn with_cpus(mut self, cpus: Option<Cpus>) -> Self {
        self.cpus = cpus;
        self
    }

    pub fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Starts the program, in a cgroup if one is given.
    pub fn start(
        &self,
        stack: &Stack,
        cgroup: Option<BorrowedFd<'_>>,
    ) -> Result<Started, StartError> {
        let argument = ptr::from_ref(self).cast_mut().cast::<c_void>();
        let start_ns = monotonic_ns();
        // SAFETY: `run_child` leaves by exec or _exit, allocates nothing, takes no lock and writes
        // only to the atomics of `outcome`. The parent sleeps until then, so `self` stays valid.
        let cloned = unsafe { clone::vfork_with(stack, cgroup, run_child, argument) };
        let (pid, process) = cloned.map_err(|error| StartError {
            resource: Resource::Process,
            error,
        })?;
        match self.outcome.failed_resource.load(Ordering::Relaxed) {
            0 => Ok(Started {
                pid,
                process,
                start_ns,
                affinity_error: match self.outcome.affinity_errno.load(Ordering::Relaxed) {
                    0 => None,
                    errno => Some(io::Error::from_raw_os_error(errno)),
                },
            }),
            number => {
                child::discard(pid);
                Err(StartError {
                    resource: RESOURCES[number - 1],
                    error: io::Error::from_raw_os_error(self.outcome.errno.load(Ordering::Relaxed)),
                })
            }
        }
    }

    /// Executes the program in the child, which shares the memory of the sleeping launcher. Returns
    /// only if it fails, with the resource that could not be used.
    fn become_program(&self) -> Resource {
        // SAFETY: only async-signal-safe calls. The parent keeps all descriptors and strings valid.
        unsafe {
            libc::setpgid(0, 0);
            // If the launcher itself is killed, no other process would end the trial.
            let _ = child::die_with_parent();
            if !self.connect_streams() {
                return Resource::Streams;
            }
            if libc::chdir(self.working_folder.as_ptr()) != 0 {
                return Resource::WorkingFolder;
            }
            signals::reset(self.signals_to_reset);
            // As late as possible, because the CPU so far is awake.
            if let Some(error) = self.cpus.and_then(|cpus| cpus.apply().err()) {
                let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                self.outcome.affinity_errno.store(errno, Ordering::Relaxed);
            }
            if let Err(setting) = self.settings.apply() {
                return Resource::Setting(setting);
            }
            libc::execve(
                self.file.as_ptr(),
                self.arguments.as_ptr(),
                self.environment.as_ptr(),
            );
        }
        Resource::Program
    }

    fn connect_streams(&self) -> bool {
        let streams = [
            &self.streams.input,
            &self.streams.output,
            &self.streams.error,
        ];
        (0..).zip(streams).all(|(number, stream)| {
            // SAFETY: passes numbers only. Every stream is above 2, so dup2 clears close-on-exec.
            unsafe { libc::dup2(stream.as_raw_fd(), number) == number }
        })
    }
}

/// Executes a `Program` in the child, and stores the error if that fails.
extern "C" fn run_child(argument: *mut c_void) -> libc::c_int {
    // SAFETY: `argument` is the Program that `start` passed and keeps.
    let program = unsafe { &*argument.cast::<Program<'_>>() };
    let unusable = program.become_program();
    let errno = io::Error::last_os_error().raw_os_error();
    let outcome = &program.outcome;
    let errno = errno.unwrap_or(libc::EINVAL);
    outcome.errno.store(errno, Ordering::Relaxed);
    let index = RESOURCES.iter().position(|known| *known == unusable);
    let number = index.unwrap_or(RESOURCES.len() - 1) + 1;
    outcome.failed_resource.store(number, Ordering::Relaxed);
    // SAFETY: ends the child at once, without running any function of the parent.
    unsafe { libc::_exit(NOT_EXECUTED) }
}

fn pointers(strings: &[Bytes]) -> Vec<*const c_char> {
    let pointers = strings.iter().map(|string| string.as_c_str().as_ptr());
    pointers.chain([ptr::null()]).collect()
}

pub fn open_input(path: &CStr) -> io::Result<OwnedFd> {
    open(path, libc::O_RDONLY)
}

/// Opens a file for a child's standard output; creates the file or empties it.
pub fn open_output(path: &CStr) -> io::Result<OwnedFd> {
    open(path, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC)
}

fn open(path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    const MODE: libc::c_uint = 0o666;
    let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: the path ends with NUL, and open returns a new descriptor.
    unsafe { owned(libc::open(path.as_ptr(), flags, MODE)) }
}
