//! One trial, from its request to its report.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use equipoise_kernel::clock::{SECOND_NS, monotonic_ns};
use equipoise_kernel::cpus::Cpus;

use crate::account::{self, Ending};
use crate::cgroup::Leaf;
use crate::clone::Stack;
use crate::contain::{self, KILL_TIMEOUT_NS};
use crate::conversation::{poll, watch};
use crate::counters::Counters;
use crate::output::Capture;
use crate::protocol::{Containment, Output, Report, Request, text_of};
use crate::settings::{HugePages, Setting, Settings};
use crate::signals::Signals;
use crate::spawn::{self, Program, Resource, StartError, Started, Streams};

/// How often the launcher attends to the output of a running trial.
const UPKEEP_NS: u64 = SECOND_NS / 10;

const NOT_STARTED: &str = "it could not be started";

/// Runs the trials of a campaign, one after the other.
pub struct TrialRunner {
    /// Signals of the launcher.
    pub signals: Signals,
    /// Stack on which children start.
    pub stack: Stack,
    /// File for standard error.
    pub errors: Capture,
    /// File for standard output that is counted.
    pub counted: Capture,
    /// Cgroup, if one contains the trials.
    pub leaf: Option<Leaf>,
    /// CPUs that each trial may use, if they could be read.
    pub cpus: Option<Cpus>,
    /// Descriptor for trials that inherit standard output.
    pub inherit_stdout: Option<OwnedFd>,
    /// Nanoseconds for which the CPU is kept awake before each start.
    pub awake_ns: u64,
    /// Counters of each trial.
    pub counters: Counters,
    /// Features that this launcher lacks, with the reasons.
    pub limitations: Vec<(&'static str, String)>,
}

impl TrialRunner {
    /// Runs one trial; `None` if the other side of the pipe is gone, or a signal arrived.
    ///
    /// `client` hangs up when the other side is gone. The only error is that of `poll`: errors of
    /// the trial are in the report.
    pub fn run(&mut self, request: &Request, client: RawFd) -> io::Result<Option<Report>> {
        if let Some(Err(reason)) = self.leaf.as_mut().map(Leaf::renew_if_killed) {
            self.leaf = None;
            self.limitations.push(("cgroup", reason));
        }
        let mut report = Report {
            containment: self.containment(),
            unknown: self.limitations.iter().cloned().collect(),
            ..Report::default()
        };
        let oom_before = self.leaf.as_ref().map(Leaf::out_of_memory_kills);
        let counted_before = self.counters.read();
        let Some(started) = self.start(request, &mut report) else {
            self.counters.enter_unknown(NOT_STARTED, &mut report);
            self.enter_output(request, &mut report);
            return Ok(Some(report));
        };
        report.pid = Some(started.pid);
        let (ending, ended_ns) = self.wait(&started, request, client)?;
        if ending != Ending::Exited {
            report.stopped_by = contain::stopped_by(started.pid);
        }
        let counted_after = self.counters.read();
        report.wall_ns = Some(ended_ns - started.at_ns);
        contain::kill_trial(started.pid);
        self.release(&mut report);
        account::enter_end(&started, ending, &mut report)?;
        self.counters
            .enter(counted_before, counted_after, &mut report);
        let sweep = contain::sweep(started.pid, self.leaf.as_ref());
        report.left_behind = sweep.killed;
        if !sweep.survivors.is_empty() {
            let reason = format!(
                "{:?} did not die of SIGKILL within {} s",
                sweep.survivors,
                KILL_TIMEOUT_NS / SECOND_NS
            );
            report.lacks("left_behind", reason);
        }
        if ending == Ending::Abandoned {
            return Ok(None);
        }
        report.timed_out = ending == Ending::TimedOut;
        if ending == Ending::Stopped {
            report.wall_ns = None;
            let reason = "it was stopped, and killed because nobody would continue it";
            report.lacks("wall_ns", reason);
        }
        self.enter_output(request, &mut report);
        self.enter_out_of_memory(oom_before, &mut report);
        report.floor_rss_bytes = report.value("floor_rss_bytes", account::own_peak_bytes());
        Ok(Some(report))
    }

    fn containment(&self) -> Containment {
        if self.leaf.is_some() {
            Containment::Cgroup
        } else {
            Containment::ProcessGroup
        }
    }

