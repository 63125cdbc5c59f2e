//! Sets the launcher up and serves one request after the other.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

use crate::affinity::Cpus;
use crate::cgroup::Leaf;
use crate::clone::Stack;
use crate::contain;
use crate::conversation::{Conversation, Heard};
use crate::counters::Counters;
use crate::memory;
use crate::options::{ContainmentChoice, Options};
use crate::output::Capture;
use crate::protocol::{Refusal, Request};
use crate::signals::Signals;
use crate::trial::Bench;

/// Serves until the other side hangs up or a signal says to stop.
///
/// # Errors
/// What the system says when the launcher itself cannot go on.
pub fn serve(options: &Options) -> io::Result<()> {
    let mut bench = set_up(options)?;
    if let Err(reason) = memory::shrink() {
        bench.lacks.push(("shrink", reason));
    }
    let mut conversation = Conversation::new();
    loop {
        let heard = conversation.hear(bench.signals.stop.as_fd())?;
        let Heard::Line(line) = heard else {
            return Ok(());
        };
        match understand(line) {
            Ok(request) => {
                let asker = conversation.input();
                let Some(report) = bench.run(&request, asker)? else {
                    return Ok(());
                };
                conversation.say(&report)?;
            }
            Err(refused) => conversation.say(&Refusal { refused })?,
        }
    }
}

fn understand(line: &[u8]) -> Result<Request, String> {
    let request: Request = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if request.argv.is_empty() {
        return Err("argv is empty: there is nothing to run".to_owned());
    }
    if !request.timeout_s.is_finite() || request.timeout_s <= 0.0 {
        return Err("timeout_s is not a positive number of seconds".to_owned());
    }
    Ok(request)
}

fn set_up(options: &Options) -> io::Result<Bench> {
    leave_the_terminal();
    keep_descriptors_from_children();
    contain::adopt_orphans()?;
    let mut lacks = Vec::new();
    if let Err(reason) = memory::offer_first() {
        lacks.push(("oom_score_adj", reason));
    }
    let cpus = Cpus::allowed()
        .map_err(|error| lacks.push(("affinity", format!("CPUs cannot be told: {error}"))))
        .ok();
    let identity = options.identity.as_deref();
    let leaf = match options.containment {
        ContainmentChoice::Auto => Some(Leaf::new(identity).and_then(Leaf::if_neutral)),
        ContainmentChoice::Cgroup => Some(Leaf::new(identity)),
        ContainmentChoice::ProcessGroup => None,
    };
    let leaf = leaf.and_then(|made| made.map_err(|reason| lacks.push(("cgroup", reason))).ok());
    Ok(Bench {
        signals: Signals::set_up()?,
        stack: Stack::new()?,
        errors: Capture::new()?,
        counted: Capture::new()?,
        leaf,
        cpus,
        inherit_stdout: options.inherit_stdout.map(take_over).transpose()?,
        awake_ns: options.awake_ns,
        counters: Counters::open(&options.counters),
        lacks,
    })
}

/// Begins a session of its own, without a terminal, for the launcher and all of its trials.
///
/// A signal from the terminal is for whoever drives the launcher. A trial that opens `/dev/tty` is
/// refused at once, where in the background of the terminal it would be stopped. One session for
/// all of them costs a single trial nothing, also where the scheduler groups by session.
fn leave_the_terminal() {
    // The leader of a process group cannot begin a session; it has the group to itself already.
    // SAFETY: takes and passes numbers only.
    unsafe {
        if libc::setsid() < 0 {
            libc::setpgid(0, 0);
        }
    }
}

/// Marks every descriptor above standard error as not for children.
fn keep_descriptors_from_children() {
    const FIRST: libc::c_uint = 3;
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // On kernels before 5.11 this fails, and a child sees what the launcher was given; whoever
    // starts the launcher gives it nothing else.
    // SAFETY: passes numbers only; closes nothing now.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        )
    };
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
