//! The typical difference: between median and mean (Huber 1964).

use crate::block::Block;
use crate::order_statistics::{median, scale};
use crate::past::Learnt;
use crate::rules::CLIP;
use crate::search::last_that_holds;

/// Where the differences are centred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// Huber's M-estimate of the differences after the slot effect; infinite if most are.
    pub typical: f64,
    /// How much more, in log units, a trial takes in the second place of its block; 0 if that
    /// cannot be distinguished from noise.
    pub slot: f64,
    /// The scale that "extreme" was measured by.
    pub scale: f64,
}

impl Centre {
    /// The centre of the blocks that are not a tie of two timeouts; `None` if there are none.
    ///
    /// The scale is 1.4826·MAD, but never less than the typical tie tolerance: differences below
    /// the resolution of the clock do not show the spread.
    pub(crate) fn of(blocks: &[Block], learnt: Learnt) -> Option<Self> {
        let known = || blocks.iter().filter(|block| !block.difference.is_nan());
        let values: Vec<f64> = known().map(|block| learnt.rest_of(block)).collect();
        let mut scratch = values.clone();
        let middle = median(&mut scratch)?;
        let spread = scale(&values, middle, &mut scratch);
        scratch.clear();
        scratch.extend(known().map(|block| block.tolerance));
        let tolerance = median(&mut scratch).filter(|tolerance| tolerance.is_finite())?;
        let scale = spread.max(tolerance);
        Some(Self {
            typical: huber(&values, middle, CLIP * scale),
            slot: learnt.slot,
            scale,
        })
    }
}

/// The root of Σ clip((x − μ)/width, −1, 1); `middle` is the median of `values`.
fn huber(values: &[f64], middle: f64, width: f64) -> f64 {
    if !middle.is_finite() || width <= 0.0 {
        return middle;
    }
    let balance = |at: f64| -> f64 {
        values
            .iter()
            .map(|value| ((value - at) / width).clamp(-1.0, 1.0))
            .sum()
    };
    // At least half of the values are on each side of the median, so the root is within one width
    // of it.
    let (below, above) = (middle - 2.0 * width, middle + 2.0 * width);
    let low = if balance(below) > 0.0 {
        last_that_holds(below, above, |at| balance(at) > 0.0)
    } else {
        below
    };
    let high = if balance(above) < 0.0 {
        last_that_holds(above, below, |at| balance(at) < 0.0)
    } else {
        above
    };
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjustment::NO_READINGS;
    use crate::block::Order;

    fn typical(differences: &[f64], tolerance: f64) -> Option<f64> {
        let blocks: Vec<Block> = differences
            .iter()
            .map(|&difference| Block {
                difference,
                order: Order::BaselineFirst,
                tolerance,
                readings: NO_READINGS,
            })
            .collect();
        Centre::of(&blocks, Learnt::default()).map(|centre| centre.typical)
    }

    #[test]
    fn without_extremes_it_is_the_mean() {
        let centre = typical(&[1.0, 2.0, 3.0, 4.4], 0.0).expect("there are differences");
        assert!((centre - 2.6).abs() < 1e-12);
    }

    #[test]
    fn an_extreme_counts_as_if_it_lay_at_one_and_a_quarter_scales() {
        // MAD 1, scale 1.4826, width 1.85325: ((2+2.5+3+4) − 4μ)/w + 1 = 0.
        let centre = typical(&[2.0, 2.5, 3.0, 4.0, 1000.0], 0.0).expect("there are differences");
        assert!((centre - (11.5 + 1.853_25) / 4.0).abs() < 1e-12);
        let infinite = typical(&[2.0, 2.5, 3.0, 4.0, f64::INFINITY], 0.0);
        assert!((infinite.expect("there are differences") - centre).abs() < 1e-12);
    }

    #[test]
    fn a_majority_of_timeouts_is_infinite() {
        let infinity = f64::INFINITY;
        assert_eq!(typical(&[0.1, infinity, infinity], 0.0), Some(infinity));
        assert_eq!(typical(&[0.1, -infinity, -infinity], 0.0), Some(-infinity));
    }

    #[test]
    fn differences_within_the_clock_resolution_are_averaged() {
        let centre = typical(&[0.0, 0.0, 0.0, 0.1], 0.15).expect("there are differences");
        assert!((centre - 0.025).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_no_centre() {
        assert_eq!(typical(&[], 0.0), None);
        assert_eq!(typical(&[f64::NAN], 0.0), None);
    }
}
