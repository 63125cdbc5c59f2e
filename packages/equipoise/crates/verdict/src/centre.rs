//! The typical difference of a campaign: a robust mean, between median and mean (Huber 1964).

use crate::block::Block;
use crate::order_statistics::{mad_scale, median};
use crate::past::Estimates;
use crate::rules::CLIP_SCALES;
use crate::search::last_that_holds;

/// The centre of the differences and their spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// Huber's M-estimate of the differences without the order effect. It is infinite if most
    /// differences are infinite.
    pub typical: f64,
    /// The order effect: how much more the second trial of a block takes than the first, in log
    /// units. It is 0 if it is within the noise.
    pub order_effect: f64,
    /// Robust standard deviation of the differences.
    pub scale: f64,
}

impl Centre {
    /// The centre of the blocks in which at most one trial timed out; `None` without such blocks.
    ///
    /// The scale is 1.4826·MAD, but at least the median tolerance.
    pub(crate) fn of(blocks: &[Block], estimates: Estimates) -> Option<Self> {
        let known = || blocks.iter().filter(|block| !block.difference.is_nan());
        let values: Vec<f64> = known().map(|block| estimates.residual(block)).collect();
        let mut scratch = values.clone();
        let middle = median(&mut scratch)?;
        let spread = mad_scale(&values, middle, &mut scratch);
        scratch.clear();
        scratch.extend(known().map(|block| block.tolerance));
        let tolerance = median(&mut scratch).filter(|tolerance| tolerance.is_finite())?;
        let scale = spread.max(tolerance);
        Some(Self {
            typical: huber_centre(&values, middle, CLIP_SCALES * scale),
            order_effect: estimates.order_effect,
            scale,
        })
    }
}

/// The μ at which Σ clip((x − μ)/width, −1, 1) over all values x is 0. `middle` is their median.
fn huber_centre(values: &[f64], middle: f64, width: f64) -> f64 {
    if !middle.is_finite() || width <= 0.0 {
        return middle;
    }
    let balance = |centre: f64| -> f64 {
        values
            .iter()
            .map(|value| ((value - centre) / width).clamp(-1.0, 1.0))
            .sum()
    };
    // μ is within one width of the median.
    let (below, above) = (middle - 2.0 * width, middle + 2.0 * width);
    let low = if balance(below) > 0.0 {
        last_that_holds(below, above, |centre| balance(centre) > 0.0)
    } else {
        below
    };
    let high = if balance(above) < 0.0 {
        last_that_holds(above, below, |centre| balance(centre) < 0.0)
    } else {
        above
    };
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Order;

    fn typical(differences: &[f64], tolerance: f64) -> Option<f64> {
        let blocks: Vec<Block> = differences
            .iter()
            .map(|&difference| Block::new(difference, Order::BaselineFirst, tolerance))
            .collect();
        Centre::of(&blocks, Estimates::default()).map(|centre| centre.typical)
    }

    #[test]
    fn the_centre_of_differences_without_extremes_is_their_mean() {
        let centre = typical(&[1.0, 2.0, 3.0, 4.4], 0.0).expect("there are differences");
        assert!((centre - 2.6).abs() < 1e-12);
    }

    #[test]
    fn an_extreme_counts_like_a_difference_of_one_and_a_quarter_scales() {
        // MAD 1, scale 1.4826, width 1.85325: ((2+2.5+3+4) − 4μ)/w + 1 = 0.
        let centre = typical(&[2.0, 2.5, 3.0, 4.0, 1000.0], 0.0).expect("there are differences");
        assert!((centre - (11.5 + 1.853_25) / 4.0).abs() < 1e-12);
        let infinite = typical(&[2.0, 2.5, 3.0, 4.0, f64::INFINITY], 0.0);
        assert!((infinite.expect("there are differences") - centre).abs() < 1e-12);
    }

    #[test]
    fn the_centre_is_infinite_if_most_trials_timed_out() {
        let infinity = f64::INFINITY;
        assert_eq!(typical(&[0.1, infinity, infinity], 0.0), Some(infinity));
        assert_eq!(typical(&[0.1, -infinity, -infinity], 0.0), Some(-infinity));
    }

    #[test]
    fn differences_below_the_clock_resolution_are_averaged() {
        let centre = typical(&[0.0, 0.0, 0.0, 0.1], 0.15).expect("there are differences");
        assert!((centre - 0.025).abs() < 1e-12);
    }

    #[test]
    fn without_differences_there_is_no_centre() {
        assert_eq!(typical(&[], 0.0), None);
        assert_eq!(typical(&[f64::NAN], 0.0), None);
    }
}
