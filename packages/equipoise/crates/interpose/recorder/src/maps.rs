//! Copies the memory maps of this process into its file. The maps give sampled functions their
//! names.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::file::{Header, MAPS_OFFSET, MAX_MAPS_BYTES};
use crate::system;

/// File with the maps of this process. `/proc/self/maps` is empty once the first thread has ended.
const MAPS_PATH: &CStr = c"/proc/thread-self/maps";

/// Writes as many maps of the process to its file as fit. If another thread has the lock, that
/// thread is writing the same maps, and this call does nothing. So no thread ever waits for a
/// thread that was stopped.
pub fn write_to_file(header: &Header, lock: &AtomicBool) {
    if lock.swap(true, Ordering::Acquire) {
        return;
    }
    if let Some(descriptor) = system::open(MAPS_PATH, libc::O_RDONLY) {
        let mut length = 0;
        let mut without_space = false;
        while length < MAX_MAPS_BYTES {
            let target = header.pointer_at::<u8>(MAPS_OFFSET + length);
            // SAFETY: the target is inside the mapping. Only the owner of the lock writes to it,
            // and no reference points there.
            match unsafe { system::read_to(descriptor, target, MAX_MAPS_BYTES - length) } {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) => {
                    without_space = error == libc::EFAULT;
                    break;
                }
            }
        }
        system::close(descriptor);
        header.maps_without_space.set(u64::from(without_space));
        header.maps_bytes.set(length as u64);
    }
    lock.store(false, Ordering::Release);
}

/// Returns the start and the end of the mapping that contains an address; zeros if there is none.
pub fn mapping_of(address: usize) -> (usize, usize) {
    let Some(descriptor) = system::open(MAPS_PATH, libc::O_RDONLY) else {
        return (0, 0);
    };
    let mut parser = RangeParser::default();
    let mut buffer = [0_u8; 1024];
    let contains = |(low, high): &(usize, usize)| (*low..*high).contains(&address);
    let range = loop {
        let length = system::read(descriptor, &mut buffer);
        if length == 0 {
            break (0, 0);
        }
        let mut text = buffer[..length.min(buffer.len())].iter();
        if let Some(range) = text.find_map(|byte| parser.next(*byte).filter(contains)) {
            break range;
        }
    };
    system::close(descriptor);
    range
}

/// Parser of lines such as `low-high r-xp …`, byte by byte.
#[derive(Default)]
struct RangeParser {
    low: usize,
    high: usize,
    /// 0 before the hyphen, 1 up to the end of the addresses, 2 behind the addresses.
    field: u8,
}

impl RangeParser {
    /// Parses one byte; returns a range of addresses if the byte completes one.
    fn next(&mut self, byte: u8) -> Option<(usize, usize)> {
        let digit = char::from(byte).to_digit(16).map(|digit| digit as usize);
        match (self.field, byte, digit) {
            (_, b'\n', _) => *self = Self::default(),
            (0, b'-', _) => self.field = 1,
            (0, _, Some(digit)) => self.low = self.low << 4 | digit,
            (1, _, Some(digit)) => self.high = self.high << 4 | digit,
            (1, b' ', _) => {
                self.field = 2;
                return Some((self.low, self.high));
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_from_lines() {
        let text = b"1000-2000 r-xp 00000000 08:01 12-34 /bin/a\nff00-ff80 rw-p\n";
        let mut parser = RangeParser::default();
        let read: Vec<_> = text.iter().filter_map(|byte| parser.next(*byte)).collect();
        assert_eq!(read, [(0x1000, 0x2000), (0xff00, 0xff80)]);
    }

    fn header() -> &'static Header {
        let memory = system::reserve(crate::file::FILE_BYTES);
        // SAFETY: zeroed memory of that length, which is never given back, or null.
        unsafe { memory.cast::<Header>().as_ref() }.expect("memory")
    }

    fn kept_maps(header: &Header) -> Vec<(usize, usize)> {
        let length = usize::try_from(header.maps_bytes.get()).expect("a length");
        // SAFETY: it is inside the mapping, and every writer has ended.
        let text = unsafe { std::slice::from_raw_parts(header.pointer_at(MAPS_OFFSET), length) };
        let text = std::str::from_utf8(text).expect("text");
        assert!(text.ends_with('\n'), "{text}");
        text.lines()
            .map(|line| {
                let mut parser = RangeParser::default();
                let range = line.bytes().find_map(|byte| parser.next(byte));
                range.unwrap_or_else(|| panic!("no line of maps: {line}"))
            })
            .collect()
    }

    #[test]
    fn one_thread_at_a_time_writes_the_maps() {
        let header = header();
        let lock = AtomicBool::new(true);
        write_to_file(header, &lock);
        assert_eq!(header.maps_bytes.get(), 0, "another thread writes them");
        let lock = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 1..=8 {
                scope.spawn(move || {
                    for round in 1..=50 {
                        // The maps become longer and shorter again.
                        let block = system::reserve(4096 * (thread + round));
                        write_to_file(header, lock);
                        // SAFETY: no thread uses it.
                        unsafe { system::unmap(block, 4096 * (thread + round)) };
                    }
                });
            }
        });
        // The maps of the last writer are complete: two writers at once would mix their maps.
        let maps = kept_maps(header);
        assert!(maps.iter().all(|(low, high)| low < high));
        assert!(maps.is_sorted());
        let start = header.pointer_at::<u8>(0).addr();
        assert!(
            maps.iter()
                .any(|(low, high)| (*low..*high).contains(&start))
        );
    }

    #[test]
    fn the_mapping_of_a_local_variable_contains_it() {
        let local = 0_u64;
        let address = (&raw const local).addr();
        let (low, high) = mapping_of(address);
        assert!(low <= address && address < high);
    }
}
