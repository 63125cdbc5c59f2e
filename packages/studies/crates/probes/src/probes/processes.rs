//! `fork`, `exec`, `sh`: new processes, made by the fork server, a small static program.
//!
//! The cost of a fork depends on the memory to copy, so a fork of the probe would include its
//! memory. The fork server (`fork_server/`, built by `build.rs`) is in a memory file without a
//! name: no file remains, wherever the probe is stopped.

use std::ffi::c_uint;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use equipoise_reporting::problem::Problem;

use crate::child::die_with;
use crate::cpus::{hold, sides};
use crate::memory::room_for;
use crate::probe::{Class, OpenProbe, Parameter, Placement, Probe, ProbeOptions, Row};
use crate::system::{accepted, problem_of};

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
        make_children(options, Work::End(options.size))
    })
};

pub const EXEC: Probe = Probe {
    name: "exec",
    summary: "fork of a small static process, execve of a small static program that ends at once, waitpid",
    placements: &[Placement::None, Placement::SameCpu],
    needs: "memory files that can be executed",
    ..Probe::latency(Class::Process, |options| {
        make_children(options, Work::Execute)
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
    Ok(make_children(options, Work::Shell)?.with_fact("shell", shell_file()))
}

/// The file that `/bin/sh` is: dash, bash, busybox.
fn shell_file() -> String {
    std::fs::canonicalize("/bin/sh").map_or_else(
        |error| error.to_string(),
        |file| file.to_string_lossy().into_owned(),
    )
}

/// The program of the fork server; empty where it could not be built.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fork_server"));

/// Exit status of a child that did its work; no shell ends with it.
const DONE: i32 = 242;

const SHELL: &str = "/bin/sh";

/// Work of each child of the fork server.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// The child ends at once; the fork server holds some bytes of memory.
    End(u64),
    /// The child executes the program of the fork server, which ends at once.
    Execute,
    /// The child executes `/bin/sh -c` with the path of that program.
    Shell,
}

/// Opens a probe that makes children by the fork server.
fn make_children(options: &ProbeOptions, work: Work) -> Result<OpenProbe, Problem> {
    hold(sides(options.placement)?.measured)?;
    let mut server = ForkServer::start(work)?;
    let opened = OpenProbe::latency(move |count| server.children(count));
    Ok(opened.with_fact("small_program_bytes", PROGRAM.len().to_string()))
}

/// The fork server, which ends when dropped, and when the probe dies.
struct ForkServer {
    process: Child,
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    _program: File,
}

impl ForkServer {
    /// Starts the fork server; unavailable if its children cannot execute their program here.
    fn start(work: Work) -> Result<Self, Problem> {
        let program = memory_file()?;
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());
        let (mode, detail) = match work {
            Work::End(bytes) => ("fork", room_for(bytes)?.to_string()),
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
        unsafe { command.pre_exec(move || die_with(parent)) };
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

    /// Makes children, one after the other, and waits for each; every one must end as it should.
    fn children(&mut self, count: u64) -> Result<Duration, Problem> {
        let answer = self.ask(count).map_err(problem_of("the fork server"))?;
        let [nanoseconds, code, detail] = answer;
        let number = i32::try_from(detail).unwrap_or_default();
        let refused = |call| problem_of(call)(io::Error::from_raw_os_error(number));
        match code {
            0 => Ok(Duration::from_nanos(nanoseconds)),
            1 => Err(refused("fork")),
            2 => Err(refused("wait4")),
            4 => Err(refused("the memory to hold")),
            _ => Err(Problem::failure(format!(
                "a child ended with the wait status {detail:#x}, not with exit status {DONE}"
            ))),
        }
    }

    fn ask(&mut self, count: u64) -> io::Result<[u64; 3]> {
        if let Some(requests) = &mut self.requests {
            requests.write_all(&count.to_ne_bytes())?;
        }
        let mut number = || -> io::Result<u64> {
            let mut bytes = [0; 8];
            self.answers.read_exact(&mut bytes)?;
            Ok(u64::from_ne_bytes(bytes))
        };
        Ok([number()?, number()?, number()?])
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        // It ends when there can be no more requests.
        drop(self.requests.take());
        // There is nothing to do if waiting for the process fails.
        let _ = self.process.wait();
    }
}

/// Returns a file without a name, which can be executed through its descriptor.
fn memory_file() -> Result<File, Problem> {
    /// Flag of `memfd_create(2)`, from Linux 6.3 on.
    const MFD_EXEC: c_uint = 0x10;
    if PROGRAM.is_empty() {
        return Err(Problem::unavailable(
            "this Equipoise was built where there was no static C library, and the process probes \
             start a static program; build it anew with one (Debian: libc6-dev)",
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
    let descriptor = accepted("memfd_create", descriptor)?;
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
    fn every_child_is_made_and_ends_as_it_must() {
        for work in [Work::End(0), Work::End(1 << 20), Work::Execute, Work::Shell] {
            let mut server = ForkServer::start(work).expect("started");
            for count in [1, 3] {
                let took = server.children(count).expect("made");
                assert!(took > Duration::ZERO, "{work:?}");
            }
        }
    }

    #[test]
    fn what_does_not_do_its_work_is_unavailable() {
        for command in ["/bin/true", "/no/such/program"] {
            let problem = check_executable(&mut Command::new(command), command)
                .expect_err("it does not end as the small program does");
            assert!(problem.is_unavailable(), "{problem}");
        }
    }
}
