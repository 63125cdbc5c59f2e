//! The intervention `no_sleep`: calls that only wait for time to pass return at once.

use std::ffi::{c_int, c_long, c_uint};
use std::ptr;

use libc::{fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};

use crate::intervention::{Intervention, current};

/// Whether to return from a call at once, because it is a sleep and sleeps are skipped. The thread
/// then yields its CPU, which another thread may need.
fn skips(is_sleep: impl FnOnce() -> bool) -> bool {
    let is_skipped = current() == Intervention::NoSleep && is_sleep();
    if is_skipped {
        // SAFETY: has no conditions.
        unsafe { libc::sched_yield() };
    }
    is_skipped
}

/// Whether a time is valid for a sleep; the C library reports an error for an invalid time.
///
/// # Safety
/// `time` is null or points to a time.
unsafe fn is_valid(time: *const timespec) -> bool {
    const SECOND_NS: c_long = 1_000_000_000;
    // SAFETY: it is not null.
    !time.is_null() && unsafe { (*time).tv_sec >= 0 && (0..SECOND_NS).contains(&(*time).tv_nsec) }
}

equipoise_interpose::hooks! {
    fn nanosleep(time: *const timespec, rest: *mut timespec) -> c_int {
        if skips(|| is_valid(time)) { 0 } else { next::nanosleep(time, rest) }
    }

    fn clock_nanosleep(
        clock: libc::clockid_t, flags: c_int, time: *const timespec, rest: *mut timespec,
    ) -> c_int {
        if skips(|| is_valid(time)) {
            return 0;
        }
        next::clock_nanosleep(clock, flags, time, rest)
    }

    fn usleep(microseconds: c_uint) -> c_int {
        if skips(|| true) { 0 } else { next::usleep(microseconds) }
    }

    fn sleep(seconds: c_uint) -> c_uint {
        if skips(|| true) { 0 } else { next::sleep(seconds) }
    }

    fn thrd_sleep(time: *const timespec, rest: *mut timespec) -> c_int {
        if skips(|| is_valid(time)) { 0 } else { next::thrd_sleep(time, rest) }
    }

    /// A call without descriptors is a sleep; without a time limit it waits for a signal.
    fn poll(descriptors: *mut pollfd, count: nfds_t, milliseconds: c_int) -> c_int {
        if skips(|| count == 0 && milliseconds >= 0) {
            return 0;
        }
        next::poll(descriptors, count, milliseconds)
    }

    /// As `poll`.
    fn ppoll(
        descriptors: *mut pollfd, count: nfds_t, time: *const timespec, signals: *const sigset_t,
    ) -> c_int {
        if skips(|| count == 0 && signals.is_null() && is_valid(time)) {
            return 0;
        }
        next::ppoll(descriptors, count, time, signals)
    }

    /// As `poll`.
    fn select(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
        time: *mut timeval,
    ) -> c_int {
        if skips(|| count == 0 && !time.is_null()) {
            // Linux stores the remaining time, which is zero.
            ptr::write_bytes(time, 0, 1);
            return 0;
        }
        next::select(count, read, write, except, time)
    }

    /// As `poll`.
    fn pselect(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
        time: *const timespec, signals: *const sigset_t,
    ) -> c_int {
        if skips(|| count == 0 && signals.is_null() && is_valid(time)) {
            return 0;
        }
        next::pselect(count, read, write, except, time, signals)
    }
}
