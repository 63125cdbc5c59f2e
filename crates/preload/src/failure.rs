//! The end of the process, without an allocation.

/// Writes one line to standard error and aborts: a panic would allocate, and deadlock.
pub fn abort_with(line: &str) -> ! {
    // SAFETY: the line is valid for its length; nothing is done about a write that fails.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    // SAFETY: abort has no conditions.
    unsafe { libc::abort() }
}
