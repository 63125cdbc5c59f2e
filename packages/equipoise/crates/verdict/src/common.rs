//! The interval of the ratio that several campaigns have in common.

use crate::sequence::{BettingSequence, Side, interval};
use crate::wealth::Wealth;

/// The log ratios that several campaigns together do not exclude, as (low, high). If `low > high`,
/// no common ratio agrees with all campaigns.
///
/// The bettors take their wealth from each campaign to the next campaign. So the chance
/// that the true ratio is ever excluded is at most `level`, whenever each campaign stops
/// (docs/methods/campaigns.md).
#[must_use]
pub fn common_interval(campaigns: &[&BettingSequence], level: f64) -> (f64, f64) {
    let spans = || campaigns.iter().map(|campaign| campaign.span());
    let low = spans().map(|(low, _)| low).fold(-1.0, f64::min);
    let high = spans().map(|(_, high)| high).fold(1.0, f64::max);
    let threshold = 2.0 / level;
    interval((low, high), |side, theta| {
        reaches(campaigns, side, theta, threshold)
    })
}

fn reaches(campaigns: &[&BettingSequence], side: Side, theta: f64, threshold: f64) -> bool {
    let mut wealth = Wealth::new();
    let mut rounds = campaigns.iter().flat_map(|campaign| campaign.rounds());
    rounds.any(|round| round.play_towards(&mut wealth, theta, side.sign(), threshold))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Block, Order};

    fn campaign(blocks: u32, shift: f64) -> BettingSequence {
        let mut sequence = BettingSequence::default();
        for i in 0..blocks {
            let difference = shift + f64::from((i * 37) % 23) / 500.0;
            let block = Block::new(difference, Order::drawn(i % 2 == 0), 0.0);
            sequence.push(block).expect("the tolerance is 0");
        }
        sequence
    }

    #[test]
    fn the_common_interval_of_one_campaign_is_its_running_interval() {
        let one = campaign(60, 0.0);
        assert_eq!(common_interval(&[&one], 0.05), one.running_interval(0.05));
    }

    #[test]
    fn more_campaigns_narrow_the_interval() {
        let one = campaign(40, 0.0);
        let width = |(low, high): (f64, f64)| high - low;
        let single_width = width(one.running_interval(0.05));
        let pooled_width = width(common_interval(&[&one; 2], 0.05));
        assert!(pooled_width < single_width);
        assert!(width(common_interval(&[&one; 6], 0.05)) < 0.6 * single_width);
    }

    #[test]
    fn campaigns_that_contradict_each_other_have_no_common_ratio() {
        let (one, other) = (campaign(60, 0.0), campaign(60, 1.0));
        let (low, high) = common_interval(&[&one, &other], 0.05);
        assert!(low > high);
    }
}
