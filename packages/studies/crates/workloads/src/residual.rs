//! Whether a product of two matrices is right, without computing it again.

use equipoise_random::Draws;

/// The largest error of `product` (size × size, columns one after another) against `left` times
/// `right`, relative to its largest element: both are applied to one random vector (Freivalds
/// 1979), so a wrong element is found at the cost of three products with a vector.
pub fn of_product(size: usize, left: &[f64], right: &[f64], product: &[f64]) -> f64 {
    let draws = Draws::new(size as u64);
    let probe: Vec<f64> = (0..size as u64)
        .map(|number| draws.within(number, 0.5..1.5))
        .collect();
    let through_both = applied(left, &applied(right, &probe));
    let through_product = applied(product, &probe);
    let differences = through_both
        .iter()
        .zip(&through_product)
        .map(|(a, b)| a - b);
    let error = largest(differences);
    error / largest(through_both.iter().copied())
}

/// The matrix times the vector.
fn applied(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    let mut answer = vec![0.0; vector.len()];
    for (column, factor) in matrix.chunks_exact(vector.len()).zip(vector) {
        for (sum, element) in answer.iter_mut().zip(column) {
            *sum += element * factor;
        }
    }
    answer
}

/// The largest absolute value; NaN if a value is NaN, so that no comparison with it succeeds.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |largest, value| {
        if value.is_nan() || value.abs() >= largest {
            value.abs()
        } else {
            largest
        }
    })
}

#[cfg(test)]
mod tests {
    use super::of_product;

    const LEFT: [f64; 4] = [1.0, 2.0, 3.0, 4.0];
    const RIGHT: [f64; 4] = [5.0, 6.0, 7.0, 8.0];
    /// Product by hand, columns one after another.
    const PRODUCT: [f64; 4] = [23.0, 34.0, 31.0, 46.0];

    #[test]
    fn a_right_product_has_no_residual() {
        assert!(of_product(2, &LEFT, &RIGHT, &PRODUCT) < 1e-15);
    }

    #[test]
    fn one_wrong_element_shows() {
        for wrong in 0..4 {
            for value in [0.0, 1000.0, f64::NAN] {
                let mut product = PRODUCT;
                product[wrong] = value;
                let residual = of_product(2, &LEFT, &RIGHT, &product);
                assert!(residual.is_nan() || residual > 1e-3);
            }
        }
    }
}
