//! Runs one trial, from its request to its report.

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

/// Time between two calls of `upkeep`.
const UPKEEP_NS: u64 = SECOND_NS / 10;

/// Minimum time for which the launcher is awake before a start at an instant. Sleeping ends late by
/// some 50 us.
const MIN_AWAKE_NS: u64 = 200_000;

/// Maximum time until an instant at which a trial starts.
pub const MAX_WAIT_NS: u64 = SECOND_NS;

/// Reason for each unknown value of a trial that did not start.
const NOT_STARTED: &str = "it could not be started";

/// Runner of trials, with the state that all trials of a campaign share.
pub struct TrialRunner {
    pub signals: Signals,
    pub stack: Stack,
    pub stderr: Capture,
    /// File for standard output, if the launcher counts its bytes.
    pub stdout: Capture,
    /// Cgroup of the trials, if the launcher could create one.
    pub leaf: Option<Leaf>,
    /// CPUs that each trial may use, if the launcher could read them.
    pub cpus: Option<Cpus>,
    /// Descriptor for the standard output of the trials that request `inherit`.
    pub inherit_stdout: Option<OwnedFd>,
    /// Nanoseconds for which the launcher keeps its CPU busy before each start.
    pub awake_ns: u64,
    pub counters: Counters,
    /// Features that do not work here, with the reasons.
    pub limitations: Vec<(&'static str, String)>,
}

impl TrialRunner {
    /// Runs one trial; returns `None` if the client closed the pipe or a signal arrived meanwhile.
    ///
    /// Starts the program, waits, reads clock and counters, reaps the program, and kills the
    /// remaining processes. `client` is the descriptor of the pipe. Errors of the trial are in the
    /// report.
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
        let oom_kills_before = self.leaf.as_ref().map(Leaf::out_of_memory_kills);
        let counters_before = self.counters.read();
        let Some(started) = self.start(request, &mut report) else {
            self.counters.report_unknown(NOT_STARTED, &mut report);
            self.report_output(request, &mut report);
            return Ok(Some(report));
        };
        report.pid = Some(started.pid);
        report.started_ns = Some(started.start_ns);
        let (ending, ended_ns) = self.wait(&started, request, client)?;
        if ending != Ending::Exited {
            report.stopped_by = contain::stopped_by(started.pid);
        }
        let counters_after = self.counters.read();
        report.wall_ns = Some(ended_ns - started.start_ns);
        contain::kill_trial(started.pid);
        self.allow_all_cpus(&mut report);
        account::report_end(&started, ending, &mut report)?;
        self.counters
            .report_increase(counters_before, counters_after, &mut report);
        let left_behind = contain::sweep(started.pid, self.leaf.as_ref());
        report.left_behind = left_behind.killed;
        if !left_behind.survivors.is_empty() {
            let reason = format!(
                "the processes {:?} did not end within {} s after SIGKILL",
                left_behind.survivors,
                KILL_TIMEOUT_NS / SECOND_NS
            );
            report.set_unknown("left_behind", reason);
        }
        if ending == Ending::Abandoned {
            return Ok(None);
        }
        report.timed_out = ending == Ending::TimedOut;
        if ending == Ending::Stopped {
            report.wall_ns = None;
            let reason = "it was stopped, and killed because nobody would continue it";
            report.set_unknown("wall_ns", reason);
        }
        self.report_output(request, &mut report);
        self.report_out_of_memory(oom_kills_before, &mut report);
        report.floor_rss_bytes =
            report.value_or_reason("floor_rss_bytes", account::own_peak_bytes());
        Ok(Some(report))
    }

    fn containment(&self) -> Containment {
        if self.leaf.is_some() {
            Containment::Cgroup
        } else {
            Containment::ProcessGroup
        }
    }

