//! The Tausworthe-Lewis-Payne generator that the 2006 article names.
//!
//! Tausworthe (1965) draws bits `a[i] = a[i - 1279] xor a[i - 216]` (the trinomial
//! x^1279 + x^216 + 1 is primitive); Lewis & Payne (1973, Journal of the ACM 20(3)) make words of
//! them whose columns are the same sequence, each delayed by 100 p bits against the one before,
//! after 5000 p bits were thrown away; p is the degree. The word recurrence is then the same as
//! that of the bits.

use crate::philox::Philox;

const DEGREE: usize = 1279;
const TAP: usize = 216;
const BITS: usize = 32;
const DELAY: usize = 100 * DEGREE;
const THROWN_AWAY: usize = 5000 * DEGREE;

/// Words of 32 bits by a shift register of 1,279 of them.
#[derive(Clone, Debug)]
pub struct Tausworthe {
    words: Vec<u32>,
    at: usize,
}

impl Tausworthe {
    /// The stream of this seed: it gives the first 1,279 bits, by [`Philox`].
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut starter = Philox::new(seed);
        let mut bits = Bits::new((0..DEGREE).map(|_| starter.next_u64() & 1 == 1).collect());
        for _ in 0..THROWN_AWAY {
            bits.next();
        }
        let mut words = vec![0_u32; DEGREE];
        for column in 0..BITS {
            for word in &mut words {
                *word |= u32::from(bits.next()) << (BITS - 1 - column);
            }
            for _ in 0..DELAY - DEGREE {
                bits.next();
            }
        }
        Self { words, at: 0 }
    }

    /// The next word.
    pub fn next_u32(&mut self) -> u32 {
        let tap = (self.at + DEGREE - TAP) % DEGREE;
        let word = self.words[self.at] ^ self.words[tap];
        self.words[self.at] = word;
        self.at = (self.at + 1) % DEGREE;
        word
    }

    /// Two words, the first above the second.
    pub fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        (high << 32) | u64::from(self.next_u32())
    }
}

/// The basic sequence of bits.
struct Bits {
    last: Vec<bool>,
    at: usize,
    tap: usize,
}

impl Bits {
    fn new(mut last: Vec<bool>) -> Self {
        // A state of zeros would never change.
        last[0] |= !last.contains(&true);
        Self {
            last,
            at: 0,
            tap: DEGREE - TAP,
        }
    }

    fn next(&mut self) -> bool {
        let bit = self.last[self.at] ^ self.last[self.tap];
        self.last[self.at] = bit;
        for place in [&mut self.at, &mut self.tap] {
            *place = if *place + 1 == DEGREE { 0 } else { *place + 1 };
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_the_recurrence() {
        let mut stream = Tausworthe::new(1);
        let words: Vec<u32> = (0..5000).map(|_| stream.next_u32()).collect();
        for at in DEGREE..words.len() {
            assert_eq!(words[at], words[at - DEGREE] ^ words[at - TAP]);
        }
    }

    #[test]
    fn columns_are_one_sequence_apart_by_the_delay() {
        let mut stream = Tausworthe::new(3);
        let column = |word: u32, place: usize| (word >> (BITS - 1 - place)) & 1;
        let words: Vec<u32> = (0..DELAY + 100).map(|_| stream.next_u32()).collect();
        for at in 0..100 {
            assert_eq!(column(words[at + DELAY], 0), column(words[at], 1));
            assert_eq!(column(words[at + DELAY], 30), column(words[at], 31));
        }
    }

    #[test]
    fn every_bit_is_one_half_the_time() {
        let mut stream = Tausworthe::new(4);
        let draws = 20_000_u32;
        let mut ones = [0_u32; BITS];
        for _ in 0..draws {
            let word = stream.next_u32();
            for (place, count) in ones.iter_mut().enumerate() {
                *count += (word >> place) & 1;
            }
        }
        // Five standard deviations.
        let allowed = 5.0 * (f64::from(draws) / 4.0).sqrt();
        for count in ones {
            assert!((f64::from(count) - f64::from(draws) / 2.0).abs() < allowed);
        }
    }
}
