//! Workload `dgemm`: multiplies two square matrices by the BLAS that the environment chooses.

use std::time::{Duration, Instant};

use crate::arguments::Options;
use crate::blas::{BLAS, Blas};
use crate::metrics::{Better, Report};
use crate::problem::Problem;
use crate::product_check;
use crate::workload::Workload;
use equipoise_random::Draws;

pub const WORKLOAD: Workload = Workload {
    name: "dgemm",
    summary: "matrix products by the system's BLAS (--size --library)",
    help: "usage: equipoise-workload dgemm [options]

  --size N          rows and columns of each matrix (default 512)
  --repeat N        products of the same two matrices (default 3)
  --library NAME    the BLAS: a soname or a path (default libblas.so.3, so LD_LIBRARY_PATH
                    chooses)

Reports call_s, as the mean and for each product, and gflop_per_s (2 N^3 floating point operations
over the mean). Standard output names the file that the product came from. The product is checked.
",
    run,
};

/// Maximum relative error: far above rounding errors, and far below the error of a wrong element.
const MAX_ERROR: f64 = 1e-10;

fn run(options: &mut Options) -> Result<Report, Problem> {
    let (mut size, mut repeat) = (512, 3);
    let mut library = BLAS.to_owned();
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "size" => size = options.size(1..=30_000)?,
            "repeat" => repeat = options.number(1..=1 << 20)?,
            "library" => library = options.text()?,
            _ => return Err(options.unknown_option()),
        }
    }
    let blas = Blas::open(&library)?;
    let left = random_matrix(size, 1);
    let right = random_matrix(size, 2);
    let mut product = vec![0.0; size * size];
    let multiply = |_| {
        let started = Instant::now();
        blas.multiply((size, size, size), &left, &right, &mut product);
        started.elapsed()
    };
    let times: Vec<Duration> = (0..repeat).map(multiply).collect();
    let error = product_check::relative_error_of_product(size, &left, &right, &product);
    if error.is_nan() || error > MAX_ERROR {
        return Err(Problem::failure(format!(
            "{} multiplied wrongly: relative error {error:e}",
            blas.file()
        )));
    }
    let operations = 2.0 * (size as f64).powi(3);
    let total: Duration = times.iter().sum();
    let rate = operations * times.len() as f64 / total.as_secs_f64() / 1e9;
    Ok(Report::default()
        .fact("blas", blas.file())
        .times("call_s", &times)
        .timed("gflop_per_s", rate, "Gflop/s", Better::Higher, total))
}

/// Returns a matrix with uniform elements in [0, 1). The elements are positive, so relative errors
/// of a product are small.
pub fn random_matrix(size: usize, seed: u64) -> Vec<f64> {
    let draws = Draws::from_seed(seed);
    (0..(size * size) as u64)
        .map(|index| draws.uniform_at(index))
        .collect()
}
