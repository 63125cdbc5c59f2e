//! One trial, from its request to its report.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::account;
use crate::affinity::Cpus;
use crate::cgroup::Leaf;
use crate::clock::{self, SECOND_NS, monotonic_ns};
use crate::clone::Stack;
use crate::contain::{self, PATIENCE_NS};
use crate::conversation::{poll, watch};
use crate::counters::Counters;
use crate::ending::{Ending, enter_end, is_of_terminal};
use crate::output::Capture;
use crate::protocol::{Containment, Output, Report, Request, text_of};
use crate::settings::{HugePages, Setting, Settings};
use crate::signals::Signals;
use crate::spawn::{self, NotStarted, Program, Started, Streams, Thing};

/// How often the launcher looks after what a running trial writes.
const LOOK_AFTER_NS: u64 = SECOND_NS / 10;

const NOT_STARTED: &str = "it could not be started";

/// What every trial of a campaign shares.
pub struct Bench {
    /// The launcher's signals.
    pub signals: Signals,
    /// The stack on which children start.
    pub stack: Stack,
    /// Where standard error goes.
    pub errors: Capture,
    /// Where standard output goes if it is counted.
    pub counted: Capture,
    /// The cgroup, if trials are contained by one.
    pub leaf: Option<Leaf>,
    /// The CPUs that each trial may use, if they can be told.
    pub cpus: Option<Cpus>,
    /// The descriptor for trials that inherit standard output.
    pub inherit_stdout: Option<OwnedFd>,
    /// How long the CPU is kept awake before each start.
    pub awake_ns: u64,
    /// What is counted in each trial.
    pub counters: Counters,
    /// What did not work from the beginning, and why.
    pub lacks: Vec<(&'static str, String)>,
}

impl Bench {
    /// Runs one trial; `None` if whoever asked for it is gone, or a signal said to stop.
    ///
    /// `asker` hangs up when whoever asked is gone.
    ///
    /// # Errors
    /// What `poll` says. Whatever concerns the trial is in the report.
    pub fn run(&mut self, request: &Request, asker: RawFd) -> io::Result<Option<Report>> {
        if let Some(Err(reason)) = self.leaf.as_mut().map(Leaf::renew_if_killed) {
            self.leaf = None;
            self.lacks.push(("cgroup", reason));
        }
        let mut report = Report::blank(self.containment());
        report.unknown.extend(self.lacks.iter().cloned());
        let oom_before = self.leaf.as_ref().map(Leaf::out_of_memory_kills);
        let counted_before = self.counters.read();
        let started = self.start(request, &mut report);
        let Some(started) = started else {
            self.counters.enter_unknown(NOT_STARTED, &mut report);
            self.enter_output(request, &mut report);
            return Ok(Some(report));
        };
        report.pid = Some(started.pid);
        let (ending, ended_ns) = self.wait(&started, request, asker)?;
        if ending != Ending::Exited {
            report.stopped_by = contain::stopped_by(started.pid);
        }
        let counted_after = self.counters.read();
        report.wall_ns = Some(ended_ns - started.at_ns);
        contain::kill_trial(started.pid);
        self.let_go(&mut report);
        enter_end(&started, ending, &mut report)?;
        self.counters
            .enter(counted_before, counted_after, &mut report);
        let swept = contain::sweep(started.pid, self.leaf.as_ref());
        report.left_behind = swept.killed;
        if !swept.survivors.is_empty() {
            let reason = format!(
                "{:?} did not die of SIGKILL within {} s",
                swept.survivors,
                PATIENCE_NS / SECOND_NS
            );
            report.unknown.insert("left_behind", reason);
        }
        if ending == Ending::Abandoned {
            return Ok(None);
        }
        report.timed_out = ending == Ending::TimedOut;
        if ending == Ending::Stopped {
            report.wall_ns = None;
            let reason = "it was stopped, and killed because nobody would continue it";
            report.unknown.insert("wall_ns", reason.to_owned());
        }
        self.enter_output(request, &mut report);
        self.enter_out_of_memory(oom_before, &mut report);
        match account::own_peak_bytes() {
            Ok(bytes) => report.floor_rss_bytes = Some(bytes),
            Err(reason) => {
                report.unknown.insert("floor_rss_bytes", reason);
            }
        }
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
            Err((words, error)) => {
                could_not_start(report, &words, &error);
                return None;
            }
        };
        let settings = match settings_of(request) {
            Ok(settings) => settings,
            Err(error) => {
                let thing = name_of(Thing::Setting(Setting::Cpus), request, String::new());
                could_not_start(report, &thing, &error);
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
        clock::stay_awake(self.awake_ns);
        let cgroup = self.leaf.as_ref().map(Leaf::handle);
        let mut outcome = program.start(&self.stack, cgroup);
        if let Err(refusal) = &outcome
            && refusal.thing == Thing::Process
            && self.leaf.is_some()
            && !lacks_resources(&refusal.error)
        {
            // A seccomp profile may refuse clone3 where cgroups can be made: no other system call
            // starts a process in one.
            let reason = format!("clone3 into the cgroup: {}", refusal.error);
            self.leaf = None;
            self.lacks.push(("cgroup", reason.clone()));
            report.unknown.insert("cgroup", reason);
            report.containment = Containment::ProcessGroup;
            outcome = program.start(&self.stack, None);
        }
        match outcome {
            Ok(started) => {
                if let Some(error) = &started.held_on_one_cpu {
                    let reason = format!("the trial was held on one CPU: {error}");
                    report.unknown.insert("affinity", reason);
                }
                Some(started)
            }
            Err(NotStarted { thing, error }) => {
                self.let_go(report);
                could_not_start(report, &name_of(thing, request, file.to_text()), &error);
                None
            }
        }
    }

    /// Holds the launcher on the CPU where it is awake; says which CPUs a child gets back.
    fn hold(&self, report: &mut Report) -> Option<Cpus> {
        let cpus = self.cpus?;
        match Cpus::here().and_then(|here| here.apply()) {
            Ok(()) => Some(cpus),
            Err(error) => {
                let reason = format!("the launcher cannot stay on one CPU: {error}");
                report.unknown.insert("affinity", reason);
                None
            }
        }
    }

    fn let_go(&self, report: &mut Report) {
        if let Some(Err(error)) = self.cpus.map(|cpus| cpus.apply()) {
            let reason = format!("the launcher stays on one CPU: {error}");
            report.unknown.insert("affinity", reason);
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

    /// Waits for the end of the trial, its timeout, or the end of whoever asked for it.
    fn wait(
        &mut self,
        started: &Started,
        request: &Request,
        asker: RawFd,
    ) -> io::Result<(Ending, u64)> {
        let deadline = started.at_ns.saturating_add(nanoseconds(request.timeout_s));
        let mut look_after = started.at_ns + LOOK_AFTER_NS;
        loop {
            let mut watched = [
                watch(started.process.as_raw_fd(), libc::POLLIN),
                watch(asker, libc::POLLRDHUP),
                watch(self.signals.stop.as_raw_fd(), libc::POLLIN),
            ];
            let until = deadline.min(look_after);
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
            if now >= look_after {
                if contain::stopped_by(started.pid).is_some_and(is_of_terminal) {
                    return Ok((Ending::Stopped, now));
                }
                self.look_after(started.pid, request.error_cap_bytes);
                look_after = monotonic_ns() + LOOK_AFTER_NS;
            }
        }
    }

    fn look_after(&mut self, pid: libc::pid_t, error_cap_bytes: u32) {
        contain::reap_orphans(pid);
        // Room that could not be given back now is given back at the next look, or after the
        // trial; the count stays right either way.
        drop(self.errors.trim(error_cap_bytes));
        drop(self.counted.trim(0));
    }

    fn enter_output(&self, request: &Request, report: &mut Report) {
        let mut lack = |field, error: &dyn std::fmt::Display| {
            report.unknown.insert(field, error.to_string());
        };
        match self.errors.tail(request.error_cap_bytes) {
            Ok(bytes) => report.error_tail = text_of(&bytes),
            Err(error) => lack("error_tail", &error),
        }
        match self.errors.len() {
            Ok(bytes) => report.error_bytes = Some(bytes),
            Err(error) => lack("error_bytes", &error),
        }
        if request.output != Output::Count {
            lack("output_bytes", &"standard output is not counted");
            return;
        }
        match self.counted.len() {
            Ok(bytes) => report.output_bytes = Some(bytes),
            Err(error) => lack("output_bytes", &error),
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
                report.unknown.insert("out_of_memory", reason);
            }
            _ => {
                let reason = "who sent the signal is known only in a cgroup";
                report.unknown.insert("out_of_memory", reason.to_owned());
            }
        }
    }
}

/// The settings of the trial's process.
///
/// # Errors
/// The CPUs cannot be named to the kernel.
fn settings_of(request: &Request) -> io::Result<Settings> {
    Ok(Settings {
        cpus: request.cpus.as_deref().map(Cpus::of).transpose()?,
        random_addresses: request.random_addresses,
        user: request.user,
    })
}

/// Whether a process could not be started for want of memory or of process numbers.
fn lacks_resources(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM))
}

fn could_not_start(report: &mut Report, thing: &str, error: &io::Error) {
    let said = error.to_string();
    // "No such file or directory (os error 2)": the number has a field of its own.
    let words = said.split(" (os error").next().unwrap_or_default();
    report.could_not_start = Some(format!("{thing}: {words}"));
    report.start_errno = error.raw_os_error();
    report.usage_unknown(NOT_STARTED);
    for field in ["wall_ns", "floor_rss_bytes", "out_of_memory"] {
        report.unknown.insert(field, NOT_STARTED.to_owned());
    }
}

fn name_of(thing: Thing, request: &Request, file: String) -> String {
    match thing {
        Thing::Process => "a new process".to_owned(),
        Thing::Streams => "the standard streams".to_owned(),
        Thing::WorkingFolder => format!("working folder {}", request.working_folder.to_text()),
        Thing::Program => file,
        Thing::Setting(Setting::Cpus) => {
            format!("CPUs {:?}", request.cpus.as_deref().unwrap_or_default())
        }
        Thing::Setting(Setting::Addresses) => "the randomisation of its addresses".to_owned(),
        Thing::Setting(Setting::User) => "another user".to_owned(),
    }
}

/// Seconds as nanoseconds; what no clock reaches counts as for ever.
fn nanoseconds(seconds: f64) -> u64 {
    let longest = f64::from(i32::MAX);
    let span = std::time::Duration::from_secs_f64(seconds.clamp(0.0, longest));
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
