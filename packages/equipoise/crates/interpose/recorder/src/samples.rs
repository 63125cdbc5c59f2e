//! Samples the stack after a random number of allocated bytes. A sample keeps the registers and the
//! top of the stack; the reader of the file unwinds the stack.
//!
//! The number of bytes between two samples is exponential, so the samples do not follow the
//! program's rhythm. Its mean doubles after every `SAMPLES_PER_MEAN` samples. So a short run has
//! enough samples, and a long run does not have too many.

use std::ptr;

use equipoise_interpose::errno;
use equipoise_random::{GOLDEN, Xorshift64};

use crate::file::{Header, MAX_SAMPLES, SAMPLES_OFFSET, STACK_WORDS, Sample};
use crate::maps::mapping_of;
use crate::system;
use crate::thread::Thread;

/// Mean number of bytes between the first samples.
const FIRST_MEAN_BYTES: u64 = 1 << 14;
/// Number of samples after which the mean doubles.
const SAMPLES_PER_MEAN: u64 = 128;
/// Maximum number of times that the mean doubles.
const MAX_DOUBLINGS: u64 = 40;
/// Index of the stack pointer in the registers of a sample.
const STACK_POINTER: usize = 1;

/// Number of this processor in `Header::machine`.
#[cfg(target_arch = "x86_64")]
pub const MACHINE: u64 = 1;
#[cfg(target_arch = "aarch64")]
pub const MACHINE: u64 = 2;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const MACHINE: u64 = 0;

/// Prepares sampling in a thread, and draws the number of bytes until its first sample.
pub fn start(thread: &Thread, header: &Header) {
    let owner = u64::from(system::thread_id());
    thread.random.set(owner.wrapping_mul(GOLDEN) | 1);
    thread.stack.set((0, 0));
    draw_interval(thread, header);
}

fn draw_interval(thread: &Thread, header: &Header) {
    let doublings = (header.samples_taken.get() / SAMPLES_PER_MEAN).min(MAX_DOUBLINGS);
    let interval = FIRST_MEAN_BYTES << doublings;
    let mut random = Xorshift64::from_state(thread.random.get());
    let bytes = exponential(random.uniform()) * interval as f64;
    // A draw is at most 40 times the mean, and the mean is at most 2^54 bytes.
    #[expect(clippy::cast_possible_truncation)]
    let bytes = bytes as i64;
    thread.random.set(random.state());
    thread.interval.set(interval);
    thread.bytes_until_sample.set(bytes);
}

fn exponential(uniform: f64) -> f64 {
    -uniform.ln()
}

/// Samples the present allocation of the thread; `write_maps` updates the maps in the file.
#[cold]
#[inline(never)]
pub fn take(thread: &Thread, header: &Header, write_maps: fn(&Header), size: usize, ticks: u64) {
    thread.is_in_library.set(true);
    errno::preserved(|| {
        let number = header.samples_taken.add_shared(1);
        let interval = thread.interval.get();
        draw_interval(thread, header);
        if number.is_power_of_two() {
            // The program may have opened libraries since the last time.
            write_maps(header);
        }
        let Some(sample) = new_sample(header, number) else {
            return;
        };
        sample.size.set(size as u64);
        sample.ticks.set(ticks);
        sample.thread_id.set(u64::from(system::thread_id()));
        let registers = registers();
        for (register, value) in sample.registers.iter().zip(registers) {
            register.set(value);
        }
        copy_stack(thread, sample, registers[STACK_POINTER]);
        // This is set last: a sample without an interval is incomplete.
        sample.interval.set(interval);
    });
    thread.is_in_library.set(false);
}

/// Returns the sample with this number; `None` if the disk has no space for it.
fn new_sample(header: &Header, number: u64) -> Option<&Sample> {
    let index = usize::try_from(number).ok().filter(|n| *n < MAX_SAMPLES)?;
    let pointer = header.pointer_at::<Sample>(SAMPLES_OFFSET + index * size_of::<Sample>());
    // SAFETY: the sample is inside the mapping, and no other call gets this number.
    if unsafe { system::allocate_disk_space(pointer.cast(), size_of::<Sample>()) } {
        // SAFETY: as above; the mapping is never unmapped.
        Some(unsafe { &*pointer })
    } else {
        header.samples_without_space.add_shared(1);
        None
    }
}

fn copy_stack(thread: &Thread, sample: &Sample, stack_pointer: u64) {
    let Ok(low) = usize::try_from(stack_pointer) else {
        return;
    };
    if !(thread.stack.get().0..thread.stack.get().1).contains(&low) {
        thread.stack.set(mapping_of(low));
    }
    let (_, stack_high) = thread.stack.get();
    let words = stack_high.saturating_sub(low) / 8;
    let kept_words = words.min(STACK_WORDS);
    let stack = ptr::with_exposed_provenance::<u64>(low);
    for (index, word) in sample.stack.iter().take(kept_words).enumerate() {
        // SAFETY: the mapping extends that far, and no other frame of this thread runs meanwhile.
        word.set(unsafe { stack.add(index).read_volatile() });
    }
    sample.stack_bytes.set(8 * kept_words as u64);
}

/// Returns the instruction, stack and frame pointers, then the callee-saved registers.
#[expect(
    clippy::inline_always,
    reason = "the frame to which the registers point must exist while the stack is copied"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_draws_have_mean_one() {
        let mut random = Xorshift64::from_state(1);
        let draws = 20_000;
        let sum: f64 = (0..draws).map(|_| exponential(random.uniform())).sum();
        // The standard error of the mean is 1 / √20000 = 0.007.
        assert!((sum / f64::from(draws) - 1.0).abs() < 0.03);
    }
}
