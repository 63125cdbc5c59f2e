//! What only waits for time to pass waits no more.

use std::ffi::{c_int, c_long, c_uint};
use std::ptr;

use libc::{fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};

use crate::chosen::{Chosen, chosen};
use crate::next;

fn at_once() -> bool {
    chosen() == Chosen::NoSleep
}

/// Whether it is a time that one can sleep for; what is not, the C library complains of.
///
/// # Safety
/// `time` is null or points to one.
unsafe fn is_time(time: *const timespec) -> bool {
    const SECOND: c_long = 1_000_000_000;
    // SAFETY: it is not null.
    !time.is_null() && unsafe { (*time).tv_sec >= 0 && (0..SECOND).contains(&(*time).tv_nsec) }
}

/// Whoever sleeps gives the CPU away; somebody may wait for that.
fn give_away() {
    // SAFETY: has no conditions.
    unsafe { libc::sched_yield() };
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn nanosleep(time: *const timespec, rest: *mut timespec) -> c_int {
    // SAFETY: the caller vouches for the time.
    if at_once() && unsafe { is_time(time) } {
        give_away();
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::nanosleep(time, rest) }
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn clock_nanosleep(
    clock: libc::clockid_t,
    flags: c_int,
    time: *const timespec,
    rest: *mut timespec,
) -> c_int {
    // SAFETY: the caller vouches for the time.
    if at_once() && unsafe { is_time(time) } {
        give_away();
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::clock_nanosleep(clock, flags, time, rest) }
}

/// POSIX, once.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn usleep(microseconds: c_uint) -> c_int {
    if at_once() {
        give_away();
        return 0;
    }
    // SAFETY: takes any number.
    unsafe { next::usleep(microseconds) }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn sleep(seconds: c_uint) -> c_uint {
    if at_once() {
        give_away();
        return 0;
    }
    // SAFETY: takes any number.
    unsafe { next::sleep(seconds) }
}

/// C11.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn thrd_sleep(time: *const timespec, rest: *mut timespec) -> c_int {
    // SAFETY: the caller vouches for the time.
    if at_once() && unsafe { is_time(time) } {
        give_away();
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::thrd_sleep(time, rest) }
}

/// POSIX; without descriptors it is a sleep, and without an end a wait for a signal.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn poll(
    descriptors: *mut pollfd,
    count: nfds_t,
    milliseconds: c_int,
) -> c_int {
    if count == 0 && milliseconds >= 0 && at_once() {
        give_away();
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::poll(descriptors, count, milliseconds) }
}

/// Linux; as `poll`.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ppoll(
    descriptors: *mut pollfd,
    count: nfds_t,
    time: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    // SAFETY: the caller vouches for the time.
    if count == 0 && signals.is_null() && at_once() && unsafe { is_time(time) } {
        give_away();
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::ppoll(descriptors, count, time, signals) }
}

/// POSIX; as `poll`.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    time: *mut timeval,
) -> c_int {
    if count == 0 && !time.is_null() && at_once() {
        give_away();
        // Linux leaves what was not slept, which is nothing.
        // SAFETY: the caller vouches for the time.
        unsafe { ptr::write_bytes(time, 0, 1) };
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::select(count, read, write, except, time) }
}

/// POSIX; as `poll`.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    time: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    // SAFETY: the caller vouches for the time.
    if count == 0 && signals.is_null() && at_once() && unsafe { is_time(time) } {
        give_away();
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::pselect(count, read, write, except, time, signals) }
}
