//! The heap of the process: Doug Lea's malloc behind a lock.
//!
//! A block is the memory that a caller gets. The word before it is its *head*: the size of the
//! chunk (the word and the block), with three flags in the lowest bits.

use std::cell::UnsafeCell;

use dlmalloc::Dlmalloc;

use crate::lock::Lock;
use crate::mapped;

const WORD: usize = size_of::<usize>();
/// Every block starts at a multiple of this number of bytes.
const BLOCK_ALIGNMENT: usize = 2 * WORD;

/// The heap that every exported function uses.
pub static HEAP: Heap = Heap::new();

/// Doug Lea's malloc, which only one thread at a time uses.
pub struct Heap {
    lock: Lock,
    allocator: UnsafeCell<Dlmalloc>,
}

// SAFETY: the allocator is used only through `with_lock`, by one thread at a time.
unsafe impl Sync for Heap {}

impl Heap {
    const fn new() -> Self {
        Self {
            lock: Lock::new(),
            allocator: UnsafeCell::new(Dlmalloc::new()),
        }
    }

    /// Allocates `size` bytes; null if there is no memory. A large block has a separate mapping.
    pub fn allocate(&self, size: usize) -> *mut u8 {
        if size >= mapped::MIN_MAPPED_SIZE {
            return mapped::allocate(size);
        }
        // SAFETY: any size may be requested.
        self.with_lock(|allocator| unsafe { allocator.c_malloc(size) })
    }

    /// Allocates `size` zero bytes; null if there is no memory.
    pub fn allocate_zeroed(&self, size: usize) -> *mut u8 {
        if size >= mapped::MIN_MAPPED_SIZE {
            // The kernel fills a new mapping with zeros.
            return mapped::allocate(size);
        }
        // SAFETY: any size may be requested.
        self.with_lock(|allocator| unsafe { allocator.calloc(size, BLOCK_ALIGNMENT) })
    }

    /// Allocates `size` bytes at a multiple of `alignment`; null if there is no memory. `alignment`
    /// is a power of two, at most `MAX_ALIGNMENT`.
    pub fn allocate_aligned(&self, alignment: usize, size: usize) -> *mut u8 {
        // SAFETY: the alignment is a power of two.
        self.with_lock(|allocator| unsafe { allocator.c_memalign(alignment, size) })
    }

    /// Resizes a block, and returns its address. If that fails, returns null, and the block is
    /// unchanged.
    ///
    /// # Safety
    /// `block` is null or a live block of this heap.
    pub unsafe fn reallocate(&self, block: *mut u8, size: usize) -> *mut u8 {
        if block.is_null() {
            return self.allocate(size);
        }
        // SAFETY: the caller vouches for the block.
        let head = self.with_lock(|_| unsafe { read_head(block) });
        match (mapped::is_mapped(head), size >= mapped::MIN_MAPPED_SIZE) {
            (false, false) => self.with_lock(|allocator| {
                // SAFETY: the caller vouches for the block.
                unsafe { allocator.c_realloc(block, size) }
            }),
            // SAFETY: the caller vouches for the block, which is mapped.
            (true, true) => unsafe { mapped::resize(block, head, size) },
            // SAFETY: the caller vouches for the block.
            _ => unsafe { self.move_block(block, size) },
        }
    }

    /// Moves a block to a new block of `size` bytes. If that fails, returns null.
    ///
    /// # Safety
    /// `block` is a live block of this heap.
    unsafe fn move_block(&self, block: *mut u8, size: usize) -> *mut u8 {
        let new_block = self.allocate(size);
        if !new_block.is_null() {
            // SAFETY: both blocks are live and at least `kept_size` long.
            unsafe {
                let kept_size = self.usable_size(block).min(size);
                new_block.copy_from_nonoverlapping(block, kept_size);
                self.release(block);
            }
        }
        new_block
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` is a live block of this heap.
    pub unsafe fn release(&self, block: *mut u8) {
        // SAFETY: the caller vouches for the block.
        let head = self.with_lock(|allocator| unsafe {
            let head = read_head(block);
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

    /// Returns the number of bytes that the owner of a block may use.
    ///
    /// It is one word less than the size of the chunk; for a mapped block two words less.
    ///
    /// # Safety
    /// `block` is a live block of this heap.
    pub unsafe fn usable_size(&self, block: *mut u8) -> usize {
        /// The bits of a head that hold the flags.
        const FLAGS: usize = 0b111;
        // SAFETY: the caller vouches for the block.
        let head = self.with_lock(|_| unsafe { read_head(block) });
        if mapped::is_mapped(head) {
            mapped::usable_size(head)
        } else {
            (head & !FLAGS) - WORD
        }
    }

    fn with_lock<T>(&self, work: impl FnOnce(&mut Dlmalloc) -> T) -> T {
        self.lock.acquire();
        // SAFETY: this thread holds the lock, and `work` keeps no reference.
        let result = work(unsafe { &mut *self.allocator.get() });
        self.lock.release();
        result
    }
}

/// Reads the head of a block. The lock must be held, because another thread may change the flags.
///
/// # Safety
/// `block` is a live block of the heap.
unsafe fn read_head(block: *mut u8) -> usize {
    // SAFETY: every live block has its head before it.
    usize::from_ne_bytes(unsafe { block.sub(WORD).cast::<[u8; WORD]>().read() })
}

/// Holds the lock during a fork, so that the child finds a consistent heap.
#[cfg(not(test))]
mod fork {
    use equipoise_interpose::process::abort_with;

    use super::HEAP;

    extern "C" fn before_fork() {
        HEAP.lock.acquire();
    }

    extern "C" fn after_fork() {
        HEAP.lock.release();
    }

    fn register() {
        // SAFETY: the three functions live as long as the library, which is never unloaded.
        let status =
            unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
        if status != 0 {
            abort_with(&[b"libequipoise_dlmalloc: pthread_atfork failed\n"]);
        }
    }

    // Registered at load, before any handler of the program. So handlers of the program run before
    // the lock is taken, and after it is released.
    equipoise_interpose::at_load!(register);
}
