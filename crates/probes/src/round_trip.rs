//! One byte to a helper and its answer back, through whatever carries bytes.

use std::time::Duration;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::channel::{End, Ends};
use crate::cpus::{hold, sides};
use crate::helper::{Helper, cpu_here};
use crate::probe::{Opened, Operation, Placement, timed};
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
    let (end, other) = ends()?;
    let helper = Helper::start(sides.there, move || answer(other))?;
    let helper_cpu = helper.cpu().to_string();
    let trips = RoundTrips {
        _helper: helper,
        end,
        question: 0,
    };
    Ok(Opened::latency(trips)
        .with_fact("cpu", cpu_here()?.to_string())
        .with_fact("helper_cpu", helper_cpu))
}

/// This side of the channel. The helper is dropped first: were the channel closed before, the
/// helper would end too early.
struct RoundTrips {
    _helper: Helper,
    end: End,
    question: u8,
}

impl Operation for RoundTrips {
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem> {
        timed(count, || {
            self.question = self.question.wrapping_add(1);
            ask(&mut self.end, self.question)
        })
    }
}

/// One round trip.
fn ask(end: &mut End, question: u8) -> Result<(), Problem> {
    end.send(question)?;
    let answer = end.receive()?;
    if answer == answer_to(question) {
        return Ok(());
    }
    Err(wrong("the other side", answer, answer_to(question)))
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

#[cfg(test)]
mod tests {
    use super::{answer, ask};
    use crate::channel::{pipes, tcp_streams, udp_sockets, unix_streams};
    use std::thread;

    #[test]
    fn every_question_is_answered_through_every_channel() {
        for ends in [pipes, unix_streams, udp_sockets, tcp_streams] {
            let (mut end, other) = ends().expect("a channel");
            let helper = thread::spawn(move || answer(other));
            for question in 0..=u8::MAX {
                ask(&mut end, question).expect("the right answer");
            }
            drop((end, helper));
        }
    }

    #[test]
    fn an_answer_that_is_the_question_itself_is_wrong() {
        let (mut end, mut other) = unix_streams().expect("a channel");
        let echo = thread::spawn(move || {
            let byte = other.receive()?;
            other.send(byte)
        });
        let problem = ask(&mut end, 7).expect_err("7 is no answer to 7");
        assert_eq!(problem.to_string(), "the other side gave 7 instead of 248");
        echo.join().expect("no panic").expect("sent");
    }

    #[test]
    fn no_answer_is_a_problem() {
        let (mut end, other) = pipes().expect("a channel");
        drop(other);
        assert!(ask(&mut end, 1).is_err());
    }
}
