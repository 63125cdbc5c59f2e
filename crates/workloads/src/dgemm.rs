//! Workload `dgemm`: products of two square matrices by the BLAS that the environment chooses.

use std::time::Instant;

use lexopt::{Arg, Parser};

use crate::arguments::{number, text, to_usize};
use crate::blas::{BLAS, Blas};
use crate::metrics::{Outcome, Report};
use crate::problem::Problem;
use crate::residual;
use equipoise_random::Draws;

/// One line for `--list`.
pub const SUMMARY: &str = "matrix products by the system's BLAS (--size --library)";

const HELP: &str = "usage: equipoise-workload dgemm [options]

  --size N          rows and columns of each matrix (default 512)
  --repeat N        products of the same two matrices (default 3)
  --library NAME    the BLAS: a soname or a path (default libblas.so.3, so LD_LIBRARY_PATH
                    chooses)

Reports call_s, as the mean and for each product, and gflop_per_s (2 N^3 floating point operations
over the mean). Standard output names the file that the product came from. The product is checked.
";

/// Rounding errors grow with the size; a wrong element is far above.
const LARGEST_RESIDUAL: f64 = 1e-10;

/// Reads the options and does the work.
pub fn run(parser: &mut Parser) -> Result<Outcome, Problem> {
    let (mut size, mut repeat) = (512, 3);
    let mut library = BLAS.to_owned();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("size") => size = to_usize(number(parser, "size", 1..=30_000)?),
            Arg::Long("repeat") => repeat = number(parser, "repeat", 1..=1 << 20)?,
            Arg::Long("library") => library = text(parser, "library")?,
            Arg::Long("help") | Arg::Short('h') => return Ok(Outcome::Help(HELP)),
            other => return Err(other.unexpected().into()),
        }
    }
    let blas = Blas::open(&library)?;
    let left = random_matrix(size, 1);
    let right = random_matrix(size, 2);
    let mut product = vec![0.0; size * size];
    let mut times = Vec::with_capacity(to_usize(repeat));
    for _ in 0..repeat {
        let started = Instant::now();
        blas.multiply((size, size, size), &left, &right, &mut product);
        times.push(started.elapsed());
    }
    let error = residual::of_product(size, &left, &right, &product);
    if error.is_nan() || error > LARGEST_RESIDUAL {
        return Err(Problem::failure(format!(
            "{} multiplied wrongly: relative error {error:e}",
            blas.file()
        )));
    }
    let operations = 2.0 * (size as f64).powi(3);
    let mean = times
        .iter()
        .map(std::time::Duration::as_secs_f64)
        .sum::<f64>()
        / times.len() as f64;
    Ok(Outcome::Measured(
        Report::default()
            .fact("blas", blas.file())
            .times("call_s", &times)
            .gain("gflop_per_s", operations / mean / 1e9, "Gflop/s"),
    ))
}

/// Elements even in [0, 1): sums of products do not cancel, so relative errors are small.
pub fn random_matrix(size: usize, seed: u64) -> Vec<f64> {
    let draws = Draws::new(seed);
    (0..(size * size) as u64)
        .map(|number| draws.uniform(number))
        .collect()
}
