//! The workloads by name: a new one is its own file and one line here.

use lexopt::Parser;

use crate::metrics::Outcome;
use crate::problem::Problem;
use crate::{dgemm, fragment, genmatch2006, hashwalk, invert, malloc, sort, spin, wordsearch};

/// One built-in workload.
#[derive(Clone, Copy)]
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    /// One line for `--list`.
    pub summary: &'static str,
    /// Reads its options from the rest of the command line and does the work.
    pub run: fn(&mut Parser) -> Result<Outcome, Problem>,
}

/// Every workload there is.
#[rustfmt::skip]
pub const WORKLOADS: [Workload; 9] = [
    Workload { name: "dgemm", summary: dgemm::SUMMARY, run: dgemm::run },
    Workload { name: "fragment", summary: fragment::SUMMARY, run: fragment::run },
    Workload { name: "genmatch2006", summary: genmatch2006::SUMMARY, run: genmatch2006::run },
    Workload { name: "hashwalk", summary: hashwalk::SUMMARY, run: hashwalk::run },
    Workload { name: "invert", summary: invert::SUMMARY, run: invert::run },
    Workload { name: "malloc", summary: malloc::SUMMARY, run: malloc::run },
    Workload { name: "sort", summary: sort::SUMMARY, run: sort::run },
    Workload { name: "spin", summary: spin::SUMMARY, run: spin::run },
    Workload { name: "wordsearch", summary: wordsearch::SUMMARY, run: wordsearch::run },
];
