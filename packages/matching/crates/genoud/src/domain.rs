//! The box that is searched.

use crate::random::Source;

/// How strictly the bounds bind (Mebane & Sekhon 2011, `boundary.enforcement`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Boundary {
    /// 0: they only say where random points come from.
    Anything,
    /// 1: every individual is inside; polishing may look outside.
    Partial,
    /// 2: points outside are never evaluated.
    Never,
}

/// Lower and upper bounds of each parameter, and whether only whole numbers count.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    lower: Vec<f64>,
    upper: Vec<f64>,
    integer: bool,
}

impl Domain {
    /// Bounds of equal length, finite, none crossed; whole numbers if `integer`.
    ///
    /// # Errors
    /// Names the parameter (from 0) with wrong bounds.
    pub fn new(lower: Vec<f64>, upper: Vec<f64>, integer: bool) -> Result<Self, String> {
        if lower.is_empty() || lower.len() != upper.len() {
            return Err(format!(
                "{} lower and {} upper bounds: one of each is needed for every parameter",
                lower.len(),
                upper.len()
            ));
        }
        for (place, (&low, &high)) in lower.iter().zip(&upper).enumerate() {
            let bounds = format!("the bounds of parameter {place}");
            if !low.is_finite() || !high.is_finite() || !(high - low).is_finite() {
                return Err(format!("{bounds}, {low} and {high}, are not finite"));
            }
            if low > high {
                return Err(format!("{bounds} cross: {low} > {high}"));
            }
            if integer && (low.fract() != 0.0 || high.fract() != 0.0) {
                return Err(format!("{bounds}, {low} and {high}, are no whole numbers"));
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
    pub fn parameters(&self) -> usize {
        self.lower.len()
    }

    /// Whether only whole numbers count.
    #[must_use]
    pub fn integer(&self) -> bool {
        self.integer
    }

    /// The lower and the upper bound of a parameter.
    #[must_use]
    pub fn bounds(&self, place: usize) -> (f64, f64) {
        (self.lower[place], self.upper[place])
    }

    /// Whether the point is inside, including the bounds.
    #[must_use]
    pub fn contains(&self, point: &[f64]) -> bool {
        let bounds = self.lower.iter().zip(&self.upper);
        let is_inside = |(value, (low, high))| value >= low && value <= high;
        point.iter().zip(bounds).all(is_inside)
    }

    /// Uniform between the bounds of one parameter.
    pub fn draw(&self, place: usize, source: &mut Source) -> f64 {
        let (low, high) = self.bounds(place);
        if self.integer {
            // Number of values, one more than the difference; exact below 2^53.
            let count = high - low + 1.0;
            return (low + (source.uniform() * count).floor()).min(high);
        }
        (low + source.uniform() * (high - low)).clamp(low, high)
    }

    /// A uniform point of the box.
    pub fn point(&self, source: &mut Source) -> Vec<f64> {
        let places = 0..self.parameters();
        places.map(|place| self.draw(place, source)).collect()
    }

    /// The value in the domain: the nearest whole number if the domain is integer.
    #[must_use]
    pub fn whole(&self, value: f64) -> f64 {
        if self.integer { value.round() } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn bounds_that_cross_are_refused_by_their_parameter() {
        let error = Domain::new(vec![0.0, 2.0], vec![1.0, 1.0], false).unwrap_err();
        assert!(error.contains("parameter 1 cross: 2 > 1"));
        assert!(Domain::new(vec![0.0], vec![f64::INFINITY], false).is_err());
        assert!(Domain::new(vec![0.5], vec![2.0], true).is_err());
        assert!(Domain::new(vec![], vec![], false).is_err());
    }

    #[test]
    fn every_whole_number_of_the_domain_is_as_likely() {
        let domain = Domain::new(vec![-2.0], vec![2.0], true).unwrap();
        let mut source = Source::new(Generator::Philox, 5);
        let mut counts = [0_i32; 5];
        for _ in 0..50_000 {
            let value = domain.draw(0, &mut source);
            assert!(value.fract() == 0.0);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let place = (value + 2.0) as usize;
            counts[place] += 1;
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
