//! The monotonic clock.

use std::mem::MaybeUninit;

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `now` is valid for writing; CLOCK_MONOTONIC exists on every Linux, so the call
    // cannot fail and initialises it.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr());
        now.assume_init()
    };
    // The monotonic clock starts at 0 and has no negative times.
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds * SECOND_NS + nanoseconds
}

/// Keeps this CPU awake for so many nanoseconds.
///
/// A virtual CPU that has just been woken runs its next system calls several times slower;
/// spinning lets it (and the host's scheduler) settle before the clock is read.
pub fn stay_awake(duration_ns: u64) {
    let end = monotonic_ns() + duration_ns;
    while monotonic_ns() < end {
        std::hint::spin_loop();
    }
}

/// A span of time as `ppoll` wants it.
#[must_use]
pub fn timespec(duration_ns: u64) -> libc::timespec {
    // A longer wait than i32::MAX seconds (68 years) is as good as that one.
    let seconds = i32::try_from(duration_ns / SECOND_NS).unwrap_or(i32::MAX);
    // A remainder below 10^9 fits.
    let nanoseconds = i32::try_from(duration_ns % SECOND_NS).unwrap_or(i32::MAX);
    libc::timespec {
        tv_sec: seconds.into(),
        tv_nsec: nanoseconds.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_run_backwards() {
        let before = monotonic_ns();
        stay_awake(1000);
        assert!(monotonic_ns() >= before + 1000);
    }

    #[test]
    fn a_span_is_split_into_seconds_and_nanoseconds() {
        let span = timespec(3 * SECOND_NS + 5);
        assert_eq!((span.tv_sec, span.tv_nsec), (3, 5));
    }
}
