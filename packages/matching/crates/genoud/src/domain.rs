//! The box of points to search, given by bounds of each parameter.

use crate::random::Source;

/// The points that must be inside the bounds: levels 0 to 2 of `boundary.enforcement` in Mebane &
/// Sekhon (2011).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Boundary {
    /// Level 0: only the random points.
    RandomPoints,
    /// Level 1: every candidate. The local optimiser may evaluate points outside.
    Candidates,
    /// Level 2: every point that is evaluated.
    AllPoints,
}

/// Lower and upper bounds of each parameter, which may be restricted to whole numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    lower: Vec<f64>,
    upper: Vec<f64>,
    integer: bool,
}

impl Domain {
    /// Makes a box from finite bounds. With `integer`, the bounds must be whole numbers.
    ///
    /// # Errors
    /// A message that names the parameter (from 0) with wrong bounds.
    pub fn new(lower: Vec<f64>, upper: Vec<f64>, integer: bool) -> Result<Self, String> {
        if lower.is_empty() || lower.len() != upper.len() {
            return Err(format!(
                "{} lower and {} upper bounds: each parameter needs one lower and one upper bound",
                lower.len(),
                upper.len()
            ));
        }
        for (parameter, (&low, &high)) in lower.iter().zip(&upper).enumerate() {
            let bounds = format!("the bounds of parameter {parameter}");
            if !low.is_finite() || !high.is_finite() || !(high - low).is_finite() {
                return Err(format!("{bounds}, {low} and {high}, are not finite"));
            }
            if low > high {
                return Err(format!("{bounds} cross: {low} > {high}"));
            }
            if integer && (low.fract() != 0.0 || high.fract() != 0.0) {
                return Err(format!("{bounds}, {low} and {high}, are not whole numbers"));
            }
        }
        Ok(Self {
            lower,
            upper,
            integer,
        })
    }

    /// Returns the number of parameters.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        self.lower.len()
    }

    /// Whether parameters are restricted to whole numbers.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.integer
    }

    /// Returns the lower and the upper bound of a parameter.
    #[must_use]
    pub fn bounds(&self, parameter: usize) -> (f64, f64) {
        (self.lower[parameter], self.upper[parameter])
    }

    /// Whether the point is inside, including the bounds.
    #[must_use]
    pub fn contains(&self, point: &[f64]) -> bool {
        let bounds = self.lower.iter().zip(&self.upper);
        let is_inside = |(value, (low, high))| value >= low && value <= high;
        point.iter().zip(bounds).all(is_inside)
    }

    /// Draws a value of one parameter, uniform between its bounds.
    pub fn draw(&self, parameter: usize, source: &mut Source) -> f64 {
        let (low, high) = self.bounds(parameter);
        if self.integer {
            // The number of whole numbers between the bounds is exact below 2^53.
            let count = high - low + 1.0;
            return (low + (source.uniform() * count).floor()).min(high);
        }
        (low + source.uniform() * (high - low)).clamp(low, high)
    }

    /// Draws a point that is uniform in the box.
    pub fn point(&self, source: &mut Source) -> Vec<f64> {
        let draw = |parameter| self.draw(parameter, source);
        (0..self.parameter_count()).map(draw).collect()
    }

    /// Returns the value, rounded to a whole number if parameters are whole numbers.
    #[must_use]
    pub fn rounded(&self, value: f64) -> f64 {
        if self.integer { value.round() } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn bounds_that_cross_are_refused_with_the_parameter() {
        let error = Domain::new(vec![0.0, 2.0], vec![1.0, 1.0], false).unwrap_err();
        assert!(error.contains("parameter 1 cross: 2 > 1"));
        assert!(Domain::new(vec![0.0], vec![f64::INFINITY], false).is_err());
        assert!(Domain::new(vec![0.5], vec![2.0], true).is_err());
        assert!(Domain::new(vec![], vec![], false).is_err());
    }

    #[test]
    fn all_whole_numbers_of_the_domain_are_equally_likely() {
        let domain = Domain::new(vec![-2.0], vec![2.0], true).unwrap();
        let mut source = Source::new(Generator::Philox, 5);
        let mut counts = [0_i32; 5];
        for _ in 0..50_000 {
            let value = domain.draw(0, &mut source);
            assert!(value.fract() == 0.0);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let index = (value + 2.0) as usize;
            counts[index] += 1;
        }
        let sd = (50_000.0 * 0.2 * 0.8_f64).sqrt();
        for count in counts {
            assert!((f64::from(count) - 10_000.0).abs() < 5.0 * sd);
        }
    }

    #[test]
    fn a_domain_of_one_point_draws_that_point() {
        let domain = Domain::new(vec![3.0], vec![3.0], false).unwrap();
        let mut source = Source::new(Generator::Philox, 6);
        assert!(domain.contains(&domain.point(&mut source)));
    }
}
