//! Workload `invert`: inverts a matrix by the LAPACK and BLAS that the environment chooses.

use std::time::{Duration, Instant};

use crate::arguments::Options;
use crate::blas::{BLAS, Blas, Lapack};
use crate::dgemm::random_matrix;
use crate::metrics::Report;
use crate::problem::Problem;
use crate::product_check;
use crate::workload::Workload;

pub const WORKLOAD: Workload = Workload {
    name: "invert",
    summary: "matrix inverses by the system's LAPACK (--size --library)",
    help: "usage: equipoise-workload invert [options]

  --size N          rows and columns of the matrix (default 400)
  --repeat N        inverses of the same matrix (default 3)
  --library NAME    the LAPACK: a soname or a path (default: the one that belongs to libblas.so.3,
                    so LD_LIBRARY_PATH chooses both)

Reports call_s, as the mean and for each inverse. Standard output names the files that the
factorisation and the product came from. It is checked that the inverse is one.
",
    run,
};

/// Maximum relative error: far above rounding errors, and far below the error of a wrong element.
const MAX_ERROR: f64 = 1e-8;

fn run(options: &mut Options) -> Result<Report, Problem> {
    let (mut size, mut repeat) = (400, 3);
    let mut library = None;
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "size" => size = options.size(1..=30_000)?,
            "repeat" => repeat = options.number(1..=1 << 20)?,
            "library" => library = Some(options.text()?),
            _ => return Err(options.unknown_option()),
        }
    }
    let lapack = match library {
        Some(name) => Lapack::open(&name)?,
        None => Lapack::open_for(&Blas::open(BLAS)?)?,
    };
    // A matrix with a large diagonal has an inverse, with small errors.
    let matrix = with_diagonal(random_matrix(size, 3), size, size as f64);
    let mut inverse = Vec::new();
    let invert = |_| {
        inverse.clone_from(&matrix);
        let started = Instant::now();
        lapack.invert(&mut inverse, size)?;
        Ok(started.elapsed())
    };
    let times: Vec<Duration> = (0..repeat).map(invert).collect::<Result<_, Problem>>()?;
    let identity = with_diagonal(vec![0.0; size * size], size, 1.0);
    let error = product_check::relative_error_of_product(size, &matrix, &inverse, &identity);
    if error.is_nan() || error > MAX_ERROR {
        return Err(Problem::failure(format!(
            "{} inverted wrongly: relative error {error:e}",
            lapack.file()
        )));
    }
    Ok(Report::default()
        .fact("lapack", lapack.file())
        .fact("blas", lapack.blas.file())
        .times("call_s", &times))
}

fn with_diagonal(mut matrix: Vec<f64>, size: usize, addend: f64) -> Vec<f64> {
    matrix
        .iter_mut()
        .step_by(size + 1)
        .for_each(|element| *element += addend);
    matrix
}
