//! Random numbers from a counter: the number that a unit draws depends only on the seed and the
//! unit.
//!
//! `SplitMix64` (Steele, Lea and Flood 2014, OOPSLA). The result does not depend on the number of
//! threads and the order in which they work.

use equipoise_random::GOLDEN;
pub use equipoise_random::mix;

/// The draws of one unit.
pub struct Draws {
    key: u64,
    counter: u64,
}

impl Draws {
    /// The stream that belongs to the unit under the seed.
    pub fn of(seed: u64, unit: usize) -> Self {
        Self {
            key: mix(mix(seed).wrapping_add((unit as u64).wrapping_mul(GOLDEN))),
            counter: 0,
        }
    }

    /// Uniform among 0, …, `bound` − 1; `bound` must be positive.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        // The values at or above the last whole multiple of the bound would be drawn too often.
        let unfair = u64::MAX - u64::MAX % bound;
        loop {
            self.counter = self.counter.wrapping_add(GOLDEN);
            let bits = mix(self.key.wrapping_add(self.counter));
            if bits < unfair {
                return usize::try_from(bits % bound).expect("below a usize");
            }
        }
    }
}

/// A faster hash, for keys of rows: both halves of a wide product.
#[allow(clippy::cast_possible_truncation)] // Both halves are wanted.
pub fn folded(value: u64) -> u64 {
    let product = u128::from(value ^ GOLDEN) * 0x94d0_49bb_1331_11eb;
    (product as u64) ^ ((product >> 64) as u64)
}
