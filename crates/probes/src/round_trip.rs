//! One byte to a helper and its answer back, through whatever carries bytes.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::channel::{End, Ends};
use crate::cpus::{hold, sides};
use crate::helper::{Helper, cpu_here};
use crate::probe::{Opened, Placement, timed};
use crate::system::wrong;

/// Where such a probe may be held.
pub const PLACEMENTS: &[Placement] = &[Placement::SameCpu, Placement::AcrossCpus];

/// Opens a channel, starts a helper that answers at its other end, and makes round trips.
///
/// # Errors
/// If there are not enough CPUs, or the system refuses the channel or the process.
pub fn open(
    asked: &Asked,
    ends: impl FnOnce() -> Result<Ends, Problem>,
) -> Result<Opened, Problem> {
    let sides = sides(asked.placement)?;
    hold(sides.here)?;
    let (mut end, other) = ends()?;
    let helper = Helper::start(sides.there, move || answer(other))?;
    let helper_cpu = helper.cpu().to_string();
    let mut question = 0_u8;
    let opened = Opened::latency(move |count| {
        // The closure keeps the helper.
        let _ = &helper;
        timed(count, || {
            question = question.wrapping_add(1);
            end.send(question)?;
            let answer = end.receive()?;
            if answer != answer_to(question) {
                return Err(wrong("the helper", answer, answer_to(question)));
            }
            Ok(())
        })
    });
    Ok(opened
        .with_fact("cpu", cpu_here()?.to_string())
        .with_fact("helper_cpu", helper_cpu))
}

/// What the helper does: answers every question.
fn answer(mut end: End) -> Result<(), Problem> {
    loop {
        let question = end.receive()?;
        end.send(answer_to(question))?;
    }
}

/// Another byte than the question, so that the one cannot be mistaken for the other.
fn answer_to(question: u8) -> u8 {
    !question
}
