//! The allocator behind this library: the functions that would be called without it.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::system;

/// One function of the next library, looked up before it is first called.
pub struct Next {
    name: &'static CStr,
    function: AtomicPtr<c_void>,
}

impl Next {
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            function: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Null while the thread is looking one up (the C library may allocate for that), and if no
    /// library has it.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        let function = self.function.load(Ordering::Relaxed);
        if function.is_null() {
            self.look_up()
        } else {
            function
        }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let thread = system::quietly(system::thread);
        if LOOKING_UP.load(Ordering::Relaxed) == thread {
            return ptr::null_mut();
        }
        while LOOKING_UP
            .compare_exchange_weak(0, thread, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        // SAFETY: the name is NUL-terminated.
        let found = system::quietly(|| unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) });
        self.function.store(found, Ordering::Relaxed);
        LOOKING_UP.store(0, Ordering::Release);
        found
    }
}

/// The thread that looks up a function, or 0.
static LOOKING_UP: AtomicU32 = AtomicU32::new(0);

macro_rules! next {
    ($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),*) -> $result:ty, $symbol:literal, else $otherwise:expr) => {
        $(#[$about])*
        ///
        /// # Safety
        /// As the C function of that name.
        #[inline]
        pub unsafe fn $name($($argument: $kind),*) -> $result {
            static NEXT: Next = Next::new($symbol);
            let function = NEXT.get();
            if function.is_null() {
                return $otherwise;
            }
            let function: unsafe extern "C" fn($($kind),*) -> $result =
                // SAFETY: the function of that name has this signature in every C library.
                unsafe { transmute(function) };
            // SAFETY: the caller vouches for the arguments.
            unsafe { function($($argument),*) }
        }
    };
}

next!(
    /// C17.
    malloc(size: usize) -> *mut c_void, c"malloc", else early(size)
);
next!(
    /// C17.
    calloc(count: usize, size: usize) -> *mut c_void, c"calloc", else
        count.checked_mul(size).map_or(ptr::null_mut(), early)
);
next!(
    /// C17.
    realloc(block: *mut c_void, size: usize) -> *mut c_void, c"realloc", else {
        let _ = block;
        early(size)
    }
);
next!(
    /// C17.
    free(block: *mut c_void) -> (), c"free", else { let _ = block; }
);
next!(
    /// C17.
    aligned_alloc(alignment: usize, size: usize) -> *mut c_void, c"aligned_alloc", else {
        let _ = (alignment, size);
        out_of_memory()
    }
);
next!(
    /// GNU.
    memalign(alignment: usize, size: usize) -> *mut c_void, c"memalign", else {
        let _ = (alignment, size);
        out_of_memory()
    }
);
next!(
    /// POSIX.
    posix_memalign(result: *mut *mut c_void, alignment: usize, size: usize) -> c_int,
    c"posix_memalign", else {
        let _ = (result, alignment, size);
        libc::ENOMEM
    }
);
next!(
    /// GNU.
    valloc(size: usize) -> *mut c_void, c"valloc", else {
        let _ = size;
        out_of_memory()
    }
);
next!(
    /// GNU.
    pvalloc(size: usize) -> *mut c_void, c"pvalloc", else {
        let _ = size;
        out_of_memory()
    }
);

fn out_of_memory() -> *mut c_void {
    // SAFETY: the C library gives every thread a valid location.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    ptr::null_mut()
}

/// What is allocated while the first function is looked up; never given back.
static mut EARLY: [Unit; EARLY_UNITS] = [[0; UNIT_WORDS]; EARLY_UNITS];
static EARLY_USED: AtomicUsize = AtomicUsize::new(0);

/// 16 bytes, as blocks are aligned; before each block one holds its size.
type Unit = [usize; UNIT_WORDS];
const UNIT_WORDS: usize = 16 / size_of::<usize>();
const EARLY_UNITS: usize = 1 << 12;

fn early(size: usize) -> *mut c_void {
    let units = 1 + size.div_ceil(size_of::<Unit>());
    let at = EARLY_USED.fetch_add(units.min(EARLY_UNITS), Ordering::Relaxed);
    if at.saturating_add(units) > EARLY_UNITS {
        return out_of_memory();
    }
    // SAFETY: `at + units` units lie inside, and no other call gets the same ones.
    unsafe {
        let header = (&raw mut EARLY).cast::<Unit>().add(at);
        (*header)[0] = size;
        header.add(1).cast()
    }
}

/// The size of a block that was allocated while the first function was looked up.
#[inline]
pub fn early_size(block: *mut c_void) -> Option<usize> {
    let first = (&raw const EARLY).addr();
    if block.addr().wrapping_sub(first) >= size_of::<[Unit; EARLY_UNITS]>() {
        return None;
    }
    // SAFETY: every early block has its size before it.
    Some(unsafe { block.cast::<usize>().sub(UNIT_WORDS).read() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_block_knows_its_size_and_others_are_none() {
        let (one, other) = (early(5), early(1000));
        assert_eq!(early_size(one), Some(5));
        assert_eq!(early_size(other), Some(1000));
        assert_eq!(other.addr() % 16, 0);
        assert_eq!(early_size((&raw const EARLY_USED).cast_mut().cast()), None);
        assert!(early(usize::MAX).is_null());
    }
}
