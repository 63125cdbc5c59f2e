//! Turns the results of system calls into Rust results.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Checks the result of a call that returns -1 when it fails.
///
/// # Errors
/// The last error of this thread, for a negative result.
pub fn check<Number: PartialOrd + Default>(result: Number) -> io::Result<Number> {
    if result < Number::default() {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Takes the file descriptor that a call returned; it is closed when dropped.
///
/// # Safety
/// The result is negative, or a new descriptor without another owner.
///
/// # Errors
/// The last error of this thread, for a negative result.
pub unsafe fn owned(result: impl Into<libc::c_long>) -> io::Result<OwnedFd> {
    let descriptor = RawFd::try_from(check(result.into())?).map_err(io::Error::other)?;
    // SAFETY: the caller guarantees a descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Repeats a call until no signal interrupts it.
///
/// # Errors
/// Any other error of the call.
pub fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_result_is_an_error() {
        // SAFETY: passes numbers only.
        assert!(check(unsafe { libc::close(-1) }).is_err());
        assert_eq!(check(7).expect("no error"), 7);
    }

    #[test]
    fn an_interrupted_call_is_repeated() {
        let mut results = vec![Ok(7), Err(io::ErrorKind::Interrupted.into())];
        let result = retry_interrupted(|| results.pop().expect("two calls"));
        assert_eq!(result.expect("the second result"), 7);
    }
}