    /// Starts the program of a request; `None` if that failed, and the report has the reason. If
    /// the kernel refuses a start in a cgroup, this trial and all later trials start without one.
    fn start(&mut self, request: &Request, report: &mut Report) -> Option<Started> {
        let file = request.program.as_ref().or(request.argv.first())?;
        let streams = match self.open_streams(request) {
            Ok(streams) => streams,
            Err((name, error)) => {
                report_not_started(report, &name, &error);
                return None;
            }
        };
        let settings = match settings_of(request) {
            Ok(settings) => settings,
            Err(error) => {
                let name = name_of(Resource::Setting(Setting::Cpus), request, String::new());
                report_not_started(report, &name, &error);
                return None;
            }
        };
        let huge_pages = HugePages::set(request.huge_pages);
        if let Err(error) = &huge_pages {
            report_not_started(report, "its huge pages", error);
            return None;
        }
        let program = Program::new(
            file,
            &request.argv,
            &request.environment,
            &request.working_folder,
            &streams,
        )
        .with_signals_to_reset(&self.signals.ignored)
        .with_settings(settings)
        .with_cpus(self.stay_on_one_cpu(request.start_at_ns.and(settings.cpus), report));
        if let Some(start_ns) = request.start_at_ns {
            sleep_until(start_ns.saturating_sub(self.awake_ns.max(MIN_AWAKE_NS)));
            keep_cpu_busy_until(start_ns);
        } else {
            keep_cpu_busy_until(monotonic_ns() + self.awake_ns);
        }
        let cgroup = self.leaf.as_ref().map(Leaf::handle);
        let mut outcome = program.start(&self.stack, cgroup);
        if let Err(failure) = &outcome
            && failure.resource == Resource::Process
            && self.leaf.is_some()
            && !lacks_resources(&failure.error)
        {
            // Only clone3 starts a process in a cgroup, and a seccomp profile may refuse it.
            let reason = format!("clone3 into the cgroup: {}", failure.error);
            self.leaf = None;
            self.limitations.push(("cgroup", reason.clone()));
            report.set_unknown("cgroup", reason);
            report.containment = Containment::ProcessGroup;
            outcome = program.start(&self.stack, None);
        }
        match outcome {
            Ok(started) => {
                if let Some(error) = &started.affinity_error {
                    let reason = format!("the trial could use only one CPU: {error}");
                    report.set_unknown("affinity", reason);
                }
                Some(started)
            }
            Err(StartError { resource, error }) => {
                self.allow_all_cpus(report);
                report_not_started(report, &name_of(resource, request, file.to_text()), &error);
                None
            }
        }
    }

    /// Keeps the launcher on its current CPU, or on one of `preferred`; returns the CPUs for a
    /// child.
    fn stay_on_one_cpu(&self, preferred: Option<Cpus>, report: &mut Report) -> Option<Cpus> {
        let cpus = self.cpus?;
        // The kernel moves this thread to a preferred CPU before the call returns.
        let moved = preferred.map_or(Ok(()), |preferred| preferred.apply());
        match moved.and_then(|()| Cpus::current()?.apply()) {
            Ok(()) => Some(cpus),
            Err(error) => {
                let reason = format!("the launcher cannot stay on one CPU: {error}");
                report.set_unknown("affinity", reason);
                None
            }
        }
    }

    fn allow_all_cpus(&self, report: &mut Report) {
        if let Some(Err(error)) = self.cpus.map(|cpus| cpus.apply()) {
            let reason = format!("the launcher stays on one CPU: {error}");
            report.set_unknown("affinity", reason);
        }
    }

