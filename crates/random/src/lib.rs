//! Random number generators that give the same numbers on every machine and in every release.

use std::ops::Range;

/// Increment of `SplitMix64`: 2⁶⁴ divided by the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the number that `SplitMix64` draws in a state.
#[inline]
#[must_use]
pub fn mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(GOLDEN);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Turns 64 random bits into an index below `count`, by multiplication and shift (Lemire 2019). The
/// probabilities of the indices differ by at most 2⁻⁶⁴.
#[inline]
fn index_below(bits: u64, count: usize) -> usize {
    let product = u128::from(bits) * (count as u128);
    usize::try_from(product >> 64).expect("an index below `count` fits a usize")
}

/// `SplitMix64` (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts the stream of a seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws 64 random bits.
    #[allow(clippy::should_implement_trait)] // `Iterator::next` would return an `Option`.
    pub fn next(&mut self) -> u64 {
        let bits = mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        bits
    }

    /// Draws an index below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        index_below(self.next(), count)
    }

    /// Tosses a fair coin.
    pub fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }
}

/// The random numbers of `SplitMix64`, each with an index.
#[derive(Clone, Copy)]
pub struct Draws {
    seed: u64,
}

impl Draws {
    /// Returns the random numbers of a seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the 64 random bits at an index.
    #[must_use]
    pub fn bits_at(self, index: u64) -> u64 {
        mix(self.seed.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// Returns the number at an index, uniform in [0, 1).
    #[must_use]
    pub fn uniform_at(self, index: u64) -> f64 {
        // 53 bits, times 2⁻⁵³.
        (self.bits_at(index) >> 11) as f64 * f64::EPSILON / 2.0
    }

    /// Returns the number at an index, uniform in a range.
    #[must_use]
    pub fn in_range_at(self, index: u64, range: Range<f64>) -> f64 {
        range.start + self.uniform_at(index) * (range.end - range.start)
    }
}

/// Marsaglia's xorshift generator (2003), faster than `SplitMix64`.
#[derive(Clone, Copy, Debug)]
pub struct Xorshift64(u64);

impl Xorshift64 {
    /// Continues a stream from a state, which is not 0.
    #[inline]
    #[must_use]
    pub fn from_state(state: u64) -> Self {
        Self(state)
    }

    /// Returns the state, from which `from_state` continues the stream.
    #[inline]
    #[must_use]
    pub fn state(self) -> u64 {
        self.0
    }

    /// Draws 64 random bits, never 0.
    #[allow(clippy::should_implement_trait)] // `Iterator::next` would return an `Option`.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Draws an index below `count`.
    #[inline]
    pub fn below(&mut self, count: usize) -> usize {
        index_below(self.next(), count)
    }

    /// Draws a number that is uniform in (0, 1].
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

impl Default for Xorshift64 {
    /// Starts a stream from a fixed state.
    fn default() -> Self {
        Self(0x2545_F491_4F6C_DD1D)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_draws_the_published_numbers() {
        let mut random = SplitMix64::from_seed(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn every_index_below_the_count_is_drawn_and_no_other() {
        let (mut splitmix, mut xorshift) = (SplitMix64::from_seed(1), Xorshift64::default());
        let mut reached = [[false; 7]; 2];
        for _ in 0..1000 {
            reached[0][splitmix.below(7)] = true;
            reached[1][xorshift.below(7)] = true;
        }
        assert_eq!(reached, [[true; 7]; 2]);
    }

    #[test]
    fn draws_have_the_mean_and_variance_of_uniform_numbers() {
        let draws = Draws::from_seed(5);
        let count = 100_000;
        let values = || (0..count).map(|index| draws.uniform_at(index));
        assert!(values().all(|value| (0.0..1.0).contains(&value)));
        let mean = values().sum::<f64>() / count as f64;
        let mean_square = values().map(|value| value * value).sum::<f64>() / count as f64;
        // The limit is five standard errors of each mean.
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0 / count as f64).sqrt());
        assert!((mean_square - 1.0 / 3.0).abs() < 5.0 * (4.0 / 45.0 / count as f64).sqrt());
    }

    #[test]
    fn a_draw_depends_only_on_its_index_and_the_seed() {
        let mut stream = SplitMix64::from_seed(1);
        let streamed: Vec<u64> = (0..3).map(|_| stream.next()).collect();
        let by_index: Vec<u64> = (0..3)
            .map(|index| Draws::from_seed(1).bits_at(index))
            .collect();
        assert_eq!(streamed, by_index);
        assert_ne!(
            Draws::from_seed(1).bits_at(9),
            Draws::from_seed(2).bits_at(9)
        );
    }
}
