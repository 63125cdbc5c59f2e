//! The random number generator Philox4x32-10, which encrypts a counter.
//!
//! Salmon, Moraes, Dror & Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3", SC '11,
//! section 3.3: ten rounds of two 32-bit multiplications on a 128-bit counter under a 64-bit key.

// The constants of the paper.
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The random stream of one seed: blocks of 128 bits for the counters 0, 1, 2 and so on.
#[derive(Clone, Debug)]
pub struct Philox {
    key: [u32; 2],
    counter: u64,
    /// Second half of the last block, until it is drawn.
    second_half: Option<u64>,
}

impl Philox {
    /// Starts the stream of a seed; every seed has a different stream.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            key: halves(seed),
            counter: 0,
            second_half: None,
        }
    }

    /// Draws the next 64 bits: half of a block, with its first word in the lower bits.
    pub fn next_u64(&mut self) -> u64 {
        if let Some(second_half) = self.second_half.take() {
            return second_half;
        }
        let [low, high] = halves(self.counter);
        let block = philox([low, high, 0, 0], self.key);
        self.counter += 1;
        self.second_half = Some(joined(block[2], block[3]));
        joined(block[0], block[1])
    }
}

/// Returns the block of a counter under a key (the bijection of the paper).
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let first = halves(u64::from(MULTIPLIERS[0]) * u64::from(counter[0]));
        let second = halves(u64::from(MULTIPLIERS[1]) * u64::from(counter[2]));
        counter = [
            second[1] ^ counter[1] ^ key[0],
            second[0],
            first[1] ^ counter[3] ^ key[1],
            first[0],
        ];
        key[0] = key[0].wrapping_add(KEY_STEPS[0]);
        key[1] = key[1].wrapping_add(KEY_STEPS[1]);
    }
    counter
}

#[allow(clippy::cast_possible_truncation)]
const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

fn joined(low: u32, high: u32) -> u64 {
    u64::from(low) | (u64::from(high) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors publish with Random123 (`kat_vectors`).
    #[test]
    fn blocks_agree_with_the_published_answers() {
        let answer = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
        assert_eq!(philox([0; 4], [0; 2]), answer);
        let answer = [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd];
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), answer);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let answer = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
        assert_eq!(philox(pi, [0xa409_3822, 0x299f_31d0]), answer);
    }

    #[test]
    fn a_stream_returns_its_blocks_in_order() {
        let mut stream = Philox::new(0);
        assert_eq!(stream.next_u64(), 0xe169_c58d_6627_e8d5);
        assert_eq!(stream.next_u64(), 0x9b00_dbd8_bc57_ac4c);
        let second = philox([1, 0, 0, 0], [0, 0]);
        assert_eq!(stream.next_u64(), joined(second[0], second[1]));
    }

    #[test]
    fn seeds_that_differ_in_the_upper_half_give_different_streams() {
        assert_ne!(
            Philox::new(7).next_u64(),
            Philox::new(7 | (1 << 40)).next_u64()
        );
    }
}
