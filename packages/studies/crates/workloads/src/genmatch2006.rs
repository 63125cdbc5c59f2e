//! Workload `genmatch2006`: the genetic matching of Sekhon's "The Art of Benchmarking" (2006), by
//! three algorithms that find the same matches.
//!
//! A search evaluates a list of candidates. A candidate has a weight for each covariate. By these
//! weights the search matches every unit to the nearest units of the other arm (treated or
//! control). Then it tests the balance of the matches. docs/reference/workloads.md describes the
//! algorithms.

mod candidates;
mod data;
mod fast;
mod fitness;
mod matching;
mod matrix;
mod one_dgemm;
mod scythe;
mod selection;

use std::time::Instant;

use equipoise_matching::Pairs;

use crate::arguments::{Options, to_usize};
use crate::blas::{BLAS, Blas};
use crate::memory::{MemoryBaseline, minor_faults};
use crate::metrics::Report;
use crate::problem::Problem;
use crate::workload::Workload;

use self::data::{COVARIATES, Data};
use self::fitness::Balance;
use self::matching::Matching;

pub const WORKLOAD: Workload = Workload {
    name: "genmatch2006",
    summary: "the genetic matching of 2006 (--algorithm scythe | blas | fast)",
    help: "usage: equipoise-workload genmatch2006 [options]

  --algorithm NAME   scythe: the release of 2005, with temporary matrices for each unit (default);
                     blas: the release of May 2006, one dgemm for each unit; fast: Equipoise's own
  --rows N           number of rows; the data are repeated up to this number (default 445)
  --candidates N     candidates that a search evaluates, the same in every run (default 4)
  --weights W,W,...  evaluate one candidate with these ten weights instead
  --repeat N         number of searches (default 3)
  --data FILE        CSV with the columns treat, age, educ, black, hisp, married, nodegr, u74,
                     u75, re75, re74 (others are ignored); made-up: 445 generated rows (default)
  --library NAME     the BLAS of `blas`: a soname or a path (default libblas.so.3)

Reports search_s, as the mean and for each search; best_search_s; faults_per_search; peak_bytes and
retained_bytes, the largest and the final resident memory, less the memory that was resident before;
smallest_p, the smallest p-value of the best candidate. Standard output names the BLAS, the number
of pairs and a fingerprint of the matches, which is the same for all three algorithms.
",
    run,
};

/// Value of `--data` for generated rows.
const GENERATED: &str = "made-up";

/// The matches of all candidates, and the best candidate.
struct SearchResult {
    pairs: u64,
    fingerprint: u64,
    /// The p-values of the best candidate, in ascending order.
    best: Vec<f64>,
}

/// Three ways to find the same matches.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Algorithm {
    Scythe,
    Blas,
    Fast,
}

const ALGORITHMS: [(&str, Algorithm); 3] = [
    ("scythe", Algorithm::Scythe),
    ("blas", Algorithm::Blas),
    ("fast", Algorithm::Fast),
];

fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut algorithm = Algorithm::Scythe;
    let (mut rows, mut candidate_count, mut repeat) = (445, 4, 3);
    let (mut file, mut weights) = (None, None);
    let mut library = BLAS.to_owned();
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "algorithm" => algorithm = options.choice(&ALGORITHMS)?,
            "rows" => rows = options.size(2..=1 << 24)?,
            "candidates" => candidate_count = options.number(1..=1 << 20)?,
            "weights" => weights = Some(candidates::parse(&options.text()?)?),
            "repeat" => repeat = options.number(1..=1 << 20)?,
            "data" => file = Some(options.text()?),
            "library" => library = options.text()?,
            _ => return Err(options.unknown_option()),
        }
    }
    let data = match file {
        Some(name) if name != GENERATED => Data::read(&name)?,
        _ => Data::generate(),
    }
    .repeated(rows)?;
    let uses_blas = algorithm == Algorithm::Blas;
    let blas = uses_blas.then(|| Blas::open(&library)).transpose()?;
    let candidates = match weights {
        Some(weights) => vec![weights],
        None => candidates::weights(candidate_count, COVARIATES.len()),
    };
    let baseline = MemoryBaseline::now();
    let mut times = Vec::with_capacity(to_usize(repeat));
    let faults_before = minor_faults();
    let mut result = None;
    for _ in 0..repeat {
        let started = Instant::now();
        let mut matching = prepare(algorithm, &data, blas.as_ref());
        result = Some(search(matching.as_mut(), &data, &candidates));
        drop(matching);
        times.push(started.elapsed());
    }
    let faults = minor_faults() - faults_before;
    let (Some(result), Some(shortest)) = (result, times.iter().min()) else {
        unreachable!("--repeat is 1 or more");
    };
    let report = baseline
        .add_to(Report::default())
        .times("search_s", &times)
        .time("best_search_s", *shortest)
        .cost("faults_per_search", faults as f64 / repeat as f64, "1")
        .gain("smallest_p", result.best[0], "1")
        .fact("pairs", result.pairs.to_string())
        .fact("matches", format!("{:016x}", result.fingerprint));
    Ok(match blas {
        Some(blas) => report.fact("blas", blas.file()),
        None => report,
    })
}

/// Prepares an algorithm for the data. `blas` is present if the algorithm needs it.
fn prepare<'a>(
    algorithm: Algorithm,
    data: &'a Data,
    blas: Option<&'a Blas>,
) -> Box<dyn Matching + 'a> {
    match (algorithm, blas) {
        (Algorithm::Fast, _) => Box::new(fast::Fast { data }),
        (Algorithm::Blas, Some(blas)) => Box::new(one_dgemm::OneDgemm::new(data, blas)),
        (Algorithm::Blas | Algorithm::Scythe, _) => Box::new(scythe::Scythe::new(data)),
    }
}

/// Evaluates every candidate by its matches and their balance.
fn search(matching: &mut dyn Matching, data: &Data, candidates: &[Vec<f64>]) -> SearchResult {
    let balance = Balance::new(data);
    let mut result = SearchResult {
        pairs: 0,
        fingerprint: 0,
        best: Vec::new(),
    };
    for weights in candidates {
        let pairs = matching.matches(weights);
        let p_values = balance.p_values(&pairs);
        result.pairs += pairs.query.len() as u64;
        result.fingerprint = fingerprint(result.fingerprint, &pairs);
        if result.best.is_empty() || is_better(&p_values, &result.best) {
            result.best = p_values;
        }
    }
    result
}

/// Whether a candidate is better than the best candidate so far. The candidate with the larger
/// smallest p-value is better. If these are equal, the second smallest p-values decide, and so on
/// (Sekhon 2011, section 2.3).
fn is_better(candidate: &[f64], best: &[f64]) -> bool {
    candidate
        .iter()
        .zip(best)
        .map(|(p, best_p)| p.total_cmp(best_p))
        .find(|order| order.is_ne())
        .is_some_and(std::cmp::Ordering::is_gt)
}

/// Returns the FNV-1a hash of the pairs, in their order.
fn fingerprint(before: u64, pairs: &Pairs) -> u64 {
    pairs
        .iter()
        .flat_map(|(query, matched, _)| [query, matched])
        .fold(before ^ 0xCBF2_9CE4_8422_2325, |hash, number| {
            (hash ^ number as u64).wrapping_mul(0x0100_0000_01B3)
        })
}

#[cfg(test)]
mod tests;
