//! Large buffers for streams of the C library, in the static memory of this library. A slot is the
//! place of a buffer.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use libc::FILE;

/// Size of a buffer.
pub const BUFFER_BYTES: usize = 256 << 10;
/// Number of slots.
const BUFFER_COUNT: usize = 64;

struct Buffers(UnsafeCell<[[c_char; BUFFER_BYTES]; BUFFER_COUNT]>);

// SAFETY: a buffer belongs to one stream, which uses it under the stream's own lock.
unsafe impl Sync for Buffers {}

/// Memory of the buffers. The pages of unused buffers are never touched, so they take no memory.
static MEMORY: Buffers = Buffers(UnsafeCell::new([[0; BUFFER_BYTES]; BUFFER_COUNT]));
/// Stream of each slot; null if the slot is free.
static STREAMS: [AtomicPtr<FILE>; BUFFER_COUNT] =
    [const { AtomicPtr::new(ptr::null_mut()) }; BUFFER_COUNT];
/// Number of slots in use. If it is 0, a search for a stream ends at once.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// The index of a slot in use.
pub struct Slot(usize);

impl Slot {
    /// Claims a free slot for an open stream.
    pub fn claim(stream: *mut FILE) -> Option<Self> {
        let index = STREAMS.iter().position(|slot| {
            slot.compare_exchange(ptr::null_mut(), stream, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })?;
        IN_USE.fetch_add(1, Ordering::AcqRel);
        Some(Self(index))
    }

    /// Takes the slot from a stream that is about to be closed, and returns the slot. The C library
    /// may soon open another stream at this address. So the slot belongs to no stream until it is
    /// released.
    pub fn take_from(stream: *mut FILE) -> Option<Self> {
        let slot = slot_of(stream)?;
        STREAMS[slot].store(closing_mark(), Ordering::Release);
        Some(Self(slot))
    }

    pub fn release(self) {
        STREAMS[self.0].store(ptr::null_mut(), Ordering::Release);
        IN_USE.fetch_sub(1, Ordering::AcqRel);
    }

    pub fn buffer(&self) -> *mut c_char {
        // SAFETY: the index is below BUFFER_COUNT.
        unsafe { MEMORY.0.get().cast::<c_char>().add(self.0 * BUFFER_BYTES) }
    }
}

/// Returns an address that no stream has; it marks a slot that was taken from its stream.
fn closing_mark() -> *mut FILE {
    MEMORY.0.get().cast()
}

fn slot_of(stream: *mut FILE) -> Option<usize> {
    if stream.is_null() || IN_USE.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mut slots = STREAMS.iter();
    slots.position(|slot| slot.load(Ordering::Acquire) == stream)
}

pub fn has_buffer(stream: *mut FILE) -> bool {
    slot_of(stream).is_some()
}

pub fn for_each_stream(work: impl Fn(*mut FILE)) {
    for slot in &STREAMS {
        let stream = slot.load(Ordering::Acquire);
        if !stream.is_null() && stream != closing_mark() {
            work(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only one test, because all tests of a process share the slots.
    #[test]
    fn a_slot_belongs_to_one_stream_until_its_release() {
        let mut words = [0_u64; BUFFER_COUNT + 1];
        let words = words.iter_mut();
        let streams: Vec<*mut FILE> = words.map(|word| ptr::from_mut(word).cast()).collect();
        let slots = streams.iter().filter_map(|stream| Slot::claim(*stream));
        let slots: Vec<_> = slots.collect();
        assert_eq!(slots.len(), BUFFER_COUNT);
        assert!(has_buffer(streams[0]) && !has_buffer(streams[BUFFER_COUNT]));
        assert!(!has_buffer(ptr::null_mut()));
        let distance = slots[1].buffer().addr() - slots[0].buffer().addr();
        assert_eq!(distance, BUFFER_BYTES);
        let closing = Slot::take_from(streams[3]).expect("it has a slot");
        assert!(!has_buffer(streams[3]));
        assert!(Slot::claim(streams[3]).is_none());
        closing.release();
        assert!(Slot::claim(streams[3]).is_some_and(|slot| slot.0 == 3));
        let visits = std::cell::Cell::new(0);
        for_each_stream(|_| visits.set(visits.get() + 1));
        assert_eq!(visits.get(), BUFFER_COUNT);
    }
}
