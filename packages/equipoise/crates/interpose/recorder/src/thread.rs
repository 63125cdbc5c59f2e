//! The own state of each thread, which is found without a call and never allocated.

use std::cell::Cell;

use crate::file::Table;

/// State of one thread; all zero except the key until the thread first allocates.
///
/// A signal handler that allocates may run between any two steps of its thread, so the thread never
/// has exclusive access: cells allow that.
#[repr(C, align(64))]
pub struct Thread {
    /// The key of the process for which the other fields are valid; no process has key 1.
    pub key: Cell<u64>,
    /// Null if this thread is not recorded.
    pub table: Cell<*const Table>,
    /// Bytes until the next stack is sampled.
    pub until_sample: Cell<i64>,
    /// Mean number of bytes between two samples.
    pub interval: Cell<u64>,
    pub random: Cell<u64>,
    /// Addresses of the stack on which this thread was last seen.
    pub stack: Cell<(usize, usize)>,
    /// Whether this library works for the thread in a way that could call it again.
    pub busy: Cell<bool>,
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
    pub fn current() -> *const Thread {
        let thread: *const Thread;
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
    use std::cell::Cell;

    std::thread_local! {
        static THREAD: Thread = const {
            Thread {
                key: Cell::new(1),
                table: Cell::new(std::ptr::null()),
                until_sample: Cell::new(0),
                interval: Cell::new(0),
                random: Cell::new(0),
                stack: Cell::new((0, 0)),
                busy: Cell::new(false),
            }
        };
    }

    #[inline]
    pub fn current() -> *const Thread {
        THREAD.with(std::ptr::from_ref)
    }
}

const _: () = assert!(size_of::<Thread>() == 64);

pub use place::current;
