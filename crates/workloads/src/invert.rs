//! Workload `invert`: inverses of a matrix by the LAPACK and BLAS that the environment chooses.

use std::time::Instant;

use lexopt::{Arg, Parser};

use crate::arguments::{number, text, to_usize};
use crate::blas::{BLAS, Blas, Lapack};
use crate::dgemm::random_matrix;
use crate::metrics::{Outcome, Report};
use crate::problem::Problem;
use crate::residual;

/// One line for `--list`.
pub const SUMMARY: &str = "matrix inverses by the system's LAPACK (--size --library)";

const HELP: &str = "usage: equipoise-workload invert [options]

  --size N          rows and columns of the matrix (default 400)
  --repeat N        inverses of the same matrix (default 3)
  --library NAME    the LAPACK: a soname or a path (default: the one that belongs to libblas.so.3,
                    so LD_LIBRARY_PATH chooses both)

Reports call_s, as the mean and for each inverse. Standard output names the files that the
factorisation and the product came from. It is checked that the inverse is one.
";

/// Rounding errors grow with the size; a wrong element is far above.
const LARGEST_RESIDUAL: f64 = 1e-8;

/// Reads the options and does the work.
pub fn run(parser: &mut Parser) -> Result<Outcome, Problem> {
    let (mut size, mut repeat) = (400, 3);
    let mut library = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("size") => size = to_usize(number(parser, "size", 1..=30_000)?),
            Arg::Long("repeat") => repeat = number(parser, "repeat", 1..=1 << 20)?,
            Arg::Long("library") => library = Some(text(parser, "library")?),
            Arg::Long("help") | Arg::Short('h') => return Ok(Outcome::Help(HELP)),
            other => return Err(other.unexpected().into()),
        }
    }
    let lapack = match library {
        Some(name) => Lapack::open(&name)?,
        None => Lapack::belonging_to(&Blas::open(BLAS)?)?,
    };
    let matrix = well_conditioned(size);
    let mut inverse = Vec::new();
    let mut times = Vec::with_capacity(to_usize(repeat));
    for _ in 0..repeat {
        inverse.clone_from(&matrix);
        let started = Instant::now();
        lapack.invert(&mut inverse, size)?;
        times.push(started.elapsed());
    }
    let error = residual::of_product(size, &matrix, &inverse, &identity(size));
    if error.is_nan() || error > LARGEST_RESIDUAL {
        return Err(Problem::failure(format!(
            "{} inverted wrongly: relative error {error:e}",
            lapack.file()
        )));
    }
    Ok(Outcome::Measured(
        Report::default()
            .fact("lapack", lapack.file())
            .fact("blas", lapack.blas.file())
            .times("call_s", &times),
    ))
}

/// Random elements and a heavy diagonal, so that the inverse exists and its errors are small.
fn well_conditioned(size: usize) -> Vec<f64> {
    let mut matrix = random_matrix(size, 3);
    for place in 0..size {
        matrix[place * size + place] += size as f64;
    }
    matrix
}

fn identity(size: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; size * size];
    for place in 0..size {
        matrix[place * size + place] = 1.0;
    }
    matrix
}
