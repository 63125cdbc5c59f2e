//! Stacks, sampled by bytes: registers and the top of the stack are kept and unwound later.
//!
//! The distance between two samples is exponential, so that the byte sampled next does not depend
//! on the program's rhythm; its mean doubles after every `PER_MEAN` samples, so that a short run
//! has enough samples and a long run does not pay for more.

use std::ptr;

use equipoise_interpose::errno;
use equipoise_random::{GOLDEN, Xorshift64};

use crate::file::{Header, SAMPLES, SAMPLES_OFFSET, STACK_WORDS, Sample};
use crate::maps::mapping_of;
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
    thread.random.set(owner.wrapping_mul(GOLDEN) | 1);
    thread.stack.set((0, 0));
    draw(thread, header);
}

fn draw(thread: &Thread, header: &Header) {
    let doublings = (header.samples_taken.get() / PER_MEAN).min(40);
    let interval = FIRST_MEAN_BYTES << doublings;
    let mut random = Xorshift64::from_state(thread.random.get());
    let bytes = exponential(random.uniform()) * interval as f64;
    // Less than 40 means of at most 2^54 bytes.
    #[expect(clippy::cast_possible_truncation)]
    let bytes = bytes as i64;
    thread.random.set(random.state());
    thread.interval.set(interval);
    thread.until_sample.set(bytes);
}

fn exponential(uniform: f64) -> f64 {
    -uniform.ln()
}

/// Keeps a sample of the allocation that the thread is in; `keep_maps` writes the maps of the
/// process again.
#[cold]
#[inline(never)]
pub fn take(thread: &Thread, header: &Header, keep_maps: fn(&Header), size: usize, ticks: u64) {
    thread.busy.set(true);
    errno::preserved(|| {
        let number = header.samples_taken.add_shared(1);
        let sampled_at = thread.interval.get();
        draw(thread, header);
        if number.is_power_of_two() {
            // For libraries that were opened since the last time.
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

/// The sample with this number, with room on the disk; `None` if there is no room.
fn new_sample(header: &Header, number: u64) -> Option<&Sample> {
    let index = usize::try_from(number).ok().filter(|at| *at < SAMPLES)?;
    let place = header.place::<Sample>(SAMPLES_OFFSET + index * size_of::<Sample>());
    // SAFETY: the sample is inside the mapping, which is zero where nothing was written, and no
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
        // SAFETY: the mapping with the stack extends that far; other frames of this thread
        // are not written to meanwhile.
        word.set(unsafe { stack.add(index).read_volatile() });
    }
    sample.kept.set(8 * kept as u64);
}

/// Present instruction, stack and frame pointer, then the callee-saved registers.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_have_the_mean_that_was_asked_for() {
        let mut random = Xorshift64::from_state(1);
        let drawn = 20_000;
        let sum: f64 = (0..drawn).map(|_| exponential(random.uniform())).sum();
        // The standard error of the mean is 1 / sqrt(20000) = 0.007.
        assert!((sum / f64::from(drawn) - 1.0).abs() < 0.03);
    }
}