    fn start(&mut self, request: &Request, report: &mut Report) -> Option<Started> {
        let file = request.program.as_ref().or(request.argv.first())?;
        let streams = match self.streams(request) {
            Ok(streams) => streams,
            Err((name, error)) => {
                could_not_start(report, &name, &error);
                return None;
            }
        };
        let settings = match settings_of(request) {
            Ok(settings) => settings,
            Err(error) => {
                let name = name_of(Resource::Setting(Setting::Cpus), request, String::new());
                could_not_start(report, &name, &error);
                return None;
            }
        };
        let huge_pages = HugePages::set(request.huge_pages);
        if let Err(error) = &huge_pages {
            could_not_start(report, "its huge pages", error);
            return None;
        }
        let program = Program::new(
            file,
            &request.argv,
            &request.environment,
            &request.working_folder,
            &streams,
        )
        .resetting(&self.signals.ignored)
        .with(settings)
        .on(self.hold(report));
        stay_awake(self.awake_ns);
        let cgroup = self.leaf.as_ref().map(Leaf::handle);
        let mut outcome = program.start(&self.stack, cgroup);
        if let Err(refusal) = &outcome
            && refusal.resource == Resource::Process
            && self.leaf.is_some()
            && !lacks_resources(&refusal.error)
        {
            // A seccomp profile may refuse clone3 although cgroups can be made; no other system
            // call starts a process in a cgroup.
            let reason = format!("clone3 into the cgroup: {}", refusal.error);
            self.leaf = None;
            self.limitations.push(("cgroup", reason.clone()));
            report.lacks("cgroup", reason);
            report.containment = Containment::ProcessGroup;
            outcome = program.start(&self.stack, None);
        }
        match outcome {
            Ok(started) => {
                if let Some(error) = &started.held_on_one_cpu {
                    let reason = format!("the trial was held on one CPU: {error}");
                    report.lacks("affinity", reason);
                }
                Some(started)
            }
            Err(StartError { resource, error }) => {
                self.release(report);
                could_not_start(report, &name_of(resource, request, file.to_text()), &error);
                None
            }
        }
    }

    /// Holds the launcher on the CPU where it is awake, and returns the CPUs for a child.
    fn hold(&self, report: &mut Report) -> Option<Cpus> {
        let cpus = self.cpus?;
        match Cpus::current().and_then(|cpu| cpu.apply()) {
            Ok(()) => Some(cpus),
            Err(error) => {
                let reason = format!("the launcher cannot stay on one CPU: {error}");
                report.lacks("affinity", reason);
                None
            }
        }
    }

    /// Lets the launcher run on all of its CPUs again.
    fn release(&self, report: &mut Report) {
        if let Some(Err(error)) = self.cpus.map(|cpus| cpus.apply()) {
            let reason = format!("the launcher stays on one CPU: {error}");
            report.lacks("affinity", reason);
        }
    }

    fn streams(&mut self, request: &Request) -> Result<Streams, (String, io::Error)> {
        let nothing = c"/dev/null";
        let (input, input_name) = match &request.input {
            Some(path) => (spawn::open_input(path.as_c_str()), path.to_text()),
            None => (spawn::open_input(nothing), "/dev/null".to_owned()),
        };
        let (output, output_name) = match &request.output {
            Output::Discard => (spawn::open_output(nothing), "/dev/null".to_owned()),
            Output::Count => (self.counted.open_for_child(), "a temporary file".to_owned()),
            Output::File { path } => (spawn::open_output(path.as_c_str()), path.to_text()),
            Output::Inherit => (
                match &self.inherit_stdout {
                    Some(descriptor) => descriptor.try_clone(),
                    None => Err(io::Error::from_raw_os_error(libc::EBADF)),
                },
                "the standard output to inherit".to_owned(),
            ),
        };
        Ok(Streams {
            input: input.map_err(|error| (format!("input {input_name}"), error))?,
            output: output.map_err(|error| (format!("output {output_name}"), error))?,
            error: self
                .errors
                .open_for_child()
                .map_err(|error| ("a temporary file for standard error".to_owned(), error))?,
        })
    }

    /// Waits for the end of the trial, its timeout, or the end of the other side of the pipe.
    fn wait(
        &mut self,
        started: &Started,
        request: &Request,
        client: RawFd,
    ) -> io::Result<(Ending, u64)> {
        let deadline = started.at_ns.saturating_add(nanoseconds(request.timeout_s));
        let mut upkeep_at = started.at_ns + UPKEEP_NS;
        loop {
            let mut watched = [
                watch(started.process.as_raw_fd(), libc::POLLIN),
                watch(client, libc::POLLRDHUP),
                watch(self.signals.stop.as_raw_fd(), libc::POLLIN),
            ];
            let until = deadline.min(upkeep_at);
            poll(&mut watched, Some(until.saturating_sub(monotonic_ns())))?;
            let now = monotonic_ns();
            if watched[0].revents != 0 {
                return Ok((Ending::Exited, now));
            }
            if watched[1].revents != 0 || watched[2].revents != 0 {
                return Ok((Ending::Abandoned, now));
            }
            if now >= deadline {
                return Ok((Ending::TimedOut, now));
            }
            if now >= upkeep_at {
                if contain::stopped_by(started.pid).is_some_and(is_terminal_stop) {
                    return Ok((Ending::Stopped, now));
                }
                self.upkeep(started.pid, request.error_cap_bytes);
                upkeep_at = monotonic_ns() + UPKEEP_NS;
            }
        }
    }

