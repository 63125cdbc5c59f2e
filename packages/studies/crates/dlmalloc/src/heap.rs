//! The one heap of the process.

use std::cell::UnsafeCell;

use dlmalloc::Dlmalloc;

use crate::lock::Lock;
use crate::mapped;

const WORD: usize = size_of::<usize>();

/// The heap that every exported function uses.
pub static HEAP: Heap = Heap::new();

/// Doug Lea's malloc behind a mutex.
pub struct Heap {
    lock: Lock,
    allocator: UnsafeCell<Dlmalloc>,
}

// SAFETY: the allocator is reached only through `locked`, by one thread at a time.
unsafe impl Sync for Heap {}

impl Heap {
    const fn new() -> Self {
        Self {
            lock: Lock::new(),
            allocator: UnsafeCell::new(Dlmalloc::new()),
        }
    }

    /// `size` bytes, or null.
    pub fn allocate(&self, size: usize) -> *mut u8 {
        if size >= mapped::THRESHOLD {
            return mapped::allocate(size);
        }
        // SAFETY: any size may be asked for.
        self.locked(|allocator| unsafe { allocator.c_malloc(size) })
    }

    /// `size` zero bytes, or null.
    pub fn allocate_zeroed(&self, size: usize) -> *mut u8 {
        if size >= mapped::THRESHOLD {
            return mapped::allocate(size);
        }
        // SAFETY: any size may be asked for, at the alignment that every block has.
        self.locked(|allocator| unsafe { allocator.calloc(size, 2 * size_of::<usize>()) })
    }

    /// `size` bytes at a multiple of `alignment`, or null. `alignment` is a power of two and
    /// small against the address space.
    pub fn allocate_aligned(&self, alignment: usize, size: usize) -> *mut u8 {
        // SAFETY: the alignment is a power of two.
        self.locked(|allocator| unsafe { allocator.c_memalign(alignment, size) })
    }

    /// The block with `size` bytes, perhaps elsewhere, or null with the block as it was.
    ///
    /// # Safety
    /// `block` is null or a live block of this heap.
    pub unsafe fn reallocate(&self, block: *mut u8, size: usize) -> *mut u8 {
        if block.is_null() {
            return self.allocate(size);
        }
        // SAFETY: the caller vouches for the block.
        let head = self.locked(|_| unsafe { head(block) });
        match (mapped::is_mapped(head), size >= mapped::THRESHOLD) {
            // SAFETY: the caller vouches for the block.
            (false, false) => self.locked(|allocator| unsafe { allocator.c_realloc(block, size) }),
            // SAFETY: the caller vouches for the block, which is mapped.
            (true, true) => unsafe { mapped::resize(block, head, size) },
            // SAFETY: the caller vouches for the block.
            _ => unsafe { self.moved(block, size) },
        }
    }

    /// The block's bytes, as many as fit, in a new one; null with the block as it was.
    ///
    /// # Safety
    /// `block` is a live block of this heap.
    unsafe fn moved(&self, block: *mut u8, size: usize) -> *mut u8 {
        let new = self.allocate(size);
        if !new.is_null() {
            // SAFETY: two live blocks, each as long as the shorter one at least.
            unsafe {
                let bytes = self.usable_size(block).min(size);
                new.copy_from_nonoverlapping(block, bytes);
                self.release(block);
            }
        }
        new
    }

    /// Frees the block.
    ///
    /// # Safety
    /// `block` is a live block of this heap.
    pub unsafe fn release(&self, block: *mut u8) {
        // SAFETY: the caller vouches for the block.
        let head = self.locked(|allocator| unsafe {
            let head = head(block);
            if !mapped::is_mapped(head) {
                allocator.c_free(block);
            }
            head
        });
        if mapped::is_mapped(head) {
            // SAFETY: the caller vouches for the block, which is mapped.
            unsafe { mapped::release(block, head) };
        }
    }

    /// Returns the bytes of the block that its owner may use, by the header before it.
    ///
    /// Of a chunk in use all but the word before the block is the owner's; of a mapped one, all
    /// but two.
    ///
    /// # Safety
    /// `block` is a live block of this heap.
    pub unsafe fn usable_size(&self, block: *mut u8) -> usize {
        const FLAGS: usize = 0b111;
        // SAFETY: the caller vouches for the block.
        let head = self.locked(|_| unsafe { head(block) });
        if mapped::is_mapped(head) {
            mapped::usable_size(head)
        } else {
            (head & !FLAGS) - WORD
        }
    }

    fn locked<Answer>(&self, work: impl FnOnce(&mut Dlmalloc) -> Answer) -> Answer {
        self.lock.acquire();
        // SAFETY: this thread holds the lock, and `work` keeps no reference.
        let answer = work(unsafe { &mut *self.allocator.get() });
        self.lock.release();
        answer
    }
}

/// Doug Lea's boundary tag: the word before a block holds the size of its chunk, with three
/// flags in the lowest bits. Read under the lock, because a neighbour's owner may be changing
/// the flags.
///
/// # Safety
/// `block` is a live block of the heap.
unsafe fn head(block: *mut u8) -> usize {
    // SAFETY: every live block has its header before it.
    usize::from_ne_bytes(unsafe { block.sub(WORD).cast::<[u8; WORD]>().read() })
}

/// Holds the lock across a fork, so that the child finds a consistent heap.
#[cfg(not(test))]
mod fork {
    use equipoise_interpose::process::abort_with;

    use super::HEAP;

    extern "C" fn before() {
        HEAP.lock.acquire();
    }

    extern "C" fn after() {
        HEAP.lock.release();
    }

    fn register() {
        // SAFETY: the three functions live as long as the library, which is never unloaded.
        let status = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
        if status != 0 {
            abort_with(&[b"libequipoise_dlmalloc: pthread_atfork failed\n"]);
        }
    }

    // At load, before any handler of the program is registered. So handlers of the program run
    // before the lock is taken at a fork, and after it is released.
    equipoise_interpose::at_load!(register);
}
