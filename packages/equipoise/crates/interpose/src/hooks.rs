//! Exports C functions that replace functions of the C library, and calls the replaced functions.
//!
//! The program would call the *next* function if there were no preloaded library.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::errno;
use crate::process::abort_with;

/// Exports C functions from a preloadable library. A test program does not export them: they would
/// replace functions of the test harness.
#[macro_export]
macro_rules! exports {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? { $($body:tt)* }
    )*) => {$(
        $(#[$attribute])*
        ///
        /// # Safety
        /// The conditions of the C function of this name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
            // SAFETY: the caller keeps the conditions of the C function of this name.
            #[allow(unused_unsafe)]
            unsafe { $($body)* }
        }
    )*};
}

/// Exports C functions, and declares a module `next` with the functions that they replace. While
/// the C library looks up a function, it may call an allocation function, which cannot be looked up
/// then. For this case, a function may have an `else` block, whose value is returned.
#[macro_export]
macro_rules! hooks {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)?
        $(, else $fallback:block)? { $($body:tt)* }
    )*) => {
        /// The functions that the program would call without this library.
        #[allow(dead_code, unused_imports)]
        mod next {
            use super::*;
            $(
                /// Calls the next function of this name.
                ///
                /// # Safety
                /// The conditions of the C function of this name.
                #[inline]
                pub unsafe fn $name($($argument: $kind),*) $(-> $result)? {
                    static NEXT: $crate::hooks::Next =
                        $crate::hooks::Next::new(concat!(stringify!($name), "\0"));
                    let function = $crate::next_address!(NEXT $(, $fallback)?);
                    // SAFETY: the function of this name has this signature in every C library, and
                    // the caller keeps its conditions.
                    unsafe {
                        let function: unsafe extern "C" fn($($kind),*) $(-> $result)? =
                            std::mem::transmute(function);
                        function($($argument),*)
                    }
                }
            )*
        }
        $crate::exports! {$(
            $(#[$attribute])*
            fn $name($($argument: $kind),*) $(-> $result)? { $($body)* }
        )*}
    };
}

/// Looks up a function for `hooks!`. While another function is looked up, returns the value of the
/// `else` block from the calling function.
#[doc(hidden)]
#[macro_export]
macro_rules! next_address {
    ($next:ident) => {
        $next.required()
    };
    ($next:ident, $fallback:block) => {{
        let function = $next.address_or_null();
        if function.is_null() {
            return $fallback;
        }
        function
    }};
}

/// A next function. It is looked up before its first call.
pub struct Next {
    name: &'static str,
    address: AtomicPtr<c_void>,
}

/// Id of the thread that looks up a function in `address_or_null`; 0 if there is none.
static LOOKING_UP: AtomicU32 = AtomicU32::new(0);

impl Next {
    /// Creates a function that is not looked up yet; the name must end with NUL.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            address: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns the address of the function; aborts the process if no library has the function.
    #[inline]
    pub fn required(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        if !address.is_null() {
            return address;
        }
        self.look_up_or_abort()
    }

    /// Returns the address of the function. Null if no library has the function, or if this thread
    /// is looking up another function.
    #[inline]
    pub fn address_or_null(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        if !address.is_null() {
            return address;
        }
        errno::preserved(|| self.look_up_exclusively())
    }

    #[cold]
    fn look_up_or_abort(&self) -> *mut c_void {
        let address = self.look_up();
        if address.is_null() {
            let name = self.name.trim_end_matches('\0').as_bytes();
            abort_with(&[b"equipoise: the C library has no function ", name, b"\n"]);
        }
        address
    }

    /// Looks the function up once no other thread is looking up a function. Null if this thread is
    /// already looking up another function.
    #[cold]
    fn look_up_exclusively(&self) -> *mut c_void {
        // SAFETY: has no conditions.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        let thread = u32::try_from(thread).unwrap_or(0);
        if LOOKING_UP.load(Ordering::Relaxed) == thread {
            return ptr::null_mut();
        }
        while LOOKING_UP
            .compare_exchange_weak(0, thread, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        let address = self.look_up();
        LOOKING_UP.store(0, Ordering::Release);
        address
    }

    fn look_up(&self) -> *mut c_void {
        let Ok(name) = CStr::from_bytes_with_nul(self.name.as_bytes()) else {
            return ptr::null_mut();
        };
        // SAFETY: the name ends with NUL.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test for both cases, because all tests of a process share `LOOKING_UP`.
    #[test]
    fn an_address_is_null_if_no_library_has_the_function_or_during_another_look_up() {
        let known = Next::new("getpid\0");
        assert!(!known.address_or_null().is_null());
        assert_eq!(known.required(), known.address_or_null());
        let unknown = Next::new("no_such_function\0");
        assert!(unknown.address_or_null().is_null());
        // SAFETY: has no conditions.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        LOOKING_UP.store(u32::try_from(thread).expect("a number"), Ordering::Relaxed);
        let during = Next::new("getppid\0").address_or_null();
        LOOKING_UP.store(0, Ordering::Relaxed);
        assert!(during.is_null());
    }
}
