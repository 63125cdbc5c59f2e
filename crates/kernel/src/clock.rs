//! The monotonic clock, which also gives the times of the kernel's event records.

use std::mem::MaybeUninit;
use std::time::Duration;

/// Number of nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Returns the time of `CLOCK_MONOTONIC`, in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `now` is valid for writing. Every Linux has this clock, so the call cannot fail.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr());
        now.assume_init()
    };
    // The monotonic clock starts at 0, so its times are not negative.
    now.tv_sec.unsigned_abs() * SECOND_NS + now.tv_nsec.unsigned_abs()
}

/// Returns the resolution of `CLOCK_MONOTONIC`, in seconds.
#[must_use]
pub fn monotonic_resolution_s() -> f64 {
    let mut resolution = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: as in `monotonic_ns`.
    let resolution = unsafe {
        libc::clock_getres(libc::CLOCK_MONOTONIC, resolution.as_mut_ptr());
        resolution.assume_init()
    };
    // The nanoseconds are below 10⁹, so they fit.
    Duration::new(
        resolution.tv_sec.unsigned_abs(),
        u32::try_from(resolution.tv_nsec).unwrap_or(0),
    )
    .as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_has_a_resolution_below_a_second() {
        let resolution_s = monotonic_resolution_s();
        assert!((1e-9..1.0).contains(&resolution_s), "{resolution_s}");
    }

    #[test]
    fn time_does_not_run_backwards() {
        let before = monotonic_ns();
        assert!(monotonic_ns() >= before);
    }
}
