//! Tests the balance of matched units by paired t and Kolmogorov-Smirnov tests of each column.
//!
//! The columns are the covariates and the product of the two earnings, as in the example of the R
//! package Matching (docs/methods/genetic-matching.md, "pvals").

use equipoise_matching::Pairs;
use puruspe::betai;

use super::data::{COVARIATES, Data, RE74, RE75};

/// Number of terms of each series. Further terms are smaller than rounding errors.
const MAX_TERMS: i32 = 100;

/// The data, and the columns whose balance is tested.
pub struct Balance<'a> {
    data: &'a Data,
    columns: Vec<Column>,
}

/// A column whose balance is tested.
struct Column {
    values: Vec<f64>,
    /// Whether the column has at most two values, so that only the t test is used.
    is_dichotomous: bool,
}

impl<'a> Balance<'a> {
    pub fn new(data: &'a Data) -> Self {
        let values = |value: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            (0..data.rows()).map(|row| value(data.row(row))).collect()
        };
        let covariates = (0..COVARIATES.len()).map(|column| values(&|row| row[column]));
        let columns = covariates
            .chain([values(&|row| row[RE74] * row[RE75])])
            .map(|values| Column {
                is_dichotomous: count_distinct(&values) < 3,
                values,
            })
            .collect();
        Self { data, columns }
    }

    /// Returns the p-values of both tests of every column, in ascending order.
    pub fn p_values(&self, pairs: &Pairs) -> Vec<f64> {
        let mut p_values = Vec::with_capacity(2 * self.columns.len());
        for column in &self.columns {
            let values = pairs.iter().map(|(query, matched, _)| {
                let (query_value, matched_value) = (column.values[query], column.values[matched]);
                if self.data.treated[query] {
                    (query_value, matched_value)
                } else {
                    (matched_value, query_value)
                }
            });
            let (treated, controls): (Vec<f64>, Vec<f64>) = values.unzip();
            let t_test_p = paired_t(&treated, &controls, &pairs.weight);
            p_values.push(t_test_p);
            p_values.push(if column.is_dichotomous {
                t_test_p
            } else {
                kolmogorov_smirnov(treated, controls)
            });
        }
        p_values.sort_unstable_by(f64::total_cmp);
        p_values
    }
}

fn count_distinct(values: &[f64]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.dedup();
    sorted.len()
}

/// Returns the two-sided p-value of a paired t test with weights; 1 if no pair has a difference.
/// The degrees of freedom are the sum of the weights minus 1.
fn paired_t(treated: &[f64], controls: &[f64], weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    let weighted_sum = |term: &dyn Fn(f64) -> f64| -> f64 {
        treated
            .iter()
            .zip(controls)
            .zip(weights)
            .map(|((treated, control), weight)| weight * term(treated - control))
            .sum()
    };
    let mean = weighted_sum(&|difference| difference) / total;
    let squares = weighted_sum(&|difference| (difference - mean).powi(2));
    if mean == 0.0 && squares == 0.0 {
        return 1.0;
    }
    let squared_t = (mean * total).powi(2) / squares;
    let degrees = total - 1.0;
    if squared_t.is_finite() {
        // Abramowitz and Stegun 26.7.1.
        betai(degrees / 2.0, 0.5, degrees / (degrees + squared_t))
    } else {
        0.0
    }
}

/// Returns the asymptotic p-value of the hypothesis that two samples have one distribution.
fn kolmogorov_smirnov(mut first: Vec<f64>, mut second: Vec<f64>) -> f64 {
    first.sort_unstable_by(f64::total_cmp);
    second.sort_unstable_by(f64::total_cmp);
    let (n, m) = (first.len() as f64, second.len() as f64);
    let (mut i, mut j) = (0, 0);
    let mut largest: f64 = 0.0;
    while i < first.len() && j < second.len() {
        let value = first[i].min(second[j]);
        while i < first.len() && first[i] <= value {
            i += 1;
        }
        while j < second.len() && second[j] <= value {
            j += 1;
        }
        largest = largest.max((i as f64 / n - j as f64 / m).abs());
    }
    upper_tail((n * m / (n + m)).sqrt() * largest)
}

/// Returns the upper tail of Kolmogorov's limiting distribution (1933). For small and for large
/// `x`, two different series converge fast.
fn upper_tail(x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    if x < 1.0 {
        let exponent = -std::f64::consts::PI.powi(2) / (8.0 * x * x);
        let sum: f64 = (0..MAX_TERMS)
            .map(|term| (f64::from(2 * term + 1).powi(2) * exponent).exp())
            .sum();
        return 1.0 - (2.0 * std::f64::consts::PI).sqrt() / x * sum;
    }
    let sum: f64 = (1..MAX_TERMS)
        .map(|term| {
            let sign = if term % 2 == 1 { 1.0 } else { -1.0 };
            sign * (-2.0 * f64::from(term).powi(2) * x * x).exp()
        })
        .sum();
    2.0 * sum
}

#[cfg(test)]
mod tests {
    use super::{kolmogorov_smirnov, paired_t, upper_tail};

    #[test]
    fn the_t_test_agrees_with_the_tables() {
        // The differences 1, 2, 3 and 4 have mean 2.5 and sum of squares 5. The variance of the
        // mean is 5 / n², as in the package Matching.
        let differences = [1.0, 2.0, 3.0, 4.0];
        let t = 2.5 / (5.0_f64 / 16.0).sqrt();
        let p = paired_t(&differences, &[0.0; 4], &[1.0; 4]);
        // Student's distribution with 3 degrees of freedom has a closed form.
        let angle = (t / 3.0_f64.sqrt()).atan();
        let expected = 1.0 - 2.0 / std::f64::consts::PI * (angle + angle.sin() * angle.cos());
        assert!((p - expected).abs() < 1e-8, "{p} {expected}");
    }

    #[test]
    fn samples_without_a_difference_have_p_value_one() {
        assert!(paired_t(&[3.0; 5], &[3.0; 5], &[1.0; 5]) >= 1.0);
        assert!(kolmogorov_smirnov(vec![3.0; 5], vec![3.0; 5]) >= 1.0);
        assert!(paired_t(&[3.0; 5], &[2.0; 5], &[1.0; 5]) <= 0.0);
    }

    #[test]
    fn both_series_of_the_limiting_distribution_agree_at_one() {
        assert!((upper_tail(1.0 - 1e-12) - upper_tail(1.0)).abs() < 1e-10);
        // Smirnov's table (1948).
        for (x, p) in [(1.36, 0.049), (1.63, 0.010), (0.5, 0.9639)] {
            assert!((upper_tail(x) - p).abs() < 1e-3, "{x}: {}", upper_tail(x));
        }
    }

    #[test]
    fn the_largest_distance_of_the_distributions_counts_ties_once() {
        // The distributions differ by 1/2 at 1 and by 0 at 2; the sizes give the factor 1.
        let p = kolmogorov_smirnov(vec![1.0, 2.0], vec![2.0, 2.0]);
        assert!((p - upper_tail(0.5)).abs() < 1e-12);
    }
}
