//! The state of each thread. Reading it needs no function call and no allocation.

use std::cell::Cell;

use crate::file::Table;

/// State of one thread. Before the first allocation of the thread, only the key is not zero. A
/// signal handler that allocates may interrupt its thread anywhere, so the fields are cells.
#[repr(C, align(64))]
pub struct Thread {
    /// Key of the process to which the other fields belong; no process has key 1.
    pub key: Cell<u64>,
    /// Table of the thread; null if the thread is not recorded.
    pub table: Cell<*const Table>,
    /// Bytes until the next stack is sampled.
    pub bytes_until_sample: Cell<i64>,
    /// Mean number of bytes between two samples.
    pub interval: Cell<u64>,
    /// State of the random numbers of the thread.
    pub random: Cell<u64>,
    /// Start and end of the stack of the thread's last sample.
    pub stack: Cell<(usize, usize)>,
    /// Whether the thread runs a function of this library that may itself allocate.
    pub is_in_library: Cell<bool>,
}

#[cfg(target_arch = "x86_64")]
mod thread_local {
    use super::Thread;

    // Rust's thread-locals need a function call in a shared library. A preloaded library can avoid
    // it: the offset of this variable is fixed when the program starts.
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
        // SAFETY: reads the thread's own address and an offset that the loader wrote.
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
mod thread_local {
    use super::Thread;
    use std::cell::Cell;

    std::thread_local! {
        static THREAD: Thread = const {
            Thread {
                key: Cell::new(1),
                table: Cell::new(std::ptr::null()),
                bytes_until_sample: Cell::new(0),
                interval: Cell::new(0),
                random: Cell::new(0),
                stack: Cell::new((0, 0)),
                is_in_library: Cell::new(false),
            }
        };
    }

    #[inline]
    pub fn current() -> *const Thread {
        THREAD.with(std::ptr::from_ref)
    }
}

const _: () = assert!(size_of::<Thread>() == 64);

pub use thread_local::current;
