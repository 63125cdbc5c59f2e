//! Reads environment variables, and calls functions at the start and the end of the process.

use std::ffi::CStr;

/// Returns the value of an environment variable, if it is set. The value is valid until the program
/// changes the environment.
#[must_use]
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with NUL.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: a value of the environment ends with NUL.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Writes a line, given in parts, to standard error and aborts. (A panic would allocate.)
pub fn abort_with(parts: &[&[u8]]) -> ! {
    for part in parts {
        // SAFETY: the part is valid for its length. A failed write is ignored.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: abort has no conditions.
    unsafe { libc::abort() }
}

/// Calls a function when the library is loaded.
#[macro_export]
macro_rules! at_load {
    ($function:path) => {
        $crate::in_section!(".init_array", AT_LOAD, $function);
    };
}

/// Calls a function when the program ends by `exit`.
#[macro_export]
macro_rules! at_exit {
    ($function:path) => {
        $crate::in_section!(".fini_array", AT_EXIT, $function);
    };
}

/// Puts the address of a function into a section of the library.
#[doc(hidden)]
#[macro_export]
macro_rules! in_section {
    ($section:literal, $name:ident, $function:path) => {
        #[cfg_attr(not(test), unsafe(link_section = $section))]
        #[used]
        static $name: extern "C" fn() = {
            extern "C" fn run() {
                $function();
            }
            run
        };
    };
}
