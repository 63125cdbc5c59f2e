//! All entries of one folder, in the order of their names.

use std::ffi::{CStr, c_char, c_int};
use std::mem::{offset_of, size_of};
use std::ptr;

use libc::dirent64;

const WORD: usize = size_of::<u64>();
/// Number of words that a copy of a whole entry reads.
const TAIL: usize = size_of::<dirent64>().div_ceil(WORD);

/// The entries of a folder as the C library read them, and the place of the next one.
pub struct Listing {
    /// Entries one after the other, each at the start of a word, and `TAIL` more words.
    entries: Vec<u64>,
    /// Start of each entry, in the order of names.
    starts: Vec<usize>,
    place: usize,
    /// Error number that stopped the reading.
    error: Option<c_int>,
}

impl Listing {
    /// Reads entries until there are no more.
    ///
    /// # Safety
    /// `read_entry` returns null, or an entry that stays until it is called again.
    pub unsafe fn read(
        mut read_entry: impl FnMut() -> *const dirent64,
        error: impl FnOnce() -> Option<c_int>,
    ) -> Self {
        let mut entries: Vec<u64> = Vec::new();
        let mut starts: Vec<usize> = Vec::new();
        loop {
            let entry = read_entry();
            if entry.is_null() {
                break;
            }
            starts.push(entries.len());
            // SAFETY: an entry has the length in its header, and the words have room for it.
            unsafe {
                let length = usize::from((*entry).d_reclen);
                let start = entries.len();
                entries.resize(start + length.div_ceil(WORD), 0);
                let room = entries[start..].as_mut_ptr().cast::<u8>();
                ptr::copy_nonoverlapping(entry.cast::<u8>(), room, length);
            }
        }
        entries.resize(entries.len() + TAIL, 0);
        let mut listing = Self {
            entries,
            starts,
            place: 0,
            error: error(),
        };
        listing.sort();
        listing
    }

    fn sort(&mut self) {
        let entries = &self.entries;
        self.starts.sort_by_key(|start| name_at(entries, *start));
        for (place, start) in self.starts.iter().enumerate() {
            let after = i64::try_from(place + 1).unwrap_or(i64::MAX);
            self.entries[start + offset_of!(dirent64, d_off) / WORD] = after.cast_unsigned();
        }
    }

    /// Returns the next entry, which stays until this listing is dropped; null at the end.
    ///
    /// # Errors
    /// The error number that stopped the reading, after all entries that were read.
    pub fn advance(&mut self) -> Result<*mut dirent64, c_int> {
        let Some(start) = self.starts.get(self.place) else {
            return self.error.map_or(Ok(ptr::null_mut()), Err);
        };
        self.place += 1;
        Ok(self.entries[*start..].as_mut_ptr().cast::<dirent64>())
    }

    /// Returns the number of entries before the next one.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Goes on at a place.
    pub fn go_to(&mut self, place: usize) {
        self.place = place.min(self.starts.len());
    }
}

fn name_at(entries: &[u64], start: usize) -> &CStr {
    let entry = entries[start..].as_ptr().cast::<c_char>();
    // SAFETY: an entry starts there, and its name ends in a zero byte.
    unsafe { CStr::from_ptr(entry.add(offset_of!(dirent64, d_name))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry of this name at a separate place.
    fn entry_of(name: &str, off: i64) -> dirent64 {
        // SAFETY: all of an entry may be zero.
        let mut entry: dirent64 = unsafe { std::mem::zeroed() };
        let length = offset_of!(dirent64, d_name) + name.len() + 1;
        entry.d_reclen = u16::try_from(length.next_multiple_of(WORD)).expect("short");
        entry.d_off = off;
        for (to, from) in entry.d_name.iter_mut().zip(name.bytes()) {
            *to = from.cast_signed();
        }
        entry
    }

    fn listing_of(names: &[&str], error: Option<c_int>) -> Listing {
        let entries: Vec<dirent64> = names.iter().map(|name| entry_of(name, 77)).collect();
        let mut rest = entries.iter();
        // SAFETY: the entries stay until the end of this function.
        unsafe { Listing::read(|| rest.next().map_or(ptr::null(), ptr::from_ref), || error) }
    }

    fn next_name(listing: &mut Listing) -> Option<(String, i64)> {
        let entry = listing.advance().expect("nothing failed");
        if entry.is_null() {
            return None;
        }
        // SAFETY: an entry of the listing, whose name ends in a zero byte.
        let (name, off) = unsafe { (CStr::from_ptr((*entry).d_name.as_ptr()), (*entry).d_off) };
        Some((name.to_string_lossy().into_owned(), off))
    }

    #[test]
    fn entries_come_in_the_order_of_their_names_and_know_their_places() {
        let mut listing = listing_of(&["b", "a longer name than most", "..", "."], None);
        let read: Vec<_> = std::iter::from_fn(|| next_name(&mut listing)).collect();
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [".", "..", "a longer name than most", "b"]);
        assert!(read.iter().map(|(_, off)| *off).eq(1..=4));
    }

    #[test]
    fn reading_goes_on_at_a_given_place() {
        let mut listing = listing_of(&["c", "b", "a"], None);
        listing.go_to(2);
        assert_eq!(next_name(&mut listing), Some(("c".to_owned(), 3)));
        assert_eq!(listing.place(), 3);
        listing.go_to(99);
        assert_eq!(next_name(&mut listing), None);
        listing.go_to(0);
        assert_eq!(next_name(&mut listing), Some(("a".to_owned(), 1)));
    }

    #[test]
    fn an_error_comes_after_what_was_read_before_it() {
        let mut listing = listing_of(&["only"], Some(libc::EIO));
        assert!(next_name(&mut listing).is_some());
        assert_eq!(listing.advance(), Err(libc::EIO));
    }

    #[test]
    fn an_empty_folder_ends_at_once() {
        assert_eq!(next_name(&mut listing_of(&[], None)), None);
    }
}
