//! The interventions `quick_sync` and `keep_cache`. With `quick_sync`, syncs return at once, before
//! the data are on the disk. With `keep_cache`, files stay in the page cache, although the program
//! drops them.

use std::ffi::{c_int, c_uint, c_void};

use libc::{off64_t, size_t};

use crate::intervention::{Intervention, current};

fn skips_sync() -> bool {
    current() == Intervention::QuickSync
}

/// Whether a descriptor is open; sets `errno` to `EBADF` if it is not.
fn is_open(descriptor: c_int) -> bool {
    // SAFETY: passes numbers only.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) >= 0 }
}

/// Returns the result of a sync without syncing: 0, or -1 for a descriptor that is not open.
fn result_without_sync(descriptor: c_int) -> c_int {
    if is_open(descriptor) { 0 } else { -1 }
}

equipoise_interpose::hooks! {
    fn fsync(descriptor: c_int) -> c_int {
        if skips_sync() { result_without_sync(descriptor) } else { next::fsync(descriptor) }
    }

    fn fdatasync(descriptor: c_int) -> c_int {
        if skips_sync() { result_without_sync(descriptor) } else { next::fdatasync(descriptor) }
    }

    fn sync_file_range(descriptor: c_int, offset: off64_t, bytes: off64_t, flags: c_uint) -> c_int {
        if skips_sync() {
            return result_without_sync(descriptor);
        }
        next::sync_file_range(descriptor, offset, bytes, flags)
    }

    fn syncfs(descriptor: c_int) -> c_int {
        if skips_sync() { result_without_sync(descriptor) } else { next::syncfs(descriptor) }
    }

    fn sync() {
        if !skips_sync() {
            next::sync();
        }
    }

    fn msync(address: *mut c_void, bytes: size_t, flags: c_int) -> c_int {
        if skips_sync() && flags & libc::MS_INVALIDATE == 0 {
            return 0;
        }
        next::msync(address, bytes, flags)
    }

    /// The result is the error number.
    fn posix_fadvise(descriptor: c_int, offset: off64_t, bytes: off64_t, advice: c_int) -> c_int {
        if advice == libc::POSIX_FADV_DONTNEED && current() == Intervention::KeepCache {
            return if is_open(descriptor) { 0 } else { libc::EBADF };
        }
        next::posix_fadvise(descriptor, offset, bytes, advice)
    }
}

equipoise_interpose::exports! {
    /// The same function as `posix_fadvise` on 64-bit machines.
    fn posix_fadvise64(descriptor: c_int, offset: off64_t, bytes: off64_t, advice: c_int) -> c_int {
        posix_fadvise(descriptor, offset, bytes, advice)
    }
}
