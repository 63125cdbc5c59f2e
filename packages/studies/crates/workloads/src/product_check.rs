//! Checks the product of two matrices without computing the product again (Freivalds 1979).

use equipoise_random::Draws;

/// Returns the largest relative error of `product` as the product of `left` and `right`. All three
/// are size × size, stored column by column. A random vector is multiplied by `right` and then by
/// `left`, and also by `product`: a wrong element makes the two results different.
pub fn relative_error_of_product(size: usize, left: &[f64], right: &[f64], product: &[f64]) -> f64 {
    let draws = Draws::from_seed(size as u64);
    let probe: Vec<f64> = (0..size as u64)
        .map(|index| draws.in_range_at(index, 0.5..1.5))
        .collect();
    let through_both = times_vector(left, &times_vector(right, &probe));
    let through_product = times_vector(product, &probe);
    let differences = through_both
        .iter()
        .zip(&through_product)
        .map(|(a, b)| a - b);
    largest(differences) / largest(through_both.iter().copied())
}

fn times_vector(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; vector.len()];
    for (column, factor) in matrix.chunks_exact(vector.len()).zip(vector) {
        for (sum, element) in product.iter_mut().zip(column) {
            *sum += element * factor;
        }
    }
    product
}

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
    use super::relative_error_of_product;

    const LEFT: [f64; 4] = [1.0, 2.0, 3.0, 4.0];
    const RIGHT: [f64; 4] = [5.0, 6.0, 7.0, 8.0];
    /// Product, computed by hand and stored column by column.
    const PRODUCT: [f64; 4] = [23.0, 34.0, 31.0, 46.0];

    #[test]
    fn a_right_product_has_no_error() {
        assert!(relative_error_of_product(2, &LEFT, &RIGHT, &PRODUCT) < 1e-15);
    }

    #[test]
    fn one_wrong_element_is_found() {
        for wrong in 0..4 {
            for value in [0.0, 1000.0, f64::NAN] {
                let mut product = PRODUCT;
                product[wrong] = value;
                let error = relative_error_of_product(2, &LEFT, &RIGHT, &product);
                assert!(error.is_nan() || error > 1e-3);
            }
        }
    }
}
