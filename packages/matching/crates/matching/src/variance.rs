//! The variance of each unit's outcome given its covariates, from its own arm.

use crate::matcher::Matcher;
use crate::parallel::Progress;
use crate::problem::{Pairs, Rules};

/// Weights and outcomes of a point's members, added up.
#[derive(Clone, Copy, Default)]
struct Moments {
    weight: f64,
    squared_weights: f64,
    mean: f64,
    /// Weighted sum of squared deviations from the mean.
    spread: f64,
}

impl Moments {
    fn of(values: impl Iterator<Item = (f64, f64)>) -> Self {
        values.fold(Self::default(), |sum, (weight, value)| {
            sum.and(Self {
                weight,
                squared_weights: weight * weight,
                mean: value,
                spread: 0.0,
            })
        })
    }

    fn and(self, other: Self) -> Self {
        let weight = self.weight + other.weight;
        if weight == 0.0 {
            return self;
        }
        let step = other.mean - self.mean;
        let share = other.weight / weight;
        Self {
            weight,
            squared_weights: self.squared_weights + other.squared_weights,
            mean: self.mean + step * share,
            spread: self.spread + other.spread + step * step * self.weight * share,
        }
    }
}

impl Matcher {
    /// The variance of the outcome of each row in `pairs` among its nearest `neighbours` of the
    /// same arm and itself (Abadie and Imbens 2006, eq. 14); `None` for other rows, on which no
    /// error depends, and for rows without a neighbour.
    ///
    /// `None` if `progress` stops the search.
    ///
    /// R uses 0 if a caliper leaves fewer neighbours than requested, and an outcome of 0 for a
    /// neighbour that an arm lacks; it is correct to use the neighbours that exist. R also has no
    /// more neighbours than the smaller arm weighs, and counts the variances of units that are in
    /// no pair.
    pub fn variances(
        &self,
        outcome: &[f64],
        pairs: &Pairs,
        neighbours: f64,
        progress: &Progress<'_>,
    ) -> Option<Vec<Option<f64>>> {
        let problem = &self.problem;
        let mut variances = vec![None; problem.rows()];
        let is_as_in_r = problem.rules == Rules::AsInR;
        let mut in_pairs = vec![is_as_in_r; problem.rows()];
        for (query, matched, _) in pairs.iter() {
            in_pairs[query] = true;
            in_pairs[matched] = true;
        }
        let neighbours = if is_as_in_r {
            neighbours.min(self.weight(false)).min(self.weight(true))
        } else {
            neighbours
        };
        for arm in [false, true] {
            let pool = self.pool(arm);
            let wanted: Vec<bool> = (0..pool.points)
                .map(|point| {
                    pool.members(point)
                        .iter()
                        .any(|&row| in_pairs[row as usize])
                })
                .collect();
            let admitted = |point: usize, other: usize| {
                let row = pool.members(point)[0] as usize;
                if other == point {
                    let rest = pool.weight[point] - problem.weight(row);
                    (pool.members(point).len() > 1).then_some(rest)
                } else {
                    let member = pool.members(other)[0] as usize;
                    self.within_caliper(row, member).then(|| pool.weight[other])
                }
            };
            let is_wanted = |point: usize| wanted[point];
            let around =
                self.neighbourhoods(arm, arm, neighbours, &is_wanted, progress, &admitted)?;
            let moments: Vec<Moments> = (0..pool.points)
                .map(|point| {
                    Moments::of(pool.members(point).iter().map(|&row| {
                        let row = row as usize;
                        (problem.weight(row), outcome[row])
                    }))
                })
                .collect();
            for point in (0..pool.points).filter(|&point| wanted[point]) {
                let others = around.of(point).iter().map(|&(_, other)| other as usize);
                let mut others: Vec<usize> = others.filter(|&other| other != point).collect();
                // Sums must not depend on the order of the pool, which depends on the method.
                others.sort_unstable_by_key(|&other| pool.members(other)[0]);
                let together = others
                    .into_iter()
                    .fold(moments[point], |sum, other| sum.and(moments[other]));
                let alone = around.of(point).is_empty();
                let variance = match problem.rules {
                    Rules::AsInR if self.filtered() && !around.enough(point) => Some(0.0),
                    Rules::AsInR => {
                        // A unit that needs all of its arm finds itself too, with outcome 0.
                        let itself = !around.enough(point) && problem.weights.is_none();
                        let together = together.and(Moments {
                            weight: f64::from(u8::from(itself)),
                            ..Moments::default()
                        });
                        let alone = alone && !itself;
                        (!alone).then(|| together.spread / (together.weight - 1.0))
                    }
                    Rules::Correct => {
                        let divisor = together.weight - together.squared_weights / together.weight;
                        (!alone && divisor > 0.0).then(|| together.spread / divisor)
                    }
                };
                for &row in pool.members(point) {
                    variances[row as usize] = variance;
                }
            }
        }
        Some(variances)
    }

    /// Sum of the weights of one arm.
    fn weight(&self, arm: bool) -> f64 {
        let rows = (0..self.problem.rows()).filter(|&row| self.problem.treated[row] == arm);
        rows.map(|row| self.problem.weight(row)).sum()
    }
}
