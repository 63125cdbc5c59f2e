//! The ratio that several campaigns have in common.

use crate::sequence::{BettingSequence, Side, interval};
use crate::wealth::Wealth;

/// The ratios that several campaigns do not exclude together, {θ : max over n of E±(θ) < 2/level},
/// as (low, high); `low > high` means that no common ratio agrees with all of them.
///
/// The bettors take their wealth from each campaign to the next, in the order given. The factor of
/// each campaign is a test martingale given the campaigns before, so the product is one too,
/// wherever it stops: the true θ is ever excluded with a chance of at most `level`, although every
/// campaign may stop at any time, and so may the pooling.
#[must_use]
pub fn common_interval(campaigns: &[&BettingSequence], level: f64) -> (f64, f64) {
    let spans = || campaigns.iter().map(|campaign| campaign.span());
    let low = spans().map(|(low, _)| low).fold(-1.0, f64::min);
    let high = spans().map(|(_, high)| high).fold(1.0, f64::max);
    let bar = 2.0 / level;
    interval((low, high), |side, theta| {
        ever_reached(campaigns, side, theta, bar)
    })
}

fn ever_reached(campaigns: &[&BettingSequence], side: Side, theta: f64, bar: f64) -> bool {
    let mut wealth = Wealth::new();
    let mut rounds = campaigns.iter().flat_map(|campaign| campaign.rounds());
    rounds.any(|round| round.play_towards(&mut wealth, theta, side.sign(), bar))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjustment::NO_READINGS;
    use crate::block::{Block, Order};

    fn campaign(blocks: u32, shift: f64) -> BettingSequence {
        let mut sequence = BettingSequence::default();
        for i in 0..blocks {
            let block = Block {
                difference: shift + f64::from((i * 37) % 23) / 500.0,
                order: if i % 2 == 0 {
                    Order::BaselineFirst
                } else {
                    Order::CandidateFirst
                },
                tolerance: 0.0,
                readings: NO_READINGS,
            };
            sequence.push(block).expect("the tolerance is 0");
        }
        sequence
    }

    #[test]
    fn one_campaign_has_its_own_running_interval() {
        let one = campaign(60, 0.0);
        assert_eq!(common_interval(&[&one], 0.05), one.running_interval(0.05));
    }

    #[test]
    fn more_campaigns_narrow_the_interval() {
        let one = campaign(40, 0.0);
        let width = |(low, high): (f64, f64)| high - low;
        let alone = width(one.running_interval(0.05));
        let of_two = width(common_interval(&[&one; 2], 0.05));
        assert!(of_two < alone);
        assert!(width(common_interval(&[&one; 6], 0.05)) < 0.6 * alone);
    }

    #[test]
    fn campaigns_that_contradict_each_other_have_no_common_ratio() {
        let (one, other) = (campaign(60, 0.0), campaign(60, 1.0));
        let (low, high) = common_interval(&[&one, &other], 0.05);
        assert!(low > high);
    }
}
