//! The Tausworthe-Lewis-Payne generator that the 2006 article names.
//!
//! Tausworthe (1965) draws bits `a[i] = a[i - p] xor a[i - q]` with p = 1279 and q = 216 (the
//! trinomial x^p + x^q + 1 is primitive). Lewis & Payne (1973, Journal of the ACM 20(3)) discard
//! 5000 p bits, and then make words. A column has one bit of each word. All columns have the same
//! sequence of bits, each 100 p bits later than the column before. So words have the same
//! recurrence.

use crate::philox::Philox;

// p and q of the recurrence.
const DEGREE: usize = 1279;
const TAP: usize = 216;
const WORD_BITS: usize = 32;
/// Delay of each column of the words behind the column before, in bits.
const DELAY: usize = 100 * DEGREE;
const DISCARDED_BITS: usize = 5000 * DEGREE;

/// A generator of 32-bit words from a shift register of 1,279 words.
#[derive(Clone, Debug)]
pub struct Tausworthe {
    /// The last 1,279 words.
    words: Vec<u32>,
    /// Index of the oldest word, which the next word replaces.
    position: usize,
}

impl Tausworthe {
    /// Starts the stream of a seed, whose [`Philox`] stream gives the first 1,279 bits.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut starter = Philox::new(seed);
        let mut bits = Bits::new((0..DEGREE).map(|_| starter.next_u64() & 1 == 1).collect());
        for _ in 0..DISCARDED_BITS {
            bits.next();
        }
        let mut words = vec![0_u32; DEGREE];
        for column in 0..WORD_BITS {
            for word in &mut words {
                *word |= u32::from(bits.next()) << (WORD_BITS - 1 - column);
            }
            for _ in 0..DELAY - DEGREE {
                bits.next();
            }
        }
        Self { words, position: 0 }
    }

    /// Draws the next word.
    pub fn next_u32(&mut self) -> u32 {
        let tap = (self.position + DEGREE - TAP) % DEGREE;
        let word = self.words[self.position] ^ self.words[tap];
        self.words[self.position] = word;
        self.position = (self.position + 1) % DEGREE;
        word
    }

    /// Draws two words; the first is the upper half.
    pub fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        (high << 32) | u64::from(self.next_u32())
    }
}

/// The sequence of bits from which the words are made.
struct Bits {
    /// The last 1,279 bits.
    register: Vec<bool>,
    /// Index of the oldest bit, which the next bit replaces.
    position: usize,
    /// Index of the bit `TAP` places before the next bit.
    tap: usize,
}

impl Bits {
    fn new(mut register: Vec<bool>) -> Self {
        // A register of zeros would never change.
        register[0] |= !register.contains(&true);
        Self {
            register,
            position: 0,
            tap: DEGREE - TAP,
        }
    }

    fn next(&mut self) -> bool {
        let bit = self.register[self.position] ^ self.register[self.tap];
        self.register[self.position] = bit;
        for index in [&mut self.position, &mut self.tap] {
            *index = if *index + 1 == DEGREE { 0 } else { *index + 1 };
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
        for row in DEGREE..words.len() {
            assert_eq!(words[row], words[row - DEGREE] ^ words[row - TAP]);
        }
    }

    #[test]
    fn each_column_is_the_column_before_delayed() {
        let mut stream = Tausworthe::new(3);
        let column = |word: u32, index: usize| (word >> (WORD_BITS - 1 - index)) & 1;
        let words: Vec<u32> = (0..DELAY + 100).map(|_| stream.next_u32()).collect();
        for row in 0..100 {
            assert_eq!(column(words[row + DELAY], 0), column(words[row], 1));
            assert_eq!(column(words[row + DELAY], 30), column(words[row], 31));
        }
    }

    #[test]
    fn each_bit_is_set_half_of_the_time() {
        let mut stream = Tausworthe::new(4);
        let draws = 20_000_u32;
        let mut ones = [0_u32; WORD_BITS];
        for _ in 0..draws {
            let word = stream.next_u32();
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += (word >> bit) & 1;
            }
        }
        // Five standard deviations.
        let allowed = 5.0 * (f64::from(draws) / 4.0).sqrt();
        for count in ones {
            assert!((f64::from(count) - f64::from(draws) / 2.0).abs() < allowed);
        }
    }
}
