//! Random numbers of a unit, which depend only on the seed and the unit.
//!
//! So results depend neither on the number of threads nor on the order of work. The generator is
//! `SplitMix64` (Steele, Lea and Flood 2014, OOPSLA).

use equipoise_random::GOLDEN;
pub use equipoise_random::mix;

/// A stream of random numbers for one unit.
pub struct Draws {
    key: u64,
    counter: u64,
}

impl Draws {
    pub fn new(seed: u64, unit: usize) -> Self {
        Self {
            key: mix(mix(seed).wrapping_add((unit as u64).wrapping_mul(GOLDEN))),
            counter: 0,
        }
    }

    /// Draws a whole number from 0 to `bound` − 1, all equally likely; `bound` must be positive.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        // The values at or above the last whole multiple of the bound would be drawn too often.
        let fair_values = u64::MAX - u64::MAX % bound;
        loop {
            self.counter = self.counter.wrapping_add(GOLDEN);
            let bits = mix(self.key.wrapping_add(self.counter));
            if bits < fair_values {
                return usize::try_from(bits % bound).expect("below a usize");
            }
        }
    }
}

/// Returns a fast hash of a value, from both halves of a 128-bit product.
#[allow(clippy::cast_possible_truncation)] // Both halves are used.
pub fn hash(value: u64) -> u64 {
    let product = u128::from(value ^ GOLDEN) * 0x94d0_49bb_1331_11eb;
    (product as u64) ^ ((product >> 64) as u64)
}
