//! The functions that would be called without this library.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{FILE, fd_set, nfds_t, off64_t, pollfd, sigset_t, size_t, timespec, timeval};

/// One function, looked up before it is first called.
struct Next {
    name: &'static CStr,
    function: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            function: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    fn get(&self) -> *mut c_void {
        let function = self.function.load(Ordering::Relaxed);
        if function.is_null() {
            self.look_up()
        } else {
            function
        }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        // SAFETY: the name ends in a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            // SAFETY: there is nobody to call; a panic would allocate.
            unsafe { libc::abort() };
        }
        self.function.store(found, Ordering::Relaxed);
        found
    }
}

macro_rules! next {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty = $symbol:literal;)*) => {$(
        /// The C library's function of that name.
        ///
        /// # Safety
        /// As it asks for.
        #[inline]
        pub unsafe fn $name($($argument: $kind),*) -> $result {
            static NEXT: Next = Next::new($symbol);
            let function: unsafe extern "C" fn($($kind),*) -> $result =
                // SAFETY: the function of that name has this signature in every C library.
                unsafe { transmute(NEXT.get()) };
            // SAFETY: the caller vouches for the arguments.
            unsafe { function($($argument),*) }
        }
    )*};
}

next! {
    fsync(descriptor: c_int) -> c_int = c"fsync";
    fdatasync(descriptor: c_int) -> c_int = c"fdatasync";
    sync_file_range(descriptor: c_int, offset: off64_t, bytes: off64_t, flags: c_uint) -> c_int
        = c"sync_file_range";
    syncfs(descriptor: c_int) -> c_int = c"syncfs";
    sync() -> () = c"sync";
    msync(address: *mut c_void, bytes: size_t, flags: c_int) -> c_int = c"msync";
    posix_fadvise(descriptor: c_int, offset: off64_t, bytes: off64_t, advice: c_int) -> c_int
        = c"posix_fadvise";
    nanosleep(time: *const timespec, rest: *mut timespec) -> c_int = c"nanosleep";
    clock_nanosleep(
        clock: libc::clockid_t, flags: c_int, time: *const timespec, rest: *mut timespec
    ) -> c_int = c"clock_nanosleep";
    usleep(microseconds: c_uint) -> c_int = c"usleep";
    sleep(seconds: c_uint) -> c_uint = c"sleep";
    thrd_sleep(time: *const timespec, rest: *mut timespec) -> c_int = c"thrd_sleep";
    poll(descriptors: *mut pollfd, count: nfds_t, milliseconds: c_int) -> c_int = c"poll";
    ppoll(
        descriptors: *mut pollfd, count: nfds_t, time: *const timespec, signals: *const sigset_t
    ) -> c_int = c"ppoll";
    select(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
        time: *mut timeval
    ) -> c_int = c"select";
    pselect(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
        time: *const timespec, signals: *const sigset_t
    ) -> c_int = c"pselect";
    fopen(path: *const c_char, mode: *const c_char) -> *mut FILE = c"fopen";
    fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE = c"fopen64";
    fdopen(descriptor: c_int, mode: *const c_char) -> *mut FILE = c"fdopen";
    freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE
        = c"freopen";
    freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE
        = c"freopen64";
    fclose(stream: *mut FILE) -> c_int = c"fclose";
    fflush(stream: *mut FILE) -> c_int = c"fflush";
    fpurge(stream: *mut FILE) -> () = c"__fpurge";
    setvbuf(stream: *mut FILE, buffer: *mut c_char, mode: c_int, size: size_t) -> c_int
        = c"setvbuf";
    setbuf(stream: *mut FILE, buffer: *mut c_char) -> () = c"setbuf";
    setbuffer(stream: *mut FILE, buffer: *mut c_char, size: size_t) -> () = c"setbuffer";
    setlinebuf(stream: *mut FILE) -> () = c"setlinebuf";
    execve(
        path: *const c_char, words: *const *const c_char, environment: *const *const c_char
    ) -> c_int = c"execve";
    execv(path: *const c_char, words: *const *const c_char) -> c_int = c"execv";
    execvp(name: *const c_char, words: *const *const c_char) -> c_int = c"execvp";
    dup2(from: c_int, to: c_int) -> c_int = c"dup2";
    dup3(from: c_int, to: c_int, flags: c_int) -> c_int = c"dup3";
    close(descriptor: c_int) -> c_int = c"close";
    mmap(
        address: *mut c_void, bytes: size_t, protection: c_int, flags: c_int, descriptor: c_int,
        offset: off64_t
    ) -> *mut c_void = c"mmap";
    munmap(address: *mut c_void, bytes: size_t) -> c_int = c"munmap";
    // Its last argument is there for some flags only, and is handed on as it comes.
    mremap(
        address: *mut c_void, bytes: size_t, fresh_bytes: size_t, flags: c_int, to: *mut c_void
    ) -> *mut c_void = c"mremap";
    mprotect(address: *mut c_void, bytes: size_t, protection: c_int) -> c_int = c"mprotect";
    pkey_mprotect(address: *mut c_void, bytes: size_t, protection: c_int, key: c_int) -> c_int
        = c"pkey_mprotect";
    madvise(address: *mut c_void, bytes: size_t, advice: c_int) -> c_int = c"madvise";
}
