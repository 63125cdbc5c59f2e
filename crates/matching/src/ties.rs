//! Which of the tied neighbours are kept when not all are.

use crate::problem::{Problem, Rules};
use crate::random::Draws;

/// Leaves as many neighbours of the row as were asked for, drawn by lot.
///
/// R drops at random from all of them. Correct is to drop only from those that tie for the last
/// place: who is nearer than that is a match in any case.
pub fn kept_by_lot(problem: &Problem, row: usize, members: &mut Vec<(f64, usize)>, last: f64) {
    let mut lots = Draws::of(problem.seed, row);
    members.sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let nearer = match problem.rules {
        Rules::Correct => members
            .iter()
            .filter(|&&(squared, _)| problem.reach(squared) < last)
            .count(),
        Rules::AsInR => 0,
    };
    let wanted = problem.matches;
    if nearer < wanted {
        // A partial shuffle of Fisher and Yates of those that tie.
        for place in nearer..wanted {
            let drawn = place + lots.below(members.len() - place);
            members.swap(place, drawn);
        }
    }
    members.truncate(wanted);
}
