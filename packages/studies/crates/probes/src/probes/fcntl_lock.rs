//! Probe `fcntl_lock`: lock and unlock a record that no other process locks.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use equipoise_reporting::problem::Problem;

use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, timed};
use crate::system::{check_negative, check_result};

pub const FCNTL_LOCK: Probe = Probe {
    name: "fcntl_lock",
    summary: "fcntl(F_SETLK) that locks a byte of a memory file for writing, and unlocks it",
    ..Probe::latency(Class::Files, open)
};

fn open(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    // SAFETY: the name ends with a null byte.
    let file = unsafe { libc::memfd_create(c"equipoise-lock".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: a new descriptor without another owner.
    let file = unsafe { File::from_raw_fd(check_negative("memfd_create", file)?) };
    let lock = lock_of_first_byte(libc::F_WRLCK)?;
    let unlock = lock_of_first_byte(libc::F_UNLCK)?;
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            set_lock(&file, &lock)?;
            set_lock(&file, &unlock)
        })
    }))
}

fn lock_of_first_byte(kind: libc::c_int) -> Result<libc::flock, Problem> {
    let number = |value: libc::c_int| {
        libc::c_short::try_from(value).map_err(|error| Problem::failure(error.to_string()))
    };
    // SAFETY: all-zero is a valid lock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = number(kind)?;
    lock.l_whence = number(libc::SEEK_SET)?;
    lock.l_len = 1;
    Ok(lock)
}

#[inline]
fn set_lock(file: &File, lock: &libc::flock) -> Result<(), Problem> {
    // SAFETY: the lock can be read.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, std::ptr::from_ref(lock)) };
    check_result("fcntl(F_SETLK)", result, 0)
}
