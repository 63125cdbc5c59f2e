//! Exports C functions, and calls the functions that would be called without the library.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::errno;
use crate::process::abort_with;

/// Exports C functions from a preloadable library.
///
/// In a test program the names would replace those of the test harness, so they are not exported
/// there.
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

/// Exports C functions, and declares a module `next` with the functions that they replace.
///
/// A function with an `else` block may be called while the thread looks up another function (the C
/// library may allocate for a look-up); its `next` function then returns the value of the block.
#[macro_export]
macro_rules! hooks {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)?
        $(, else $otherwise:block)? { $($body:tt)* }
    )*) => {
        /// The functions that would be called without this library.
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
                    let function = $crate::next_address!(NEXT $(, $otherwise)?);
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

/// Looks up a function for `hooks!`; returns from the calling function if there is an `else` block.
#[doc(hidden)]
#[macro_export]
macro_rules! next_address {
    ($next:ident) => {
        $next.required()
    };
    ($next:ident, $otherwise:block) => {{
        let function = $next.unless_looking_up();
        if function.is_null() {
            return $otherwise;
        }
        function
    }};
}

/// One function of the next library, looked up before its first call.
pub struct Next {
    name: &'static str,
    address: AtomicPtr<c_void>,
}

/// Thread that looks up a function by `unless_looking_up`; 0 if none does.
static LOOKING_UP: AtomicU32 = AtomicU32::new(0);

impl Next {
    /// Names the function; the name must end with NUL.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            address: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns the address of the function; ends the process if no library has it.
    #[inline]
    pub fn required(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        if !address.is_null() {
            return address;
        }
        self.look_up_required()
    }

    /// Returns the address of the function; null while the thread looks up another function, and
    /// if no library has it.
    #[inline]
    pub fn unless_looking_up(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        if !address.is_null() {
            return address;
        }
        errno::preserved(|| self.look_up_once())
    }

    #[cold]
    fn look_up_required(&self) -> *mut c_void {
        let address = self.look_up();
        if address.is_null() {
            let name = self.name.trim_end_matches('\0').as_bytes();
            abort_with(&[b"equipoise: the C library has no function ", name, b"\n"]);
        }
        address
    }

    #[cold]
    fn look_up_once(&self) -> *mut c_void {
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

    /// Only one test, because a process has only one thread that looks up.
    #[test]
    fn a_function_is_null_if_no_library_has_it_or_its_thread_looks_up_another_one() {
        let known = Next::new("getpid\0");
        assert!(!known.unless_looking_up().is_null());
        assert_eq!(known.required(), known.unless_looking_up());
        let unknown = Next::new("no_such_function\0");
        assert!(unknown.unless_looking_up().is_null());
        // SAFETY: has no conditions.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        LOOKING_UP.store(u32::try_from(thread).expect("a number"), Ordering::Relaxed);
        let during = Next::new("getppid\0").unless_looking_up();
        LOOKING_UP.store(0, Ordering::Relaxed);
        assert!(during.is_null());
    }
}
