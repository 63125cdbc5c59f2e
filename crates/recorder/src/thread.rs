//! What each thread has for itself, found without a call and never allocated.

use crate::file::Table;

/// A thread's own place; all zero but for the key until it first allocates.
#[repr(C, align(64))]
pub struct Thread {
    /// The key of the process for which the rest holds; 1 is none's.
    pub key: u64,
    /// Null if nothing is to be recorded here.
    pub table: *const Table,
    /// After so many bytes more a stack is sampled.
    pub until_sample: i64,
    /// The mean of that.
    pub interval: u64,
    pub random: u64,
    /// Where the stack lies that this thread was last seen on.
    pub stack_low: usize,
    pub stack_high: usize,
    /// Not 0 while this library works for the thread in a way that could call it again.
    pub busy: u64,
}

#[cfg(target_arch = "x86_64")]
mod place {
    use super::Thread;

    // The language has no thread-locals without a call in a shared library (`__tls_get_addr`); the
    // offset of ours is fixed when the program starts, because the library is preloaded.
    core::arch::global_asm!(
        ".section .tdata.equipoise_recorder_thread,\"awT\",@progbits",
        ".p2align 6",
        ".globl equipoise_recorder_thread",
        ".hidden equipoise_recorder_thread",
        ".type equipoise_recorder_thread,@object",
        ".size equipoise_recorder_thread,64",
        "equipoise_recorder_thread:",
        ".quad 1",
        ".zero 56",
        ".text",
    );

    #[inline]
    pub fn current() -> *mut Thread {
        let thread: *mut Thread;
        // SAFETY: reads the thread's own address and the offset that the loader entered.
        unsafe {
            core::arch::asm!(
                "mov {thread}, qword ptr [rip + equipoise_recorder_thread@GOTTPOFF]",
                "add {thread}, qword ptr fs:[0]",
                thread = out(reg) thread,
                options(pure, readonly, nostack)
            );
        }
        thread
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod place {
    use super::Thread;
    use std::cell::UnsafeCell;

    std::thread_local! {
        static THREAD: UnsafeCell<Thread> = const {
            UnsafeCell::new(Thread {
                key: 1,
                table: std::ptr::null(),
                until_sample: 0,
                interval: 0,
                random: 0,
                stack_low: 0,
                stack_high: 0,
                busy: 0,
            })
        };
    }

    #[inline]
    pub fn current() -> *mut Thread {
        THREAD.with(UnsafeCell::get)
    }
}

const _: () = assert!(size_of::<Thread>() == 64);

pub use place::current;
