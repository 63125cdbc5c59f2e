//! A mutex that needs no allocation: mutex 2 of Drepper, "Futexes Are Tricky" (2011). A thread holds
//! the lock for some tens of nanoseconds only, so a waiting thread spins before it sleeps.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use equipoise_interpose::process::abort_with;

/// States of the lock.
const FREE: u32 = 0;
const HELD: u32 = 1;
const HELD_WITH_WAITERS: u32 = 2;
/// Maximum number of attempts to get the lock before the thread sleeps.
const MAX_SPINS: u32 = 100;
/// Value of `owner` while no thread holds the lock.
const NO_OWNER: usize = 0;

/// The lock of the heap.
pub struct Lock {
    state: AtomicU32,
    /// Address of the `errno` of the thread that holds the lock. The address is unique for each
    /// thread, and stays the same after a fork.
    owner: AtomicUsize,
}

impl Lock {
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            owner: AtomicUsize::new(NO_OWNER),
        }
    }

    /// Waits until this thread holds the lock. If it already holds the lock, a signal handler or a
    /// panic has interrupted the allocator. The process then aborts instead of waiting forever.
    pub fn acquire(&self) {
        let thread = this_thread();
        if !self.try_change(FREE, HELD) {
            if self.owner.load(Ordering::Relaxed) == thread {
                abort_with(&[
                    b"libequipoise_dlmalloc: the allocator was entered from within itself\n",
                ]);
            }
            self.spin_or_sleep();
        }
        self.owner.store(thread, Ordering::Relaxed);
    }

    fn spin_or_sleep(&self) {
        for _ in 0..MAX_SPINS {
            if self.state.load(Ordering::Relaxed) == FREE && self.try_change(FREE, HELD) {
                return;
            }
            std::hint::spin_loop();
        }
        while self.state.swap(HELD_WITH_WAITERS, Ordering::Acquire) != FREE {
            self.sleep_while(HELD_WITH_WAITERS);
        }
    }

    /// Releases the lock, which this thread must hold.
    pub fn release(&self) {
        self.owner.store(NO_OWNER, Ordering::Relaxed);
        if self.state.swap(FREE, Ordering::Release) == HELD_WITH_WAITERS {
            self.wake_one();
        }
    }

    fn try_change(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    fn sleep_while(&self, state: u32) {
        self.futex(libc::FUTEX_WAIT, state);
    }

    fn wake_one(&self) {
        self.futex(libc::FUTEX_WAKE, 1);
    }

    fn futex(&self, operation: libc::c_int, number: u32) {
        let (word, operation) = (self.state.as_ptr(), operation | libc::FUTEX_PRIVATE_FLAG);
        let no_timeout = std::ptr::null::<libc::timespec>();
        // SAFETY: the word is valid and aligned, and the timeout may be null.
        unsafe { libc::syscall(libc::SYS_futex, word, operation, number, no_timeout) };
    }
}

fn this_thread() -> usize {
    // SAFETY: the C library gives every thread a location.
    unsafe { libc::__errno_location() as usize }
}

#[cfg(test)]
mod tests {
    use super::Lock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_thread_at_a_time_holds_the_lock() {
        let lock = Lock::new();
        let inside = AtomicUsize::new(0);
        let maximum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        lock.acquire();
                        let owners = 1 + inside.fetch_add(1, Ordering::SeqCst);
                        maximum.fetch_max(owners, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        lock.release();
                    }
                });
            }
        });
        assert_eq!(maximum.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn acquiring_the_lock_twice_aborts_the_process() {
        let lock = Lock::new();
        // SAFETY: the child calls only functions that are safe after a fork, and never returns.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: plain system calls. The alarm ends a child that hangs.
            unsafe {
                libc::close(libc::STDERR_FILENO);
                libc::alarm(20);
            }
            lock.acquire();
            lock.acquire();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: `status` is valid for writing, and the child was not reaped.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status));
        assert_eq!(libc::WTERMSIG(status), libc::SIGABRT);
    }
}
