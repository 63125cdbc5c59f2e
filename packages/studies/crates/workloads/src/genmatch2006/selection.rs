//! The work of both old algorithms on the distances of a unit: a full sort, masks, and results
//! that grow by copying. May 2006 changed how distances are computed, and nothing here.
//!
//! Made in the loop, for every unit: 25 columns (and 3 by the distances of the first algorithm) of
//! as many numbers as there are rows, or as one arm has.

use equipoise_matching::Pairs;

use super::data::Data;
use super::matching::TOLERANCE;
use super::matrix::{
    Matrix, at_most, bound_rows, cumulated, equal_to, multiplied, reordered, selected, sum,
};

/// Number of matches for every unit, before ties.
const MATCHES: f64 = 1.0;
/// Against rounding (docs/methods/matching.md#what-is-computed).
const SLACK: f64 = 1e-10;

/// Data that the loop over the units reads, and its results.
pub struct Selection {
    treated: Matrix,
    weights: Matrix,
    /// Sum of the weights with which each unit serves as a match.
    service: Matrix,
    /// Sum of the squared weights.
    squared_service: Matrix,
    /// A row for each pair: unit, match, weight.
    results: Option<Matrix>,
}

impl Selection {
    /// Prepares the data, before the first unit.
    pub fn new(data: &Data) -> Self {
        let treated: Vec<f64> = data
            .treated
            .iter()
            .map(|&treated| f64::from(u8::from(treated)))
            .collect();
        let nothing = vec![0.0; data.rows()];
        Self {
            treated: Matrix::column(&treated),
            weights: Matrix::column(&vec![1.0; data.rows()]),
            service: Matrix::column(&nothing),
            squared_service: Matrix::column(&nothing),
            results: None,
        }
    }

    /// Takes the matches of the unit: of the other arm, no further away than the nearest, or
    /// tied with it. `distances` is squared and has all units.
    pub fn add(&mut self, unit: usize, distances: &Matrix) {
        let other_arm = 1.0 - self.treated.at(unit, 0);
        let potential = equal_to(self.treated.by_value(), other_arm);
        let of_potential = selected(distances.by_value(), potential.by_value());
        let weights = selected(self.weights.by_value(), potential.by_value());
        let limit = farthest_match(&of_potential, &weights) + TOLERANCE + SLACK;

        let near = at_most(distances.by_value(), limit);
        let active = multiplied(near, potential);
        let shares = multiplied(self.weights.by_value(), active.by_value());
        let total: f64 = shares.elements().iter().sum();
        self.service = sum(self.service.by_value(), shares.by_value());
        self.squared_service = sum(
            self.squared_service.by_value(),
            multiplied(shares.by_value(), shares),
        );

        let mut rows = Vec::new();
        for other in 0..active.rows() {
            if active.at(other, 0) != 0.0 {
                let weight = self.weights.at(unit, 0) * self.weights.at(other, 0) / total;
                rows.extend([unit as f64, other as f64, weight]);
            }
        }
        let rows = Matrix::from_scratch(rows.len() / 3, 3, &rows);
        self.results = Some(match self.results.take() {
            None => rows,
            Some(results) => bound_rows(results.by_value(), rows.by_value()),
        });
    }

    /// The pairs of all units that were added.
    pub fn pairs(self) -> Pairs {
        let mut pairs = Pairs::default();
        let elements = self.results.as_ref().map_or(&[][..], Matrix::elements);
        for row in elements.chunks_exact(3) {
            pairs.query.push(index(row[0]));
            pairs.matched.push(index(row[1]));
            pairs.weight.push(row[2]);
        }
        pairs
    }
}

/// The distance at which the cumulated weight of the nearest reaches the matches asked for.
fn farthest_match(distances: &Matrix, weights: &Matrix) -> f64 {
    let mut sorted = distances.elements().to_vec();
    let mut order: Vec<usize> = (0..sorted.len()).collect();
    shell_sort(&mut sorted, &mut order);
    let cumulated = cumulated(reordered(weights.by_value(), &order));
    let place = (0..sorted.len()).find(|&place| cumulated.at(place, 0) >= MATCHES - SLACK);
    sorted[place.unwrap_or(sorted.len() - 1)]
}

/// A row number that went through a matrix of floating point numbers.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn index(number: f64) -> usize {
    number as usize
}

/// Sorts the keys in ascending order, and `index` along with them.
///
/// Shell's sort (Shell 1959; gaps after Knuth, The Art of Computer Programming 3).
fn shell_sort(keys: &mut [f64], index: &mut [usize]) {
    let mut gap = 1;
    while gap < keys.len() / 3 {
        gap = 3 * gap + 1;
    }
    while gap > 0 {
        for end in gap..keys.len() {
            let (key, companion) = (keys[end], index[end]);
            let mut place = end;
            while place >= gap && keys[place - gap] > key {
                keys[place] = keys[place - gap];
                index[place] = index[place - gap];
                place -= gap;
            }
            keys[place] = key;
            index[place] = companion;
        }
        gap /= 3;
    }
}

#[cfg(test)]
mod tests {
    use super::shell_sort;
    use equipoise_random::Draws;

    #[test]
    fn keys_end_in_order_with_their_index() {
        for count in [0, 1, 2, 3, 13, 260, 1000] {
            let unsorted: Vec<f64> = (0..count)
                .map(|number| (Draws::new(1).uniform(number) * 20.0).floor())
                .collect();
            let mut keys = unsorted.clone();
            let mut index: Vec<usize> = (0..unsorted.len()).collect();
            shell_sort(&mut keys, &mut index);
            assert!(keys.is_sorted());
            let indexed: Vec<f64> = index.iter().map(|&place| unsorted[place]).collect();
            assert_eq!(keys, indexed);
            index.sort_unstable();
            assert!(index.iter().copied().eq(0..unsorted.len()));
        }
    }
}
