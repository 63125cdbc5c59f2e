//! All entries of one folder, in the order of their names.

use std::ffi::{CStr, c_char, c_int};
use std::mem::{offset_of, size_of};
use std::ptr;

use libc::dirent64;

const WORD_BYTES: usize = size_of::<u64>();
/// Number of words of the longest entry. A program may copy this many words, even of a short entry,
/// so the listing ends with this much padding.
const ENTRY_WORDS: usize = size_of::<dirent64>().div_ceil(WORD_BYTES);

/// The sorted entries of a folder, and the position of the next entry.
pub struct Listing {
    /// Entries one after the other, each at the start of a word, and `ENTRY_WORDS` words of
    /// padding.
    entries: Vec<u64>,
    /// Index in `entries` at which each entry starts, in the order of names.
    starts: Vec<usize>,
    /// Index in `starts` of the next entry.
    position: usize,
    /// Error number that stopped the reading.
    error: Option<c_int>,
}

impl Listing {
    /// Reads entries until there are no more.
    ///
    /// # Safety
    /// `read_entry` returns null, or an entry that is valid until the next call.
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
            // SAFETY: the entry is as long as its header says, and the words have space for it.
            unsafe {
                let length = usize::from((*entry).d_reclen);
                let start = entries.len();
                entries.resize(start + length.div_ceil(WORD_BYTES), 0);
                let target = entries[start..].as_mut_ptr().cast::<u8>();
                ptr::copy_nonoverlapping(entry.cast::<u8>(), target, length);
            }
        }
        entries.resize(entries.len() + ENTRY_WORDS, 0);
        let mut listing = Self {
            entries,
            starts,
            position: 0,
            error: error(),
        };
        listing.sort();
        listing
    }

    fn sort(&mut self) {
        let entries = &self.entries;
        self.starts.sort_by_key(|start| name_at(entries, *start));
        for (position, start) in self.starts.iter().enumerate() {
            // `d_off` is the position of the next entry (readdir(3)).
            let after = i64::try_from(position + 1).unwrap_or(i64::MAX);
            self.entries[start + offset_of!(dirent64, d_off) / WORD_BYTES] = after.cast_unsigned();
        }
    }

    /// Returns the next entry, which is valid until this listing is dropped; null at the end.
    ///
    /// # Errors
    /// The error number that stopped the reading, after all entries that were read.
    pub fn advance(&mut self) -> Result<*mut dirent64, c_int> {
        let Some(start) = self.starts.get(self.position) else {
            return self.error.map_or(Ok(ptr::null_mut()), Err);
        };
        self.position += 1;
        Ok(self.entries[*start..].as_mut_ptr().cast::<dirent64>())
    }

    /// Returns the number of entries before the next one.
    pub fn position(&self) -> usize {
        self.position
    }

    pub fn go_to(&mut self, position: usize) {
        self.position = position.min(self.starts.len());
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

    fn entry_of(name: &str, off: i64) -> dirent64 {
        // SAFETY: all of an entry may be zero.
        let mut entry: dirent64 = unsafe { std::mem::zeroed() };
        let length = offset_of!(dirent64, d_name) + name.len() + 1;
        entry.d_reclen = u16::try_from(length.next_multiple_of(WORD_BYTES)).expect("short");
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
    fn entries_have_the_order_of_their_names_and_their_positions() {
        let mut listing = listing_of(&["b", "a longer name than most", "..", "."], None);
        let read: Vec<_> = std::iter::from_fn(|| next_name(&mut listing)).collect();
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [".", "..", "a longer name than most", "b"]);
        assert!(read.iter().map(|(_, off)| *off).eq(1..=4));
    }

    #[test]
    fn reading_continues_at_a_position() {
        let mut listing = listing_of(&["c", "b", "a"], None);
        listing.go_to(2);
        assert_eq!(next_name(&mut listing), Some(("c".to_owned(), 3)));
        assert_eq!(listing.position(), 3);
        listing.go_to(99);
        assert_eq!(next_name(&mut listing), None);
        listing.go_to(0);
        assert_eq!(next_name(&mut listing), Some(("a".to_owned(), 1)));
    }

    #[test]
    fn an_error_is_returned_after_the_entries_read_before_it() {
        let mut listing = listing_of(&["only"], Some(libc::EIO));
        assert!(next_name(&mut listing).is_some());
        assert_eq!(listing.advance(), Err(libc::EIO));
    }

    #[test]
    fn an_empty_folder_has_no_entries() {
        assert_eq!(next_name(&mut listing_of(&[], None)), None);
    }
}
