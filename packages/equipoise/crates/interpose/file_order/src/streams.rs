//! The sorted listing of each open folder stream.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_long};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use equipoise_interpose::errno;
use libc::{DIR, dirent64};

use crate::listing::Listing;

/// Listings by the addresses of their streams.
static LISTINGS: Mutex<BTreeMap<usize, Listing>> = Mutex::new(BTreeMap::new());

fn listings() -> MutexGuard<'static, BTreeMap<usize, Listing>> {
    // A panic ends the process, so a poisoned lock is never seen.
    LISTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a folder by `read_entry`, unless it was read already.
///
/// # Safety
/// No other thread uses the stream. `read_entry` returns null, or an entry that is valid until the
/// next call.
pub unsafe fn read_folder(stream: *mut DIR, mut read_entry: impl FnMut() -> *mut dirent64) {
    if listings().contains_key(&stream.addr()) {
        return;
    }
    // The lock is not held, so other threads can list other folders meanwhile.
    // SAFETY: the caller vouches for the entries.
    let listing = unsafe {
        Listing::read(
            || {
                errno::set(0);
                read_entry()
            },
            || Some(errno::get()).filter(|number| *number != 0),
        )
    };
    listings().insert(stream.addr(), listing);
}

/// Returns the next entry; null at the end.
///
/// # Errors
/// The error number that stopped the reading of the folder.
pub fn advance(stream: *mut DIR) -> Result<*mut dirent64, c_int> {
    listings()
        .get_mut(&stream.addr())
        .map_or(Ok(ptr::null_mut()), Listing::advance)
}

/// Returns the position of the next entry; 0 if the folder was not read yet.
pub fn position(stream: *mut DIR) -> c_long {
    let position = listings().get(&stream.addr()).map_or(0, Listing::position);
    c_long::try_from(position).unwrap_or(c_long::MAX)
}

pub fn go_to(stream: *mut DIR, position: c_long) {
    if let Some(listing) = listings().get_mut(&stream.addr()) {
        listing.go_to(usize::try_from(position).unwrap_or(0));
    }
}

/// Drops the listing of a stream.
pub fn forget(stream: *mut DIR) {
    listings().remove(&stream.addr());
}
