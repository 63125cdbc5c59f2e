//! `fork`, `exec`, `sh`: the fork server, a small static program, creates processes.
//!
//! A fork copies page tables, so a fork of the probe would include the probe's memory. The fork
//! server (`fork_server/`, built by `build.rs`) is in a memory file without a name. So no file
//! remains if the probe is killed.

use std::ffi::c_uint;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use equipoise_reporting::problem::Problem;

use crate::child::end_with_parent;
use crate::cpus::{pin_thread, side_cpus};
use crate::memory::check_free_memory;
use crate::probe::{Class, OpenProbe, Parameter, Placement, Probe, ProbeOptions, Row};
use crate::system::{check_negative, problem_of};

/// Memory of the row `fork_100mb`.
const HUNDRED_MEGABYTES: u64 = 100 << 20;

pub const FORK: Probe = Probe {
    name: "fork",
    summary: "fork of a small static process, _exit of the child, waitpid",
    placements: &[Placement::None, Placement::SameCpu],
    size: Some(Parameter {
        summary: "bytes of memory that the process holds, in pages of the smallest kind",
        default: 0,
        minimum: 0,
        maximum: 1 << 40,
    }),
    needs: "memory files that can be executed",
    rows: &[Row::PLAIN, Row::named("_100mb").of_size(HUNDRED_MEGABYTES)],
    ..Probe::latency(Class::Process, |options| {
        open_fork_server(options, Work::End(options.size))
    })
};

pub const EXEC: Probe = Probe {
    name: "exec",
    summary: "fork of a small static process, execve of a small static program that ends at once, waitpid",
    placements: &[Placement::None, Placement::SameCpu],
    needs: "memory files that can be executed",
    ..Probe::latency(Class::Process, |options| {
        open_fork_server(options, Work::Execute)
    })
};

pub const SH: Probe = Probe {
    name: "sh",
    summary: "as exec, through /bin/sh -c",
    placements: &[Placement::None, Placement::SameCpu],
    needs: "/bin/sh, and memory files that can be executed",
    ..Probe::latency(Class::Process, open_sh)
};

fn open_sh(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    Ok(open_fork_server(options, Work::Shell)?.with_fact("shell", shell_file()))
}

/// Returns the path of the program behind `/bin/sh`, such as dash, bash or busybox.
fn shell_file() -> String {
    std::fs::canonicalize("/bin/sh").map_or_else(
        |error| error.to_string(),
        |file| file.to_string_lossy().into_owned(),
    )
}

/// The program of the fork server; empty if it could not be built.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fork_server"));
/// Exit status of a child that succeeded; no shell returns this status.
const DONE: i32 = 242;
// Error codes of the fork server (`fork_server/main.rs`).
const NO_ERROR: u64 = 0;
const FORK_FAILED: u64 = 1;
const WAIT_FAILED: u64 = 2;
const NO_MEMORY: u64 = 4;
const SHELL: &str = "/bin/sh";

/// What each child does.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// The child ends at once; the fork server has allocated some bytes of memory.
    End(u64),
    /// The child executes the program of the fork server, which ends at once.
    Execute,
    /// The child executes `/bin/sh -c` with the path of the program of the fork server.
    Shell,
}

/// Returns a probe whose operation is one child of the fork server.
fn open_fork_server(options: &ProbeOptions, work: Work) -> Result<OpenProbe, Problem> {
    pin_thread(side_cpus(options.placement)?.measured)?;
    let mut server = ForkServer::start(work)?;
    let probe = OpenProbe::latency(move |count| server.create_children(count));
    Ok(probe.with_fact("small_program_bytes", PROGRAM.len().to_string()))
}

/// The fork server. It ends when this is dropped, and when the probe dies.
struct ForkServer {
    process: Child,
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    _program: File,
}

