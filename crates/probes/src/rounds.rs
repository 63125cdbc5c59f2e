//! Connections that are taken in by rounds, because only so many may wait to be accepted.

use std::time::Duration;

use equipoise_reporting::problem::Problem;

/// Connections that wait to be accepted; every system lets more of them wait.
pub const ROUND: u64 = 32;

/// As many as that, in rounds; the time of all rounds.
///
/// # Errors
/// The first problem of a round.
pub fn in_rounds(
    count: u64,
    mut round: impl FnMut(u64) -> Result<Duration, Problem>,
) -> Result<Duration, Problem> {
    let mut took = Duration::ZERO;
    let mut left = count;
    while left > 0 {
        let now = left.min(ROUND);
        took += round(now)?;
        left -= now;
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::{ROUND, in_rounds};
    use std::time::Duration;

    #[test]
    fn no_round_is_larger_than_what_may_wait_and_all_are_timed() {
        let mut rounds = Vec::new();
        let took = in_rounds(2 * ROUND + 3, |round| {
            rounds.push(round);
            Ok(Duration::from_millis(round))
        });
        assert_eq!(rounds, [ROUND, ROUND, 3]);
        assert_eq!(took.unwrap(), Duration::from_millis(2 * ROUND + 3));
    }
}