    /// Reaps orphans, and gives back the room of output that is not kept.
    fn upkeep(&mut self, pid: libc::pid_t, error_cap_bytes: u32) {
        contain::reap_orphans(pid);
        // Room that is not given back now is given back later; the count is right either way.
        drop(self.errors.trim(error_cap_bytes));
        drop(self.counted.trim(0));
    }

    fn enter_output(&self, request: &Request, report: &mut Report) {
        let is_full = || self.errors.why_full().or_else(|| self.counted.why_full());
        if let Some(reason) = is_full().filter(|_| report.exit != Some(0)) {
            report.lacks("output_room", reason);
        }
        let tail = self.errors.tail(request.error_cap_bytes);
        let tail = report.value("error_tail", tail).unwrap_or_default();
        report.error_tail = text_of(&tail);
        report.error_bytes = report.value("error_bytes", self.errors.len());
        if request.output == Output::Count {
            report.output_bytes = report.value("output_bytes", self.counted.len());
        } else {
            report.lacks("output_bytes", "standard output is not counted");
        }
    }

    fn enter_out_of_memory(&self, before: Option<Result<u64, String>>, report: &mut Report) {
        if report.signal != Some(libc::SIGKILL) || report.timed_out {
            report.out_of_memory = Some(false);
            return;
        }
        let after = self.leaf.as_ref().map(Leaf::out_of_memory_kills);
        match (before, after) {
            (Some(Ok(before)), Some(Ok(after))) => report.out_of_memory = Some(after > before),
            (Some(Err(reason)), _) | (_, Some(Err(reason))) => {
                report.lacks("out_of_memory", reason);
            }
            _ => report.lacks(
                "out_of_memory",
                "who sent the signal is known only in a cgroup",
            ),
        }
    }
}

/// Returns the settings of the trial's process; an error if the kernel cannot have such CPUs.
fn settings_of(request: &Request) -> io::Result<Settings> {
    Ok(Settings {
        cpus: request.cpus.as_deref().map(cpus_of).transpose()?,
        random_addresses: request.random_addresses,
        user: request.user,
    })
}

fn cpus_of(numbers: &[u32]) -> io::Result<Cpus> {
    let numbers = numbers.iter().copied().map(usize::try_from);
    Cpus::from_numbers(numbers.map(|number| number.unwrap_or(usize::MAX)))
}

/// Keeps this CPU awake for some nanoseconds.
///
/// A virtual CPU that has just been woken runs its next system calls several times slower; spinning
/// lets it (and the scheduler of the host) settle before the clock is read.
fn stay_awake(duration_ns: u64) {
    let end = monotonic_ns() + duration_ns;
    while monotonic_ns() < end {
        std::hint::spin_loop();
    }
}

/// Whether the signal is one by which the kernel stops a process because of a terminal: no process
/// continues it.
fn is_terminal_stop(signal: libc::c_int) -> bool {
    matches!(signal, libc::SIGTTIN | libc::SIGTTOU | libc::SIGTSTP)
}

/// Whether a process could not be started for want of memory or of process numbers.
fn lacks_resources(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM))
}

fn could_not_start(report: &mut Report, name: &str, error: &io::Error) {
    let message = error.to_string();
    // "No such file or directory (os error 2)": the number has a field of its own.
    let message = message.split(" (os error").next().unwrap_or_default();
    report.could_not_start = Some(format!("{name}: {message}"));
    report.start_errno = error.raw_os_error();
    report.usage_unknown(NOT_STARTED);
    for field in ["wall_ns", "floor_rss_bytes", "out_of_memory"] {
        report.lacks(field, NOT_STARTED);
    }
}

fn name_of(resource: Resource, request: &Request, file: String) -> String {
    match resource {
        Resource::Process => "a new process".to_owned(),
        Resource::Streams => "the standard streams".to_owned(),
        Resource::WorkingFolder => format!("working folder {}", request.working_folder.to_text()),
        Resource::Program => file,
        Resource::Setting(Setting::Cpus) => {
            format!("CPUs {:?}", request.cpus.as_deref().unwrap_or_default())
        }
        Resource::Setting(Setting::Addresses) => "the randomisation of its addresses".to_owned(),
        Resource::Setting(Setting::User) => "another user".to_owned(),
    }
}

/// Returns seconds as nanoseconds; a longer time than any clock's range has no end.
fn nanoseconds(seconds: f64) -> u64 {
    let longest = f64::from(i32::MAX);
    let span = std::time::Duration::from_secs_f64(seconds.clamp(0.0, longest));
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_stays_awake_for_the_requested_time() {
        let before = monotonic_ns();
        stay_awake(1000);
        assert!(monotonic_ns() >= before + 1000);
    }
}
