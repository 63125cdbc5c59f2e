//! Sets the launcher up, and serves requests one by one.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

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
use crate::trial::TrialRunner;

/// Serves until the other side hangs up or a signal stops the launcher.
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
        match parse(line) {
            Ok(request) => {
                let Some(report) = runner.run(&request, conversation.input())? else {
                    return Ok(());
                };
                conversation.send(&report)?;
            }
            Err(refused) => conversation.send(&Refusal { refused })?,
        }
    }
}

fn parse(line: &[u8]) -> Result<Request, String> {
    let request: Request = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if request.argv.is_empty() {
        return Err("argv is empty: there is nothing to run".to_owned());
    }
    if !request.timeout_s.is_finite() || request.timeout_s <= 0.0 {
        return Err("timeout_s is not a positive number of seconds".to_owned());
    }
    Ok(request)
}

fn set_up(options: &Options) -> io::Result<TrialRunner> {
    leave_terminal();
    keep_descriptors_from_children();
    contain::adopt_orphans()?;
    let mut limitations = Vec::new();
    if let Err(reason) = memory::offer_first() {
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
        errors: Capture::new()?,
        counted: Capture::new()?,
        leaf,
        cpus: cpus.ok(),
        inherit_stdout: options.inherit_stdout.map(take_over).transpose()?,
        awake_ns: options.awake_ns,
        counters: Counters::open(&options.counters),
        limitations,
    })
}

/// Begins a separate session, without a terminal, for the launcher and all of its trials.
///
/// A signal from the terminal is for the process that drives the launcher. A trial that opens
/// `/dev/tty` is refused at once, where in the background of the terminal it would be stopped. One
/// session for all of them costs a single trial nothing, even where the scheduler groups by session.
fn leave_terminal() {
    // The leader of a process group cannot begin a session; it has the group to itself already.
    // SAFETY: takes and passes numbers only.
    unsafe {
        if libc::setsid() < 0 {
            libc::setpgid(0, 0);
        }
    }
}

/// Closes every descriptor above standard error in children.
fn keep_descriptors_from_children() {
    const ALL: [libc::c_uint; 2] = [3, libc::c_uint::MAX];
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // On kernels before 5.11 this fails, and a child inherits the descriptors of the launcher. The
    // process that starts the launcher gives it no others.
    // SAFETY: passes numbers only; closes nothing now.
    unsafe { libc::syscall(libc::SYS_close_range, ALL[0], ALL[1], CLOSE_RANGE_CLOEXEC) };
}

fn take_over(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: passes numbers only.
    if descriptor <= 2 || unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return Err(io::Error::other(format!(
            "--inherit-stdout {descriptor} is not an open descriptor above 2"
        )));
    }
    // SAFETY: it is open, and was given to us to own.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
