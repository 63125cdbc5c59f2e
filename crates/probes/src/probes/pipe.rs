//! Probe `pipe`: round trips of one byte through a pair of pipes.

use std::io;

use equipoise_reporting::problem::Problem;

use crate::channel::{End, Ends};
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::{self, PLACEMENTS};
use crate::system::problem_of;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "pipe",
    class: Class::Ipc,
    words: "one byte to another process and its answer back, through two pipes",
    metric: Metric::Latency,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "",
    rows: &[
        Row::plain("pipe_same_cpu").at(Placement::SameCpu),
        Row::plain("pipe_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| round_trip::open(asked, ends),
};

/// Two pipes, one for each direction.
///
/// # Errors
/// What the system says.
pub fn ends() -> Result<Ends, Problem> {
    let pipe = || io::pipe().map_err(|error| problem_of("pipe", &error));
    let (question_in, question_out) = pipe()?;
    let (answer_in, answer_out) = pipe()?;
    Ok((
        End::new(answer_in, question_out),
        End::new(question_in, answer_out),
    ))
}
