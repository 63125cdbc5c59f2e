//! Sets the launcher up, and answers requests one by one.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

use equipoise_kernel::clock::monotonic_ns;
use equipoise_kernel::cpus::Cpus;

use crate::cgroup::Leaf;
use crate::clone::Stack;
use crate::contain;
use crate::conversation::{Conversation, Message};
use crate::counters::Counters;
use crate::memory;
use crate::options::{ContainmentChoice, Options};
use crate::output::Capture;
use crate::protocol::{Refusal, Request};
use crate::signals::Signals;
use crate::trial::{MAX_WAIT_NS, TrialRunner};

/// Answers requests until the client closes the pipe or a signal stops the launcher.
pub fn serve(options: &Options) -> io::Result<()> {
    let mut runner = set_up(options)?;
    if let Err(reason) = memory::shrink() {
        runner.limitations.push(("shrink", reason));
    }
    let mut conversation = Conversation::new();
    loop {
        let Message::Line(line) = conversation.receive(runner.signals.stop.as_fd())? else {
            return Ok(());
        };
        match parse_request(line) {
            Ok(request) => {
                let Some(report) = runner.run(&request, conversation.input_descriptor())? else {
                    return Ok(());
                };
                conversation.send(&report)?;
            }
            Err(refused) => conversation.send(&Refusal { refused })?,
        }
    }
}

fn parse_request(line: &[u8]) -> Result<Request, String> {
    let request: Request = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if request.argv.is_empty() {
        return Err("argv is empty: there is nothing to run".to_owned());
    }
    if !request.timeout_s.is_finite() || request.timeout_s <= 0.0 {
        return Err("timeout_s is not a positive number of seconds".to_owned());
    }
    let max_start_ns = monotonic_ns().saturating_add(MAX_WAIT_NS);
    if request
        .start_at_ns
        .is_some_and(|start| start > max_start_ns)
    {
        return Err("start_at_ns is more than a second away".to_owned());
    }
    Ok(request)
}

fn set_up(options: &Options) -> io::Result<TrialRunner> {
    leave_terminal();
    keep_descriptors_from_children();
    contain::adopt_orphans()?;
    let mut limitations = Vec::new();
    if let Err(reason) = memory::prefer_trials_for_oom_kill() {
        limitations.push(("oom_score_adj", reason));
    }
    let cpus = Cpus::allowed().map_err(|error| {
        let reason = format!("the allowed CPUs cannot be read: {error}");
        limitations.push(("affinity", reason));
    });
    let identity = options.identity.as_deref();
    let leaf = match options.containment {
        ContainmentChoice::Auto => Some(Leaf::new(identity).and_then(Leaf::if_neutral)),
        ContainmentChoice::Cgroup => Some(Leaf::new(identity)),
        ContainmentChoice::ProcessGroup => None,
    };
    let leaf = leaf.and_then(|leaf| {
        leaf.map_err(|reason| limitations.push(("cgroup", reason)))
            .ok()
    });
    Ok(TrialRunner {
        signals: Signals::set_up()?,
        stack: Stack::new()?,
        stderr: Capture::new()?,
        stdout: Capture::new()?,
        leaf,
        cpus: cpus.ok(),
        inherit_stdout: options.inherit_stdout.map(own_descriptor).transpose()?,
        awake_ns: options.awake_ns,
        counters: Counters::open(&options.counters),
        limitations,
    })
}

/// Starts a separate session, without a terminal, for the launcher and all of its trials.
///
/// So a signal from the terminal reaches only the client, and a trial that opens `/dev/tty` gets an
/// error. Some schedulers group processes by session. All trials share this session, so they are
/// treated alike.
fn leave_terminal() {
    // The leader of a process group cannot start a session.
    // SAFETY: takes and passes numbers only.
    unsafe {
        if libc::setsid() < 0 {
            libc::setpgid(0, 0);
        }
    }
}

/// Closes every descriptor above standard error in children.
fn keep_descriptors_from_children() {
    const FIRST: libc::c_uint = 3;
    const CLOEXEC: libc::c_uint = 4;
    // Before Linux 5.11 this fails, and a child inherits the descriptors of the launcher.
    // SAFETY: passes numbers only; closes nothing now.
    unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, CLOEXEC) };
}

/// Makes the launcher the owner of a descriptor, and keeps the descriptor from children.
fn own_descriptor(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: passes numbers only.
    if descriptor <= 2 || unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return Err(io::Error::other(format!(
            "--inherit-stdout {descriptor} is not an open descriptor above 2"
        )));
    }
    // SAFETY: the descriptor is open, and the option gives it to the launcher alone.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
