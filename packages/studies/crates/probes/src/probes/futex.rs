//! Probe `futex`: a token to another thread and back.

use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{JoinHandle, spawn};

use equipoise_reporting::problem::Problem;

use crate::cpus::{hold, sides};
use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, timed};
use crate::system::{accepted, problem_of};

pub const FUTEX: Probe = Probe {
    name: "futex",
    summary: "a token to another thread and back, by FUTEX_WAKE and FUTEX_WAIT (a round trip)",
    needs: "a second CPU for across_cpus",
    ..Probe::latency(Class::Thread, open).two_sided()
};

const HERE: u32 = 0;
const THERE: u32 = 1;
/// The other thread is to end.
const OVER: u32 = 2;
/// The other thread could not go on.
const BROKEN: u32 = 3;

fn open(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let sides = sides(options.placement)?;
    let other = Other::start(sides.other)?;
    hold(sides.measured)?;
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            hand_over(&other.token, THERE)?;
            match wait_while(&other.token, THERE)? {
                HERE => Ok(()),
                _ => Err(Problem::failure("the other thread could not go on")),
            }
        })
    }))
}

/// The other thread, which gives every token back; it ends when dropped.
struct Other {
    token: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Other {
    fn start(cpu: Option<usize>) -> Result<Self, Problem> {
        let token = Arc::new(AtomicU32::new(HERE));
        let theirs = Arc::clone(&token);
        let (ready, held) = sync_channel(1);
        let thread = spawn(move || {
            let is_held = hold(cpu);
            let goes_on = is_held.is_ok();
            // The thread that started this one waits for the answer.
            let _ = ready.send(is_held);
            if goes_on && give_back_each(&theirs).is_err() {
                // The waiting thread must not wait without end; it reports a failure to wake it.
                let _ = hand_over(&theirs, BROKEN);
            }
        });
        held.recv()
            .unwrap_or_else(|_| Err(Problem::failure("the other thread did not start")))?;
        Ok(Self {
            token,
            thread: Some(thread),
        })
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // A thread that cannot be woken ends with the process.
        if hand_over(&self.token, OVER).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn give_back_each(token: &AtomicU32) -> Result<(), Problem> {
    while wait_while(token, HERE)? == THERE {
        hand_over(token, HERE)?;
    }
    Ok(())
}

/// Sleeps while the token is at a place, and returns its new place.
#[inline]
fn wait_while(token: &AtomicU32, place: u32) -> Result<u32, Problem> {
    loop {
        let now = token.load(Ordering::Acquire);
        if now != place {
            return Ok(now);
        }
        let result = futex(token, libc::FUTEX_WAIT, place);
        if result != 0 {
            let error = std::io::Error::last_os_error();
            // It moved before this thread slept, or a signal woke it: look again.
            if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) {
                return Err(problem_of("futex")(error));
            }
        }
    }
}

#[inline]
fn hand_over(token: &AtomicU32, to: u32) -> Result<(), Problem> {
    token.store(to, Ordering::Release);
    accepted("futex", futex(token, libc::FUTEX_WAKE, 1)).map(drop)
}

#[inline]
fn futex(token: &AtomicU32, operation: libc::c_int, number: u32) -> libc::c_long {
    // SAFETY: the token outlives the call, and there is no time limit.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            token.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            number,
            null::<libc::timespec>(),
        )
    }
}
