//! The points that were evaluated, with their values.

use std::collections::HashMap;

/// A hash table from points to values; equal points have equal parameters, -0 being 0.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    known: HashMap<Box<[u64]>, Box<[f64]>>,
}

/// What makes two points the same.
pub fn key(point: &[f64]) -> Box<[u64]> {
    // Adding 0 makes 0 of -0.
    point.iter().map(|value| (value + 0.0).to_bits()).collect()
}

impl Memory {
    /// The values of a point that was evaluated.
    pub fn recall(&self, point: &[f64]) -> Option<&[f64]> {
        self.known.get(&key(point)).map(AsRef::as_ref)
    }

    /// Keeps the values of a point.
    pub fn learn(&mut self, point: &[f64], values: &[f64]) {
        self.known.insert(key(point), values.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_recalled_whatever_the_sign_of_its_zeros() {
        let mut memory = Memory::default();
        memory.learn(&[-0.0, 1.0], &[5.0]);
        assert_eq!(memory.recall(&[0.0, 1.0]), Some(&[5.0][..]));
        assert_eq!(memory.recall(&[0.0, 1.0 + f64::EPSILON]), None);
    }
}
