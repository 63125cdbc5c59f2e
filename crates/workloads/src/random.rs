//! Random numbers that are the same in every run.

use std::ops::Range;

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of draws: Marsaglia's xorshift (2003).
pub struct Coin(u64);

impl Coin {
    /// The same stream in every run.
    pub fn new() -> Self {
        Self(0x2545_F491_4F6C_DD1D)
    }

    /// A number below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The high bits of a product spread evenly over the limit, without a division.
        let wide = u128::from(self.0) * limit as u128;
        usize::try_from(wide >> 64).expect("below the limit, which is a usize")
    }
}

/// Draws by number, in any order: the counter through the finaliser of splitmix64 (Steele, Lea
/// and Flood 2014).
#[derive(Clone, Copy)]
pub struct Draws {
    seed: u64,
}

impl Draws {
    /// Draws that belong to the seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// 64 random bits: the draw with this number.
    pub fn bits(self, number: u64) -> u64 {
        let mut state = self
            .seed
            .wrapping_add(number.wrapping_add(1).wrapping_mul(STEP));
        state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        state ^ (state >> 31)
    }

    /// Uniform in [0, 1): the draw with this number.
    pub fn uniform(self, number: u64) -> f64 {
        (self.bits(number) >> 11) as f64 * f64::EPSILON / 2.0
    }

    /// Uniform in the range: the draw with this number.
    pub fn within(self, number: u64, range: Range<f64>) -> f64 {
        range.start + self.uniform(number) * (range.end - range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::{Coin, Draws};

    #[test]
    fn the_coin_reaches_every_slot_and_no_other() {
        let mut coin = Coin::new();
        let mut reached = [false; 7];
        for _ in 0..1000 {
            reached[coin.below(7)] = true;
        }
        assert_eq!(reached, [true; 7]);
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
        assert_eq!(Draws::new(1).bits(9), Draws::new(1).bits(9));
        assert_ne!(Draws::new(1).bits(9), Draws::new(2).bits(9));
        assert_ne!(Draws::new(1).bits(9), Draws::new(1).bits(10));
    }
}
