//! Probe `sleep_50us`: the delay between the requested end of a sleep and its real end.

use std::ptr::null_mut;
use std::time::Duration;

use equipoise_reporting::problem::Problem;

use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, timed};
use crate::system::{check_error_number, check_negative};

pub const SLEEP_50US: Probe = Probe {
    name: "sleep_50us",
    summary: "how much later than after 50 us a thread wakes that sleeps for 50 us",
    ..Probe::latency(Class::Time, open)
};

const SLEEP_NS: u32 = 50_000;

fn open(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    // SAFETY: passes numbers only.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    let slack = check_negative("prctl(PR_GET_TIMERSLACK)", slack)?;
    Ok(OpenProbe::latency(|count| {
        let requested = u64::from(SLEEP_NS).saturating_mul(count);
        timed(count, sleep)?
            .checked_sub(Duration::from_nanos(requested))
            .ok_or_else(|| Problem::failure("the thread woke earlier than requested"))
    })
    .with_fact("timer_slack_ns", slack.to_string()))
}

#[inline]
fn sleep() -> Result<(), Problem> {
    let duration = libc::timespec {
        tv_sec: 0,
        tv_nsec: SLEEP_NS.into(),
    };
    // SAFETY: the duration can be read; the remaining time is not requested.
    let code =
        unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const duration, null_mut()) };
    check_error_number("clock_nanosleep", code)
}
