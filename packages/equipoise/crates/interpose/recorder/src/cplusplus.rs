//! Records `new` and `delete` of C++, under their mangled names.
//!
//! Some allocators, such as jemalloc, have their own `new` and `delete`, which do not call malloc.
//! A recording of malloc alone would miss them. `free` accepts the blocks of all of these
//! allocators and of the C++ library.

use std::ffi::c_void;
use std::mem::transmute;

use equipoise_interpose::hooks::Next;

use crate::record::{Origin, record_block};
use crate::{free, next};

macro_rules! new {
    ($($name:ident = $symbol:literal ( $($extra:ident: $kind:ty),* ), $aligned:expr;)*) => { $(
        /// An `operator new`. If there is no memory, the next `operator new` reports the failure.
        #[unsafe(export_name = $symbol)]
        pub unsafe extern "C-unwind" fn $name(size: usize $(, $extra: $kind)*) -> *mut c_void {
            static NEXT: Next = Next::new(concat!($symbol, "\0"));
            let alignment: Option<usize> = $aligned;
            // SAFETY: the allocator refuses requests that it cannot meet.
            let block = unsafe {
                match alignment {
                    None => next::malloc(size.max(1)),
                    Some(alignment) => next::memalign(alignment, size.max(1)),
                }
            };
            if block.is_null() {
                let function = NEXT.address_or_null();
                if function.is_null() {
                    return block;
                }
                let function: unsafe extern "C-unwind" fn(usize $(, $kind)*) -> *mut c_void =
                    // SAFETY: the function of that mangled name has this signature.
                    unsafe { transmute(function) };
                // SAFETY: the arguments are those of this call.
                return unsafe { function(size $(, $extra)*) };
            }
            record_block(block, size, if alignment.is_some() { Origin::Aligned } else { Origin::Plain })
        }
    )* };
}

macro_rules! delete {
    ($($name:ident = $symbol:literal ( $($extra:ident: $kind:ty),* );)*) => { $(
        /// An `operator delete`.
        #[unsafe(export_name = $symbol)]
        pub unsafe extern "C" fn $name(block: *mut c_void $(, $extra: $kind)*) {
            $(let _ = $extra;)*
            // SAFETY: the caller vouches for the block.
            unsafe { free(block) };
        }
    )* };
}

/// The C++ type `std::nothrow_t const&`.
type NoThrow = *const c_void;

#[rustfmt::skip]
new! {
    new = "_Znwm"(), None;
    new_array = "_Znam"(), None;
    new_nothrow = "_ZnwmRKSt9nothrow_t"(nothrow: NoThrow), None;
    new_array_nothrow = "_ZnamRKSt9nothrow_t"(nothrow: NoThrow), None;
    new_aligned = "_ZnwmSt11align_val_t"(alignment: usize), Some(alignment);
    new_array_aligned = "_ZnamSt11align_val_t"(alignment: usize), Some(alignment);
    new_aligned_nothrow =
        "_ZnwmSt11align_val_tRKSt9nothrow_t"(alignment: usize, nothrow: NoThrow), Some(alignment);
    new_array_aligned_nothrow =
        "_ZnamSt11align_val_tRKSt9nothrow_t"(alignment: usize, nothrow: NoThrow), Some(alignment);
}

#[rustfmt::skip]
delete! {
    delete = "_ZdlPv"();
    delete_array = "_ZdaPv"();
    delete_sized = "_ZdlPvm"(size: usize);
    delete_array_sized = "_ZdaPvm"(size: usize);
    delete_nothrow = "_ZdlPvRKSt9nothrow_t"(nothrow: NoThrow);
    delete_array_nothrow = "_ZdaPvRKSt9nothrow_t"(nothrow: NoThrow);
    delete_aligned = "_ZdlPvSt11align_val_t"(alignment: usize);
    delete_array_aligned = "_ZdaPvSt11align_val_t"(alignment: usize);
    delete_sized_aligned = "_ZdlPvmSt11align_val_t"(size: usize, alignment: usize);
    delete_array_sized_aligned = "_ZdaPvmSt11align_val_t"(size: usize, alignment: usize);
    delete_aligned_nothrow =
        "_ZdlPvSt11align_val_tRKSt9nothrow_t"(alignment: usize, nothrow: NoThrow);
    delete_array_aligned_nothrow =
        "_ZdaPvSt11align_val_tRKSt9nothrow_t"(alignment: usize, nothrow: NoThrow);
}
