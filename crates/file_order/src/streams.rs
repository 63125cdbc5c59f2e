//! Which listing belongs to which open stream.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_long};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{DIR, dirent64};

use crate::errno;
use crate::listing::Listing;
use crate::next::next;

/// By the address of the stream.
static LISTINGS: Mutex<BTreeMap<usize, Listing>> = Mutex::new(BTreeMap::new());

fn listings() -> MutexGuard<'static, BTreeMap<usize, Listing>> {
    // A panic ends the process, so nobody meets what it left.
    LISTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the whole folder, unless it was read already.
///
/// # Safety
/// The stream is open, and no other thread uses it.
pub unsafe fn begin(stream: *mut DIR) {
    if listings().contains_key(&stream.addr()) {
        return;
    }
    // Read without the lock: other threads list other folders meanwhile.
    // SAFETY: the caller vouches for the stream, and an entry stays until the next is read.
    let listing = unsafe {
        Listing::gather(
            || {
                errno::set(0);
                (next().read)(stream)
            },
            || Some(errno::get()).filter(|number| *number != 0),
        )
    };
    listings().insert(stream.addr(), listing);
}

/// The next entry; null at the end.
///
/// # Errors
/// What stopped the reading of the folder.
pub fn advance(stream: *mut DIR) -> Result<*mut dirent64, c_int> {
    listings()
        .get_mut(&stream.addr())
        .map_or(Ok(ptr::null_mut()), Listing::advance)
}

/// Where a stream stands; at its begin if nothing was read.
pub fn place(stream: *mut DIR) -> c_long {
    let place = listings().get(&stream.addr()).map_or(0, Listing::place);
    c_long::try_from(place).unwrap_or(c_long::MAX)
}

/// Goes on at a place.
pub fn go_to(stream: *mut DIR, place: c_long) {
    if let Some(listing) = listings().get_mut(&stream.addr()) {
        listing.go_to(usize::try_from(place).unwrap_or(0));
    }
}

/// Drops what was read of a stream.
pub fn forget(stream: *mut DIR) {
    listings().remove(&stream.addr());
}
