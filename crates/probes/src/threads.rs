//! Threads as pthreads makes them, without what Rust adds.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use equipoise_reporting::problem::Problem;

use crate::system::{problem_of, wrong};

/// A thread that ends at once and gives back what it was given.
pub struct Idle {
    thread: libc::pthread_t,
    token: usize,
}

impl Idle {
    /// Starts it with the attributes that a program has if it says nothing.
    ///
    /// # Errors
    /// What `pthread_create` says.
    #[inline]
    pub fn start(token: usize) -> Result<Self, Problem> {
        let mut thread = MaybeUninit::uninit();
        // SAFETY: the thread can be written; it uses its argument as a number only.
        let code = unsafe {
            let token = token as *mut c_void;
            libc::pthread_create(thread.as_mut_ptr(), null(), give_back, token)
        };
        see("pthread_create", code)?;
        // SAFETY: the call filled it.
        let thread = unsafe { thread.assume_init() };
        Ok(Self { thread, token })
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// What `pthread_join` says, or that it did not give back what it was given.
    #[inline]
    pub fn join(self) -> Result<(), Problem> {
        let mut given = null_mut();
        // SAFETY: the thread was started and is joined once; its answer can be written.
        see("pthread_join", unsafe {
            libc::pthread_join(self.thread, &raw mut given)
        })?;
        if given as usize != self.token {
            return Err(wrong("a thread", given as usize, self.token));
        }
        Ok(())
    }
}

extern "C" fn give_back(token: *mut c_void) -> *mut c_void {
    token
}

#[inline]
fn see(call: &str, code: libc::c_int) -> Result<(), Problem> {
    if code == 0 {
        return Ok(());
    }
    Err(problem_of(call, &io::Error::from_raw_os_error(code)))
}
