//! The processor's own clock: a lifetime costs two readings for each block.

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

/// Reads the same moment by both clocks, ticks first.
///
/// The thread may lose its turn between two readings; the closest of several pairs counts.
pub fn both() -> (u64, u64) {
    const TRIES: usize = 8;
    let readings = (0..TRIES).map(|_| {
        let before = ticks();
        let now = monotonic_ns();
        let distance = ticks().wrapping_sub(before);
        (distance, before.wrapping_add(distance / 2), now)
    });
    let closest = readings.min_by_key(|(distance, ..)| *distance);
    closest.map_or((0, 0), |(_, ticks, now)| (ticks, now))
}

/// Whether ticks have the same rate on every core and in every power state.
pub fn is_steady() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        /// Intel's and AMD's manuals: advanced power management, "invariant TSC".
        const POWER_MANAGEMENT: u32 = 0x8000_0007;
        const INVARIANT: u32 = 1 << 8;
        let highest = core::arch::x86_64::__cpuid(0x8000_0000).eax;
        highest >= POWER_MANAGEMENT
            && core::arch::x86_64::__cpuid(POWER_MANAGEMENT).edx & INVARIANT != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_on_together() {
        let (first_ticks, first_ns) = both();
        while monotonic_ns() < first_ns + 20_000_000 {
            std::hint::spin_loop();
        }
        let (second_ticks, second_ns) = both();
        while monotonic_ns() < second_ns + 20_000_000 {
            std::hint::spin_loop();
        }
        let (third_ticks, third_ns) = both();
        let early = (second_ticks - first_ticks) as f64 / (second_ns - first_ns) as f64;
        let late = (third_ticks - second_ticks) as f64 / (third_ns - second_ns) as f64;
        let difference = (early / late - 1.0).abs();
        assert!(difference < 0.01, "{early} and {late} ticks a ns");
    }
}
