//! The random numbers of a search: one source, which draws from one of two generators.

use crate::philox::Philox;
use crate::tausworthe::Tausworthe;

/// The random number generator to use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Generator {
    /// Philox4x32-10, which encrypts a counter.
    Philox,
    /// Tausworthe-Lewis-Payne, which shifts a register of 1,279 words.
    Tausworthe,
}

/// A stream of random numbers, the same on every architecture.
#[derive(Clone, Debug)]
pub struct Source {
    stream: Stream,
}

#[derive(Clone, Debug)]
enum Stream {
    Philox(Philox),
    Tausworthe(Tausworthe),
}

impl Source {
    /// Starts the stream of a seed.
    #[must_use]
    pub fn new(generator: Generator, seed: u64) -> Self {
        let stream = match generator {
            Generator::Philox => Stream::Philox(Philox::new(seed)),
            Generator::Tausworthe => Stream::Tausworthe(Tausworthe::new(seed)),
        };
        Self { stream }
    }

    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        match &mut self.stream {
            Stream::Philox(stream) => stream.next_u64(),
            Stream::Tausworthe(stream) => stream.next_u64(),
        }
    }

    /// Draws a number that is uniform in the open interval (0, 1): the middle of one of 2^52 cells.
    pub fn uniform(&mut self) -> f64 {
        let cell = self.bits() >> 12;
        (cell as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Draws a whole number below `count`, all equally likely (Lemire 2019, ACM TOMACS 29(1)).
    ///
    /// # Panics
    /// If `count` is 0.
    #[allow(clippy::cast_possible_truncation)]
    pub fn below(&mut self, count: u64) -> u64 {
        assert!(count > 0, "there is nothing to draw from");
        // 2^64 mod `count`. Without this limit, some numbers would be drawn more often than others.
        let rejected_below = count.wrapping_neg() % count;
        loop {
            let product = u128::from(self.bits()) * u128::from(count);
            if product as u64 >= rejected_below {
                return (product >> 64) as u64;
            }
        }
    }

    /// Draws an index of a list of this length.
    #[allow(clippy::cast_possible_truncation)]
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Tosses a fair coin.
    pub fn coin(&mut self) -> bool {
        self.bits() >> 63 == 1
    }

    /// Draws an index r below `length` with probability 2^-(r + 1); the last index gets the rest.
    pub fn geometric_rank(&mut self, length: usize) -> usize {
        let zeros = self.bits().leading_zeros() as usize;
        zeros.min(length - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_recorded_numbers() {
        let draws = |generator| {
            let mut source = Source::new(generator, 2006);
            [source.bits(), source.bits(), source.bits()]
        };
        let golden = [
            8_860_939_503_659_172_025,
            5_435_837_688_115_140_005,
            17_385_459_580_937_567_316,
        ];
        assert_eq!(draws(Generator::Philox), golden);
        let golden = [
            2_188_207_936_876_974_748,
            1_630_525_809_037_753_288,
            6_308_351_031_224_887_881,
        ];
        assert_eq!(draws(Generator::Tausworthe), golden);
    }

    #[test]
    fn uniform_draws_stay_inside_and_fill_the_interval() {
        for generator in [Generator::Philox, Generator::Tausworthe] {
            let mut source = Source::new(generator, 1);
            let count = 40_000;
            let draws: Vec<f64> = (0..count).map(|_| source.uniform()).collect();
            assert!(draws.iter().all(|&draw| draw > 0.0 && draw < 1.0));
            let mean = draws.iter().sum::<f64>() / f64::from(count);
            // Five standard errors.
            assert!((mean - 0.5).abs() < 5.0 / (12.0 * f64::from(count)).sqrt());
        }
    }

    #[test]
    fn all_numbers_below_a_bound_are_equally_likely() {
        let mut source = Source::new(Generator::Philox, 2);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[source.index(7)] += 1;
        }
        let sd = (70_000.0 * (1.0 / 7.0) * (6.0 / 7.0_f64)).sqrt();
        for count in counts {
            assert!((f64::from(count) - 10_000.0).abs() < 5.0 * sd);
        }
    }

    #[test]
    fn ranks_are_geometric_and_the_last_takes_the_rest() {
        let mut source = Source::new(Generator::Philox, 3);
        let mut counts = [0_u32; 4];
        let draws = 80_000;
        for _ in 0..draws {
            counts[source.geometric_rank(4)] += 1;
        }
        for (count, share) in counts.into_iter().zip([0.5, 0.25, 0.125, 0.125]) {
            let sd = (f64::from(draws) * share * (1.0 - share)).sqrt();
            assert!((f64::from(count) - f64::from(draws) * share).abs() < 5.0 * sd);
        }
    }
}
