//! The variance of a unit's outcome given its covariates, from similar units of its arm.

use crate::matcher::Matcher;
use crate::parallel::Progress;
use crate::problem::{Pairs, Rules};

/// Weighted mean and sum of squares of some outcomes.
#[derive(Clone, Copy, Default)]
struct Moments {
    weight: f64,
    squared_weights: f64,
    mean: f64,
    /// Weighted sum of squared deviations from the mean.
    squares: f64,
}

impl Moments {
    fn of_values(values: impl Iterator<Item = (f64, f64)>) -> Self {
        values.fold(Self::default(), |sum, (weight, value)| {
            sum.combined_with(Self {
                weight,
                squared_weights: weight * weight,
                mean: value,
                squares: 0.0,
            })
        })
    }

    fn combined_with(self, other: Self) -> Self {
        let weight = self.weight + other.weight;
        if weight == 0.0 {
            return self;
        }
        let difference = other.mean - self.mean;
        let share = other.weight / weight;
        Self {
            weight,
            squared_weights: self.squared_weights + other.squared_weights,
            mean: self.mean + difference * share,
            squares: self.squares + other.squares + difference * difference * self.weight * share,
        }
    }
}

impl Matcher {
    /// Returns for each row of `pairs` the variance of the outcome among the row and its nearest
    /// `neighbours` of the same arm (Abadie and Imbens 2006, eq. 14). The variance is `None` for a
    /// row without a pair or without a neighbour. Returns `None` if `progress` stops the search.
    /// The correct rules use the neighbours that exist; docs/evidence/r-packages.md has the rules
    /// of R.
    pub fn variances(
        &self,
        outcome: &[f64],
        pairs: &Pairs,
        neighbours: f64,
        progress: &Progress<'_>,
    ) -> Option<Vec<Option<f64>>> {
        let problem = &self.problem;
        let mut variances = vec![None; problem.rows()];
        let follows_r = problem.rules == Rules::AsInR;
        let mut in_pairs = vec![follows_r; problem.rows()];
        for (query, matched, _) in pairs.iter() {
            in_pairs[query] = true;
            in_pairs[matched] = true;
        }
        let neighbours = if follows_r {
            neighbours.min(self.weight(false)).min(self.weight(true))
        } else {
            neighbours
        };
        for arm in [false, true] {
            let pool = self.pool(arm);
            let needs_variance: Vec<bool> = (0..pool.point_count)
                .map(|point| {
                    pool.members(point)
                        .iter()
                        .any(|&row| in_pairs[row as usize])
                })
                .collect();
            let weight_of = |point: usize, other: usize| {
                let row = pool.members(point)[0] as usize;
                if other == point {
                    // The other rows of the point are neighbours of its first row.
                    let other_weight = pool.weight[point] - problem.weight(row);
                    (pool.members(point).len() > 1).then_some(other_weight)
                } else {
                    let member = pool.members(other)[0] as usize;
                    self.within_caliper(row, member).then(|| pool.weight[other])
                }
            };
            let is_wanted = |point: usize| needs_variance[point];
            let neighbourhoods =
                self.neighbourhoods(arm, arm, neighbours, &is_wanted, progress, &weight_of)?;
            let moments: Vec<Moments> = (0..pool.point_count)
                .map(|point| {
                    Moments::of_values(pool.members(point).iter().map(|&row| {
                        let row = row as usize;
                        (problem.weight(row), outcome[row])
                    }))
                })
                .collect();
            for point in (0..pool.point_count).filter(|&point| needs_variance[point]) {
                let neighbours = neighbourhoods.of_point(point);
                let other_points = neighbours.iter().map(|&(_, other)| other as usize);
                let mut others: Vec<usize> = other_points.filter(|&other| other != point).collect();
                // The order of the pool depends on the method, but the sums must not.
                others.sort_unstable_by_key(|&other| pool.members(other)[0]);
                let combined = others.into_iter().fold(moments[point], |sum, other| {
                    sum.combined_with(moments[other])
                });
                let has_no_neighbour = neighbours.is_empty();
                let has_enough = neighbourhoods.has_enough(point);
                let variance = match problem.rules {
                    Rules::AsInR if self.can_drop_units() && !has_enough => Some(0.0),
                    Rules::AsInR => {
                        // In R, a unit that needs its whole arm finds itself, with outcome 0.
                        let counts_itself = !has_enough && problem.weights.is_none();
                        let combined = combined.combined_with(Moments {
                            weight: f64::from(u8::from(counts_itself)),
                            ..Moments::default()
                        });
                        let has_no_neighbour = has_no_neighbour && !counts_itself;
                        (!has_no_neighbour).then(|| combined.squares / (combined.weight - 1.0))
                    }
                    Rules::Correct => {
                        let divisor = combined.weight - combined.squared_weights / combined.weight;
                        (!has_no_neighbour && divisor > 0.0).then(|| combined.squares / divisor)
                    }
                };
                for &row in pool.members(point) {
                    variances[row as usize] = variance;
                }
            }
        }
        Some(variances)
    }

    fn weight(&self, arm: bool) -> f64 {
        let rows = (0..self.problem.rows()).filter(|&row| self.problem.treated[row] == arm);
        rows.map(|row| self.problem.weight(row)).sum()
    }
}
