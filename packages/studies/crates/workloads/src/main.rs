//! `equipoise-workload NAME [options]`: the built-in workloads of Equipoise.
//!
//! The modules in `WORKLOADS` each define a workload. The other modules serve them:
//!
//! - `workload`: the definition of a workload
//! - `block`: a block of memory from malloc; `memory`: resident memory and page faults
//! - `smallest_returned`: the smallest block that an allocator returns to the kernel
//! - `system_calls`, `counting_allocator`: count system calls, and allocations in unit tests
//! - `blas`, `library`, `product_check`: matrix functions of a shared library, and their check
//! - `dictionary`: a list of words

mod blas;
mod block;
#[cfg(test)]
mod counting_allocator;
mod dgemm;
mod dictionary;
mod fragment;
mod genmatch2006;
mod hashwalk;
mod invert;
mod library;
mod malloc;
mod memory;
mod product_check;
mod smallest_returned;
mod sort;
mod spin;
mod system_calls;
mod wordsearch;
mod workload;

use std::process::ExitCode;

use equipoise_reporting::arguments::Options;
use equipoise_reporting::program::{find_command, finish};
use equipoise_reporting::{arguments, metrics, problem};
use lexopt::{Arg, Parser};

use crate::problem::Problem;
use crate::workload::Workload;

const WORKLOADS: [Workload; 9] = [
    dgemm::WORKLOAD,
    fragment::WORKLOAD,
    genmatch2006::WORKLOAD,
    hashwalk::WORKLOAD,
    invert::WORKLOAD,
    malloc::WORKLOAD,
    sort::WORKLOAD,
    spin::WORKLOAD,
    wordsearch::WORKLOAD,
];

const USAGE: &str = "usage: equipoise-workload NAME [options]
       equipoise-workload NAME --help
       equipoise-workload --list
";

fn main() -> ExitCode {
    finish("equipoise-workload", run(Parser::from_env()))
}

fn run(mut parser: Parser) -> Result<String, Problem> {
    let name = match parser.next()? {
        Some(Arg::Long("list")) => return Ok(listing()),
        Some(Arg::Long("help") | Arg::Short('h')) => return Ok(format!("{USAGE}\n{}", listing())),
        Some(Arg::Value(name)) => Some(name.to_string_lossy().into_owned()),
        Some(other) => return Err(other.unexpected().into()),
        None => None,
    };
    let name_of = |workload: &Workload| workload.name;
    let workload = find_command("workload", &WORKLOADS, name_of, name.as_deref())?;
    let mut options = Options::new(parser);
    if options.asks_for_help() {
        return Ok(workload.help.to_owned());
    }
    let report = (workload.run)(&mut options).map_err(|problem| problem.within(workload.name))?;
    report.publish()
}

fn listing() -> String {
    WORKLOADS
        .map(|workload| format!("{:<14}{}\n", workload.name, workload.summary))
        .concat()
}
