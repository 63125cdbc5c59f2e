//! Selects the matches of a unit from its distances, as both old algorithms do. Full sorts, masks
//! and copies of growing results make this slow.
//!
//! For every unit the loop allocates 25 columns as long as the data or as one arm. The distances of
//! `scythe` allocate 3 more.

use equipoise_matching::Pairs;

use super::data::Data;
use super::matching::TOLERANCE;
use super::matrix::{
    Matrix, elementwise_product, mask_at_most, mask_equal, masked_elements, reordered,
    running_sums, stacked_rows, sum,
};

/// Number of matches for every unit, before ties.
const MATCHES: f64 = 1.0;
/// Maximum rounding error of a sum of weights (docs/methods/matching.md#what-is-computed).
const WEIGHT_ROUNDING: f64 = 1e-10;

/// Data for the loop over the units, and its results.
pub struct Selection {
    treated: Matrix,
    weights: Matrix,
    /// Sum of the weights with which each unit is used as a match. As in the old algorithms, this
    /// and the next sum are computed for each unit.
    use_weights: Matrix,
    squared_use_weights: Matrix,
    /// A row for each pair: unit, match, weight.
    results: Option<Matrix>,
}

impl Selection {
    pub fn new(data: &Data) -> Self {
        let treated: Vec<f64> = data
            .treated
            .iter()
            .map(|&treated| f64::from(u8::from(treated)))
            .collect();
        let zeros = vec![0.0; data.rows()];
        Self {
            treated: Matrix::column(&treated),
            weights: Matrix::column(&vec![1.0; data.rows()]),
            use_weights: Matrix::column(&zeros),
            squared_use_weights: Matrix::column(&zeros),
            results: None,
        }
    }

    /// Adds the matches of a unit: the nearest units of the other arm, all ties included.
    /// `distances` are the squared distances of all units.
    pub fn add(&mut self, unit: usize, distances: &Matrix) {
        let other_arm = 1.0 - self.treated.at(unit, 0);
        let in_other_arm = mask_equal(self.treated.by_value(), other_arm);
        let arm_distances = masked_elements(distances.by_value(), in_other_arm.by_value());
        let weights = masked_elements(self.weights.by_value(), in_other_arm.by_value());
        let limit = farthest_match(&arm_distances, &weights) + TOLERANCE + WEIGHT_ROUNDING;

        let near = mask_at_most(distances.by_value(), limit);
        let is_match = elementwise_product(near, in_other_arm);
        let shares = elementwise_product(self.weights.by_value(), is_match.by_value());
        let total: f64 = shares.elements().iter().sum();
        self.use_weights = sum(self.use_weights.by_value(), shares.by_value());
        self.squared_use_weights = sum(
            self.squared_use_weights.by_value(),
            elementwise_product(shares.by_value(), shares),
        );

        let mut rows = Vec::new();
        for other in 0..is_match.rows() {
            if is_match.at(other, 0) != 0.0 {
                let weight = self.weights.at(unit, 0) * self.weights.at(other, 0) / total;
                rows.extend([unit as f64, other as f64, weight]);
            }
        }
        let rows = Matrix::from_scratch(rows.len() / 3, 3, &rows);
        self.results = Some(match self.results.take() {
            None => rows,
            Some(results) => stacked_rows(results.by_value(), rows.by_value()),
        });
    }

    pub fn pairs(self) -> Pairs {
        let mut pairs = Pairs::default();
        let elements = self.results.as_ref().map_or(&[][..], Matrix::elements);
        for row in elements.chunks_exact(3) {
            pairs.query.push(row_number(row[0]));
            pairs.matched.push(row_number(row[1]));
            pairs.weight.push(row[2]);
        }
        pairs
    }
}

/// Returns the distance at which the cumulative weight of the nearest units reaches `MATCHES`.
fn farthest_match(distances: &Matrix, weights: &Matrix) -> f64 {
    let mut sorted = distances.elements().to_vec();
    let mut order: Vec<usize> = (0..sorted.len()).collect();
    shell_sort(&mut sorted, &mut order);
    let cumulative_weights = running_sums(reordered(weights.by_value(), &order));
    let last = (0..sorted.len())
        .find(|&index| cumulative_weights.at(index, 0) >= MATCHES - WEIGHT_ROUNDING);
    sorted[last.unwrap_or(sorted.len() - 1)]
}

/// Returns the row number that is stored in a matrix as a floating point number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn row_number(number: f64) -> usize {
    number as usize
}

/// Sorts the keys in ascending order, and `index` in the same way, by Shell's sort (Shell 1959;
/// gaps of Knuth, The Art of Computer Programming 3).
fn shell_sort(keys: &mut [f64], index: &mut [usize]) {
    let mut gap = 1;
    while gap < keys.len() / 3 {
        gap = 3 * gap + 1;
    }
    while gap > 0 {
        for end in gap..keys.len() {
            let (key, key_index) = (keys[end], index[end]);
            let mut position = end;
            while position >= gap && keys[position - gap] > key {
                keys[position] = keys[position - gap];
                index[position] = index[position - gap];
                position -= gap;
            }
            keys[position] = key;
            index[position] = key_index;
        }
        gap /= 3;
    }
}

#[cfg(test)]
mod tests {
    use super::shell_sort;
    use equipoise_random::Draws;

    #[test]
    fn keys_are_sorted_together_with_their_index() {
        for count in [0, 1, 2, 3, 13, 260, 1000] {
            let unsorted: Vec<f64> = (0..count)
                .map(|number| (Draws::from_seed(1).uniform_at(number) * 20.0).floor())
                .collect();
            let mut keys = unsorted.clone();
            let mut index: Vec<usize> = (0..unsorted.len()).collect();
            shell_sort(&mut keys, &mut index);
            assert!(keys.is_sorted());
            let indexed: Vec<f64> = index.iter().map(|&row| unsorted[row]).collect();
            assert_eq!(keys, indexed);
            index.sort_unstable();
            assert!(index.iter().copied().eq(0..unsorted.len()));
        }
    }
}