impl ForkServer {
    /// Starts the fork server. It is an error if its children cannot execute their program here.
    fn start(work: Work) -> Result<Self, Problem> {
        let program = memory_file()?;
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());
        let (mode, detail) = match work {
            Work::End(bytes) => ("fork", check_free_memory(bytes)?.to_string()),
            Work::Execute => ("exec", path.clone()),
            Work::Shell => ("sh", path.clone()),
        };
        check_executable(&mut Command::new(&path), "a program in a memory file")?;
        if matches!(work, Work::Shell) {
            check_executable(Command::new(SHELL).args(["-c", &path]), SHELL)?;
        }
        let parent = std::process::id();
        let mut command = Command::new(&path);
        command
            .args([mode, &detail])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // SAFETY: two system calls, which allocate nothing and take no lock.
        unsafe { command.pre_exec(move || end_with_parent(parent)) };
        let mut process = command.spawn().map_err(problem_of("the fork server"))?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            unreachable!("both are pipes");
        };
        Ok(Self {
            process,
            requests: Some(requests),
            answers,
            _program: program,
        })
    }

    /// Creates children one after the other, and returns the time. Each must exit with `DONE`.
    fn create_children(&mut self, count: u64) -> Result<Duration, Problem> {
        let answer = self.request(count).map_err(problem_of("the fork server"))?;
        let [nanoseconds, code, detail] = answer;
        let error_number = i32::try_from(detail).unwrap_or_default();
        let problem = |call| problem_of(call)(io::Error::from_raw_os_error(error_number));
        match code {
            NO_ERROR => Ok(Duration::from_nanos(nanoseconds)),
            FORK_FAILED => Err(problem("fork")),
            WAIT_FAILED => Err(problem("wait4")),
            NO_MEMORY => Err(problem("the memory of --size")),
            _ => Err(Problem::failure(format!(
                "a child ended with the wait status {detail:#x}, not with exit status {DONE}"
            ))),
        }
    }

    fn request(&mut self, count: u64) -> io::Result<[u64; 3]> {
        if let Some(requests) = &mut self.requests {
            requests.write_all(&count.to_ne_bytes())?;
        }
        let mut read_number = || -> io::Result<u64> {
            let mut bytes = [0; 8];
            self.answers.read_exact(&mut bytes)?;
            Ok(u64::from_ne_bytes(bytes))
        };
        Ok([read_number()?, read_number()?, read_number()?])
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        // The fork server ends when its standard input is closed.
        drop(self.requests.take());
        // If the wait fails, there is nothing to do.
        let _ = self.process.wait();
    }
}

/// Returns a memory file with the program. It can be executed through its descriptor.
fn memory_file() -> Result<File, Problem> {
    /// Flag of `memfd_create(2)`, from Linux 6.3 on.
    const MFD_EXEC: c_uint = 0x10;
    if PROGRAM.is_empty() {
        return Err(Problem::unavailable(
            "this Equipoise was built without a static C library, which the probes of processes \
             need; install one (Debian: libc6-dev) and build Equipoise again",
        ));
    }
    let create = |flags: c_uint| {
        // SAFETY: the name ends with a null byte.
        unsafe { libc::memfd_create(c"equipoise-fork".as_ptr(), flags) }
    };
    let mut descriptor = create(MFD_EXEC);
    if descriptor < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        descriptor = create(0);
    }
    let descriptor = check_negative("memfd_create", descriptor)?;
    // SAFETY: a new descriptor without another owner.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(PROGRAM)
        .map_err(problem_of("a memory file"))?;
    Ok(file)
}

fn check_executable(command: &mut Command, name: &str) -> Result<(), Problem> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| Problem::unavailable(format!("{name} cannot be executed: {error}")))?;
    if status.code() == Some(DONE) {
        return Ok(());
    }
    Err(Problem::unavailable(format!(
        "{name} did not do its work: {status}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_every_kind_of_work_succeed() {
        for work in [Work::End(0), Work::End(1 << 20), Work::Execute, Work::Shell] {
            let mut server = ForkServer::start(work).expect("started");
            for count in [1, 3] {
                let elapsed = server.create_children(count).expect("created");
                assert!(elapsed > Duration::ZERO, "{work:?}");
            }
        }
    }

    #[test]
    fn a_program_that_fails_is_unavailable() {
        for command in ["/bin/true", "/no/such/program"] {
            let problem = check_executable(&mut Command::new(command), command)
                .expect_err("it does not end as the small program does");
            assert!(problem.is_unavailable(), "{problem}");
        }
    }
}
