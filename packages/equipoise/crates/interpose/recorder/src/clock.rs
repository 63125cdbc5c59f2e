//! The processor's own clock, which is cheap enough to read at each allocation and each free.

use equipoise_kernel::clock::monotonic_ns;

/// Returns the ticks of the processor's clock; nanoseconds on processors without such a clock.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 has this instruction.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let now: u64;
        // SAFETY: Linux lets every process read this register.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) now, options(nomem, nostack)) };
        now
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    monotonic_ns()
}

/// Returns the present time by two clocks: the ticks, and the nanoseconds of the monotonic clock.
/// The kernel may suspend the thread between two readings, so the closest pair of several counts.
pub fn ticks_and_ns() -> (u64, u64) {
    const READINGS: usize = 8;
    let readings = (0..READINGS).map(|_| {
        let before = ticks();
        let now_ns = monotonic_ns();
        let distance = ticks().wrapping_sub(before);
        (distance, before.wrapping_add(distance / 2), now_ns)
    });
    let closest = readings.min_by_key(|(distance, ..)| *distance);
    closest.map_or((0, 0), |(_, ticks, now_ns)| (ticks, now_ns))
}

/// Whether ticks have the same rate on every core and in every power state.
pub fn is_steady() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        /// Intel's and AMD's manuals: advanced power management, "invariant TSC".
        const POWER_MANAGEMENT: u32 = 0x8000_0007;
        const INVARIANT_TSC: u32 = 1 << 8;
        let max_leaf = core::arch::x86_64::__cpuid(0x8000_0000).eax;
        max_leaf >= POWER_MANAGEMENT
            && core::arch::x86_64::__cpuid(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_clocks_keep_the_same_rate() {
        let (first_ticks, first_ns) = ticks_and_ns();
        while monotonic_ns() < first_ns + 20_000_000 {
            std::hint::spin_loop();
        }
        let (second_ticks, second_ns) = ticks_and_ns();
        while monotonic_ns() < second_ns + 20_000_000 {
            std::hint::spin_loop();
        }
        let (third_ticks, third_ns) = ticks_and_ns();
        let early = (second_ticks - first_ticks) as f64 / (second_ns - first_ns) as f64;
        let late = (third_ticks - second_ticks) as f64 / (third_ns - second_ns) as f64;
        let difference = (early / late - 1.0).abs();
        assert!(difference < 0.01, "{early} and {late} ticks a ns");
    }
}
