//! Small generators of random numbers that are the same on every machine and in every release.

use std::ops::Range;

/// Increment of `SplitMix64`: 2⁶⁴ over the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the finaliser of `SplitMix64` for the state after `value`: every bit of the result depends
/// on every bit of the value.
#[inline]
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(GOLDEN);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns an index below `count`, by multiplication and shift (Lemire 2019); its bias is below
/// `count`/2⁶⁴.
#[inline]
fn index_below(bits: u64, count: usize) -> usize {
    let wide = u128::from(bits) * (count as u128);
    usize::try_from(wide >> 64).expect("the product of a fraction and a usize fits a usize")
}

/// `SplitMix64` (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts a stream.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws 64 random bits.
    #[allow(clippy::should_implement_trait)] // A stream without an end.
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

/// Draws of `SplitMix64` by number, in any order.
#[derive(Clone, Copy)]
pub struct Draws {
    seed: u64,
}

impl Draws {
    /// Returns the draws of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the 64 random bits of a draw.
    #[must_use]
    pub fn bits(self, number: u64) -> u64 {
        mix(self.seed.wrapping_add(number.wrapping_mul(GOLDEN)))
    }

    /// Returns a draw that is uniform in [0, 1).
    #[must_use]
    pub fn uniform(self, number: u64) -> f64 {
        (self.bits(number) >> 11) as f64 * f64::EPSILON / 2.0
    }

    /// Returns a draw that is uniform in the range.
    #[must_use]
    pub fn within(self, number: u64, range: Range<f64>) -> f64 {
        range.start + self.uniform(number) * (range.end - range.start)
    }
}

/// Marsaglia's xorshift (2003), the quickest one.
#[derive(Clone, Copy, Debug)]
pub struct Xorshift64(u64);

impl Xorshift64 {
    /// Goes on from a state, which must not be 0.
    #[inline]
    #[must_use]
    pub fn from_state(state: u64) -> Self {
        Self(state)
    }

    /// Returns the state.
    #[inline]
    #[must_use]
    pub fn state(self) -> u64 {
        self.0
    }

    /// Draws 64 random bits, never 0.
    #[allow(clippy::should_implement_trait)] // A stream without an end.
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
    /// Starts the stream that is the same in every run.
    fn default() -> Self {
        Self(0x2545_F491_4F6C_DD1D)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn indices_stay_below_their_count_and_reach_all_of_it() {
        let (mut splitmix, mut xorshift) = (SplitMix64::new(1), Xorshift64::default());
        let mut reached = [[false; 7]; 2];
        for _ in 0..1000 {
            reached[0][splitmix.below(7)] = true;
            reached[1][xorshift.below(7)] = true;
        }
        assert_eq!(reached, [[true; 7]; 2]);
    }

    #[test]
    fn draws_are_uniform_to_their_second_moment() {
        let draws = Draws::new(5);
        let count = 100_000;
        let values = || (0..count).map(|number| draws.uniform(number));
        assert!(values().all(|value| (0.0..1.0).contains(&value)));
        let mean = values().sum::<f64>() / count as f64;
        let square = values().map(|value| value * value).sum::<f64>() / count as f64;
        // Five standard errors of each.
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0 / count as f64).sqrt());
        assert!((square - 1.0 / 3.0).abs() < 5.0 * (4.0 / 45.0 / count as f64).sqrt());
    }

    #[test]
    fn a_draw_depends_on_its_number_and_its_seed_alone() {
        let mut stream = SplitMix64::new(1);
        let streamed: Vec<u64> = (0..3).map(|_| stream.next()).collect();
        let by_number: Vec<u64> = (0..3).map(|number| Draws::new(1).bits(number)).collect();
        assert_eq!(streamed, by_number);
        assert_ne!(Draws::new(1).bits(9), Draws::new(2).bits(9));
    }
}
