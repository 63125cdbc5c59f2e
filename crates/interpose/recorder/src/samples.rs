//! Stacks, sampled by bytes: registers and the top of the stack are kept and unwound later.
//!
//! The distance between two samples is exponential, so that the byte sampled next does not depend
//! on the program's rhythm; its mean doubles after every `PER_MEAN` samples, so that a short run
//! has enough of them and a long one does not pay for more.

use std::ffi::CStr;
use std::ptr;

use equipoise_interpose::errno;

use crate::file::{Header, MAPS_BYTES, MAPS_OFFSET, SAMPLES, SAMPLES_OFFSET, STACK_WORDS, Sample};
use crate::recording;
use crate::system;
use crate::thread::Thread;

const FIRST_MEAN_BYTES: u64 = 1 << 14;
const PER_MEAN: u64 = 128;

#[cfg(target_arch = "x86_64")]
pub const MACHINE: u64 = 1;
#[cfg(target_arch = "aarch64")]
pub const MACHINE: u64 = 2;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const MACHINE: u64 = 0;

/// Draws when the thread's first sample is due.
pub fn start(thread: &Thread, header: &Header) {
    let owner = u64::from(system::thread());
    thread
        .random
        .set(owner.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    thread.stack.set((0, 0));
    draw(thread, header);
}

fn draw(thread: &Thread, header: &Header) {
    let doublings = (header.samples_taken.get() / PER_MEAN).min(40);
    let interval = FIRST_MEAN_BYTES << doublings;
    let mut random = thread.random.get();
    let bytes = exponential(uniform(&mut random)) * interval as f64;
    // Less than 40 means of at most 2^54 bytes.
    #[expect(clippy::cast_possible_truncation)]
    let bytes = bytes as i64;
    thread.random.set(random);
    thread.interval.set(interval);
    thread.until_sample.set(bytes);
}

/// Marsaglia's xorshift64; in (0, 1].
fn uniform(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    ((*state >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

fn exponential(uniform: f64) -> f64 {
    -uniform.ln()
}

/// Keeps a sample of the allocation that the thread is in.
#[cold]
#[inline(never)]
pub fn take(thread: &Thread, header: &Header, size: usize, ticks: u64) {
    thread.busy.set(true);
    errno::preserved(|| {
        let number = header.samples_taken.add_shared(1);
        let sampled_at = thread.interval.get();
        draw(thread, header);
        if number.is_power_of_two() {
            // Libraries that were opened since are found by it.
            keep_maps(header);
        }
        let Some(sample) = new_sample(header, number) else {
            return;
        };
        sample.size.set(size as u64);
        sample.ticks.set(ticks);
        sample.thread.set(u64::from(system::thread()));
        let registers = registers();
        for (kept, value) in sample.registers.iter().zip(registers) {
            kept.set(value);
        }
        keep_stack(thread, sample, registers[1]);
        // Last: a sample without it was not finished.
        sample.interval.set(sampled_at);
    });
    thread.busy.set(false);
}

/// The sample of this number, with room on the disk; `None` if there is none for it.
fn new_sample(header: &Header, number: u64) -> Option<&Sample> {
    let index = usize::try_from(number).ok().filter(|at| *at < SAMPLES)?;
    let place = header.place::<Sample>(SAMPLES_OFFSET + index * size_of::<Sample>());
    // SAFETY: the sample lies inside the mapping, which is zero where nothing was written, and no
    // other call gets the same number.
    if unsafe { system::take_room(place.cast(), size_of::<Sample>()) } {
        // SAFETY: as above; the mapping is never given back.
        Some(unsafe { &*place })
    } else {
        header.samples_without_room.add_shared(1);
        None
    }
}

fn keep_stack(thread: &Thread, sample: &Sample, stack_pointer: u64) {
    let Ok(low) = usize::try_from(stack_pointer) else {
        return;
    };
    if !(thread.stack.get().0..thread.stack.get().1).contains(&low) {
        thread.stack.set(mapping_of(low));
    }
    let (_, stack_high) = thread.stack.get();
    let words = stack_high.saturating_sub(low) / 8;
    let kept = words.min(STACK_WORDS);
    let stack = ptr::with_exposed_provenance::<u64>(low);
    for (index, word) in sample.stack.iter().take(kept).enumerate() {
        // SAFETY: the mapping in which the stack lies goes on so far; other frames of this thread
        // are not written to meanwhile.
        word.set(unsafe { stack.add(index).read_volatile() });
    }
    sample.kept.set(8 * kept as u64);
}

/// Instruction, stack and frame pointer, then those that a callee saves, here and now.
#[expect(
    clippy::inline_always,
    reason = "the stack that they point to must stay as it is while it is kept"
)]
#[inline(always)]
fn registers() -> [u64; 10] {
    let mut values = [0_u64; 10];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: writes ten words into `values` and nothing else.
    unsafe {
        core::arch::asm!(
            "lea {scratch}, [rip]",
            "mov [{values}], {scratch}",
            "mov [{values} + 8], rsp",
            "mov [{values} + 16], rbp",
            "mov [{values} + 24], rbx",
            "mov [{values} + 32], r12",
            "mov [{values} + 40], r13",
            "mov [{values} + 48], r14",
            "mov [{values} + 56], r15",
            values = in(reg) values.as_mut_ptr(),
            scratch = out(reg) _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: writes four words into `values` and nothing else.
    unsafe {
        core::arch::asm!(
            "adr {scratch}, .",
            "str {scratch}, [{values}]",
            "mov {scratch}, sp",
            "str {scratch}, [{values}, 8]",
            "stp x29, x30, [{values}, 16]",
            values = in(reg) values.as_mut_ptr(),
            scratch = out(reg) _,
            options(nostack, preserves_flags)
        );
    }
    values
}

/// The maps of this process. Those of `/proc/self` are empty once its first thread has ended.
const MAPS: &CStr = c"/proc/thread-self/maps";

/// Keeps the maps of the process, as much of it as there is room for.
///
/// Where another thread does so already, it does nothing.
pub fn keep_maps(header: &Header) {
    recording::alone_with_maps(|| {
        let Some(descriptor) = system::open(MAPS, libc::O_RDONLY) else {
            return;
        };
        let mut length = 0;
        let mut without_room = false;
        while length < MAPS_BYTES {
            let place = header.place::<u8>(MAPS_OFFSET + length);
            // SAFETY: the room for maps lies inside the mapping. One thread at a time is here, and
            // nobody reads it before the process has ended. No reference points there.
            match unsafe { system::read_to(descriptor, place, MAPS_BYTES - length) } {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) => {
                    without_room = error == libc::EFAULT;
                    break;
                }
            }
        }
        system::close(descriptor);
        header.maps_without_room.set(u64::from(without_room));
        header.maps_bytes.set(length as u64);
    });
}

/// The first and the last address of the mapping around an address; nothing if it is not found.
fn mapping_of(address: usize) -> (usize, usize) {
    let Some(descriptor) = system::open(MAPS, libc::O_RDONLY) else {
        return (0, 0);
    };
    let mut ranges = Ranges::default();
    let mut buffer = [0_u8; 1024];
    let found = loop {
        let length = system::read(descriptor, &mut buffer);
        if length == 0 {
            break (0, 0);
        }
        let text = &buffer[..length.min(buffer.len())];
        let around = |(low, high): &(usize, usize)| (*low..*high).contains(&address);
        if let Some(range) = text
            .iter()
            .find_map(|byte| ranges.next(*byte).filter(around))
        {
            break range;
        }
    };
    system::close(descriptor);
    found
}

/// Reads `low-high …` lines byte by byte.
#[derive(Default)]
struct Ranges {
    low: usize,
    high: usize,
    field: u8,
}

impl Ranges {
    /// A range, when its last digit has been read.
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
        let mut ranges = Ranges::default();
        let found: Vec<_> = text.iter().filter_map(|byte| ranges.next(*byte)).collect();
        assert_eq!(found, [(0x1000, 0x2000), (0xff00, 0xff80)]);
    }

    fn header() -> &'static Header {
        let memory = system::reserve(crate::file::FILE_BYTES);
        // SAFETY: zeroed memory of that length, which is never given back, or null.
        unsafe { memory.cast::<Header>().as_ref() }.expect("memory")
    }

    fn kept_maps(header: &Header) -> Vec<(usize, usize)> {
        let length = usize::try_from(header.maps_bytes.get()).expect("a length");
        // SAFETY: it lies inside the mapping, and every writer has ended.
        let text = unsafe { std::slice::from_raw_parts(header.place(MAPS_OFFSET), length) };
        let text = std::str::from_utf8(text).expect("text");
        assert!(text.ends_with('\n'), "{text}");
        text.lines()
            .map(|line| {
                let mut ranges = Ranges::default();
                let found = line.bytes().find_map(|byte| ranges.next(byte));
                found.unwrap_or_else(|| panic!("no line of maps: {line}"))
            })
            .collect()
    }

    /// One test: the flag is one of the process.
    #[test]
    fn of_many_threads_one_at_a_time_writes_the_maps() {
        let held = header();
        recording::alone_with_maps(|| keep_maps(held));
        assert_eq!(held.maps_bytes.get(), 0, "another one was at it");
        let header = header();
        std::thread::scope(|scope| {
            for thread in 1..=8 {
                scope.spawn(move || {
                    for round in 1..=50 {
                        // The maps become longer and shorter again.
                        let block = system::reserve(4096 * (thread + round));
                        keep_maps(header);
                        // SAFETY: nobody uses it.
                        unsafe { system::unmap(block, 4096 * (thread + round)) };
                    }
                });
            }
        });
        // Those of the last writer, whole: two at once would leave parts of both.
        let maps = kept_maps(header);
        assert!(maps.iter().all(|(low, high)| low < high));
        assert!(maps.is_sorted());
        let here = header.place::<u8>(0).addr();
        assert!(maps.iter().any(|(low, high)| (*low..*high).contains(&here)));
    }

    #[test]
    fn the_mapping_of_a_local_is_its_stack() {
        let local = 0_u64;
        let address = (&raw const local).addr();
        let (low, high) = mapping_of(address);
        assert!(low <= address && address < high);
    }

    #[test]
    fn distances_have_the_mean_that_was_asked_for() {
        let mut state = 1;
        let drawn = 20_000;
        let sum: f64 = (0..drawn).map(|_| exponential(uniform(&mut state))).sum();
        // The standard error of the mean is 1 / sqrt(20000) = 0.007.
        assert!((sum / f64::from(drawn) - 1.0).abs() < 0.03);
    }
}
