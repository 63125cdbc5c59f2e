//! The monotonic clock, by which the kernel also stamps its records of events.

use std::mem::MaybeUninit;

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Returns the nanoseconds of `CLOCK_MONOTONIC`.
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
    now.tv_sec.unsigned_abs() * SECOND_NS + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_run_backwards() {
        let before = monotonic_ns();
        assert!(monotonic_ns() >= before);
    }
}
