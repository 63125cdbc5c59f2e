//! Probe `futex`: a token goes from this thread to another thread and back.

use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{JoinHandle, spawn};

use equipoise_reporting::problem::Problem;

use crate::cpus::{pin_thread, side_cpus};
use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, timed};
use crate::system::{check_negative, problem_of};

pub const FUTEX: Probe = Probe {
    name: "futex",
    summary: "a token to another thread and back, by FUTEX_WAKE and FUTEX_WAIT (a round trip)",
    needs: "a second CPU for across_cpus",
    ..Probe::latency(Class::Thread, open).two_sided()
};

/// Value of the token while this thread has it.
const HERE: u32 = 0;
/// Value of the token while the other thread has it.
const THERE: u32 = 1;
/// Value with which this thread ends the other thread.
const END: u32 = 2;
/// Value that the other thread sets if it fails.
const FAILED: u32 = 3;

fn open(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let cpus = side_cpus(options.placement)?;
    let other = OtherThread::start(cpus.other)?;
    pin_thread(cpus.measured)?;
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            hand_over(&other.token, THERE)?;
            match wait_while(&other.token, THERE)? {
                HERE => Ok(()),
                _ => Err(Problem::failure("the other thread failed")),
            }
        })
    }))
}

/// The other thread, which returns the token each time. Dropping this ends the thread.
struct OtherThread {
    token: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl OtherThread {
    fn start(cpu: Option<usize>) -> Result<Self, Problem> {
        let token = Arc::new(AtomicU32::new(HERE));
        let shared_token = Arc::clone(&token);
        let (sender, receiver) = sync_channel(1);
        let thread = spawn(move || {
            let result = pin_thread(cpu);
            let is_pinned = result.is_ok();
            // The receiver exists, because the starting thread waits for the result.
            let _ = sender.send(result);
            if is_pinned && return_tokens(&shared_token).is_err() {
                // Without this value, the measuring thread would wait forever.
                let _ = hand_over(&shared_token, FAILED);
            }
        });
        receiver
            .recv()
            .unwrap_or_else(|_| Err(Problem::failure("the other thread did not start")))?;
        Ok(Self {
            token,
            thread: Some(thread),
        })
    }
}

impl Drop for OtherThread {
    fn drop(&mut self) {
        // If the thread cannot be woken, it ends with the process.
        if hand_over(&self.token, END).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Returns the token each time. Ends when the token has another value than `THERE`.
fn return_tokens(token: &AtomicU32) -> Result<(), Problem> {
    while wait_while(token, HERE)? == THERE {
        hand_over(token, HERE)?;
    }
    Ok(())
}

/// Sleeps while the token has the given value, and returns the new value.
#[inline]
fn wait_while(token: &AtomicU32, value: u32) -> Result<u32, Problem> {
    loop {
        let new_value = token.load(Ordering::Acquire);
        if new_value != value {
            return Ok(new_value);
        }
        let result = futex(token, libc::FUTEX_WAIT, value);
        if result != 0 {
            let error = std::io::Error::last_os_error();
            // The token changed before this thread slept, or a signal woke the thread.
            if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) {
                return Err(problem_of("futex")(error));
            }
        }
    }
}

#[inline]
fn hand_over(token: &AtomicU32, value: u32) -> Result<(), Problem> {
    token.store(value, Ordering::Release);
    check_negative("futex", futex(token, libc::FUTEX_WAKE, 1)).map(drop)
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