    /// Opens the standard streams of a trial. An error has the name of the stream.
    fn open_streams(&mut self, request: &Request) -> Result<Streams, (String, io::Error)> {
        let null = c"/dev/null";
        let (input, input_name) = match &request.input {
            Some(path) => (spawn::open_input(path.as_c_str()), path.to_text()),
            None => (spawn::open_input(null), "/dev/null".to_owned()),
        };
        let (output, output_name) = match &request.output {
            Output::Discard => (spawn::open_output(null), "/dev/null".to_owned()),
            Output::Count => (self.stdout.open_for_child(), "a temporary file".to_owned()),
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
                .stderr
                .open_for_child()
                .map_err(|error| ("a temporary file for standard error".to_owned(), error))?,
        })
    }

    /// Waits for the trial, its timeout or the end of the pipe; returns the ending and its time.
    fn wait(
        &mut self,
        started: &Started,
        request: &Request,
        client: RawFd,
    ) -> io::Result<(Ending, u64)> {
        let timeout_ns = nanoseconds(request.timeout_s);
        let deadline = started.start_ns.saturating_add(timeout_ns);
        let mut next_upkeep = started.start_ns + UPKEEP_NS;
        loop {
            let mut watched = [
                watch(started.process.as_raw_fd(), libc::POLLIN),
                watch(client, libc::POLLRDHUP),
                watch(self.signals.stop.as_raw_fd(), libc::POLLIN),
            ];
            let wake_time = deadline.min(next_upkeep);
            poll(&mut watched, Some(wake_time.saturating_sub(monotonic_ns())))?;
            let now = monotonic_ns();
            let [has_exited, client_closed, must_stop] = watched.map(|entry| entry.revents != 0);
            if has_exited {
                return Ok((Ending::Exited, now));
            }
            if client_closed || must_stop {
                return Ok((Ending::Abandoned, now));
            }
            if now >= deadline {
                return Ok((Ending::TimedOut, now));
            }
            if now >= next_upkeep {
                if contain::stopped_by(started.pid).is_some_and(is_terminal_stop) {
                    return Ok((Ending::Stopped, now));
                }
                self.upkeep(started.pid, request.error_cap_bytes);
                next_upkeep = monotonic_ns() + UPKEEP_NS;
            }
        }
    }

    /// Reaps ended orphans, and frees the disk space of output that is not reported.
    fn upkeep(&mut self, pid: libc::pid_t, error_cap_bytes: u32) {
        contain::reap_orphans(pid);
        // A failure is harmless: the next call frees the space.
        drop(self.stderr.trim(error_cap_bytes));
        drop(self.stdout.trim(0));
    }

    /// Reports the end of standard error, the lengths of the output, and whether the disk is full.
    fn report_output(&self, request: &Request, report: &mut Report) {
        let full_disk = || {
            let reason = self.stderr.full_disk_reason();
            reason.or_else(|| self.stdout.full_disk_reason())
        };
        if let Some(reason) = full_disk().filter(|_| report.exit != Some(0)) {
            report.set_unknown("output_room", reason);
        }
        let result = self.stderr.tail(request.error_cap_bytes);
        let tail = report.value_or_reason("error_tail", result);
        report.error_tail = text_of(&tail.unwrap_or_default());
        report.error_bytes = report.value_or_reason("error_bytes", self.stderr.len());
        if request.output == Output::Count {
            report.output_bytes = report.value_or_reason("output_bytes", self.stdout.len());
        } else {
            report.set_unknown("output_bytes", "standard output is not counted");
        }
    }

    /// Reports whether memory ran out. `before` has the kills for this reason before the trial.
    fn report_out_of_memory(&self, before: Option<Result<u64, String>>, report: &mut Report) {
        if report.signal != Some(libc::SIGKILL) || report.timed_out {
            report.out_of_memory = Some(false);
            return;
        }
        let after = self.leaf.as_ref().map(Leaf::out_of_memory_kills);
        match (before, after) {
            (Some(Ok(before)), Some(Ok(after))) => report.out_of_memory = Some(after > before),
            (Some(Err(reason)), _) | (_, Some(Err(reason))) => {
                report.set_unknown("out_of_memory", reason);
            }
            _ => report.set_unknown(
                "out_of_memory",
                "without a cgroup, nothing tells whether the kernel sent the signal",
            ),
        }
    }
}

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

/// Keeps this CPU busy until an instant. A virtual CPU that was just woken is slow in its next
/// system calls. This loop lets the CPU settle before the launcher reads the clock.
fn keep_cpu_busy_until(instant_ns: u64) {
    while monotonic_ns() < instant_ns {
        std::hint::spin_loop();
    }
}

/// Sleeps until an instant, so that other processes can use this CPU.
fn sleep_until(instant_ns: u64) {
    let duration = instant_ns.saturating_sub(monotonic_ns());
    std::thread::sleep(std::time::Duration::from_nanos(duration));
}

/// Whether the kernel stops a process by this signal because the process used a terminal. No other
/// process would continue it.
fn is_terminal_stop(signal: libc::c_int) -> bool {
    matches!(signal, libc::SIGTTIN | libc::SIGTTOU | libc::SIGTSTP)
}

/// Whether a process could not be started because memory or process ids ran out.
fn lacks_resources(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM))
}

fn report_not_started(report: &mut Report, name: &str, error: &io::Error) {
    let text = error.to_string();
    // Removes the number from "No such file or directory (os error 2)"; `start_errno` has the
    // number.
    let message = text.split(" (os error").next().unwrap_or_default();
    report.could_not_start = Some(format!("{name}: {message}"));
    report.start_errno = error.raw_os_error();
    report.set_usage_unknown(NOT_STARTED);
    for field in ["wall_ns", "floor_rss_bytes", "out_of_memory"] {
        report.set_unknown(field, NOT_STARTED);
    }
}

/// Returns the name of a resource in a message; `file` is the file of the program.
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

fn nanoseconds(seconds: f64) -> u64 {
    let max_seconds = f64::from(i32::MAX);
    let duration = std::time::Duration::from_secs_f64(seconds.clamp(0.0, max_seconds));
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_kept_busy_until_the_requested_instant() {
        let instant = monotonic_ns() + 1000;
        keep_cpu_busy_until(instant);
        assert!(monotonic_ns() >= instant);
    }

    #[test]
    fn a_wait_for_an_instant_ends_after_it() {
        let instant = monotonic_ns() + 1_000_000;
        sleep_until(instant);
        assert!(monotonic_ns() >= instant);
        // An instant in the past needs no wait.
        sleep_until(0);
    }
}
