//! Which stream has which of the large buffers: they are part of this library's own memory.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use libc::FILE;

/// Of each buffer.
pub const BUFFER_BYTES: usize = 256 << 10;
const BUFFERS: usize = 64;

struct Buffers(UnsafeCell<[[c_char; BUFFER_BYTES]; BUFFERS]>);

// SAFETY: a buffer is used by the stream that has its slot alone, under that stream's own lock.
unsafe impl Sync for Buffers {}

/// Touched only where they are used.
static MEMORY: Buffers = Buffers(UnsafeCell::new([[0; BUFFER_BYTES]; BUFFERS]));
static STREAMS: [AtomicPtr<FILE>; BUFFERS] = [const { AtomicPtr::new(ptr::null_mut()) }; BUFFERS];
/// How many slots are taken, so that without any nobody is looked for.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The place of one buffer.
pub struct Slot(usize);

impl Slot {
    /// A free one, for an open stream.
    pub fn claim(stream: *mut FILE) -> Option<Self> {
        let free = STREAMS.iter().position(|slot| {
            slot.compare_exchange(ptr::null_mut(), stream, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })?;
        TAKEN.fetch_add(1, Ordering::AcqRel);
        Some(Self(free))
    }

    /// That of a stream which is about to be closed: it is no stream's and not free, as the C
    /// library may give the place of the stream to another one at once.
    pub fn closing(stream: *mut FILE) -> Option<Self> {
        let slot = place(stream)?;
        STREAMS[slot].store(closing_mark(), Ordering::Release);
        Some(Self(slot))
    }

    /// Makes it free again.
    pub fn release(self) {
        STREAMS[self.0].store(ptr::null_mut(), Ordering::Release);
        TAKEN.fetch_sub(1, Ordering::AcqRel);
    }

    /// Where its buffer begins.
    pub fn buffer(&self) -> *mut c_char {
        // SAFETY: the slot is one of them.
        unsafe { MEMORY.0.get().cast::<c_char>().add(self.0 * BUFFER_BYTES) }
    }
}

/// No stream lies there.
fn closing_mark() -> *mut FILE {
    MEMORY.0.get().cast()
}

fn place(stream: *mut FILE) -> Option<usize> {
    if stream.is_null() || TAKEN.load(Ordering::Acquire) == 0 {
        return None;
    }
    STREAMS
        .iter()
        .position(|slot| slot.load(Ordering::Acquire) == stream)
}

/// Whether a stream has a large buffer.
pub fn has(stream: *mut FILE) -> bool {
    place(stream).is_some()
}

/// Calls `work` for each stream that has one.
pub fn each(work: impl Fn(*mut FILE)) {
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

    /// One test, as the slots are the same for all.
    #[test]
    fn a_slot_is_one_streams_until_it_is_released() {
        let mut places = [0_u64; BUFFERS + 1];
        let streams: Vec<*mut FILE> = places
            .iter_mut()
            .map(|one| ptr::from_mut(one).cast())
            .collect();
        let slots: Vec<_> = streams.iter().filter_map(|one| Slot::claim(*one)).collect();
        assert_eq!(slots.len(), BUFFERS);
        assert!(has(streams[0]) && !has(streams[BUFFERS]) && !has(ptr::null_mut()));
        assert_eq!(
            slots[1].buffer().addr() - slots[0].buffer().addr(),
            BUFFER_BYTES
        );
        let closing = Slot::closing(streams[3]).expect("it has a slot");
        assert!(!has(streams[3]));
        assert!(Slot::claim(streams[3]).is_none());
        closing.release();
        assert!(Slot::claim(streams[3]).is_some_and(|slot| slot.0 == 3));
        let seen = std::cell::Cell::new(0);
        each(|_| seen.set(seen.get() + 1));
        assert_eq!(seen.get(), BUFFERS);
    }
}
