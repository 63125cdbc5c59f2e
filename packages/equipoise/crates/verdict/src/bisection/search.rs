//! The search for the commit that changed the cost: evidence against commits, and the next pair to
//! run.
//!
//! - Commits have indices from 0 (the first) to n (the last). The culprit has an index from 1 to n.
//! - A *group* is a commit that can run, with all commits directly before it that cannot run.
//! - The *own pair* of a group is the commit before the group, and the last commit of the group.
//! - Each commit has a *chance* to be the culprit, which only chooses pairs and stakes.

use crate::bisection::estimates::{Estimates, PastBlock};
use crate::bisection::stake::Stake;
use crate::order_statistics::median;

/// Differences up to this fraction of the gap count as 0.
const MARGIN_FRACTION: f64 = 0.1;
/// Smallest prior chance of a commit, relative to 1/n for n commits.
const MIN_PRIOR_RATIO: f64 = 0.1;
/// This number over n is added to the chance that a commit is the culprit, so that the search also
/// tests unlikely commits.
const URGENCY_FLOOR: f64 = 0.01;
/// A pair may begin or end at the commits where the summed chances reach these values.
const CHANCE_QUANTILES: [f64; 7] = [0.1, 0.25, 1.0 / 3.0, 0.5, 2.0 / 3.0, 0.75, 0.9];
/// If a build costs at least this many trials, pairs of built commits are considered, too.
const COSTLY_BUILD_TRIALS: f64 = 0.5;
const TRIALS_PER_BLOCK: f64 = 2.0;
/// The own pair of the last group runs next if its chance is above this number.
const LIKELY: f64 = 0.5;
/// Smallest chance by which another chance is divided.
const MIN_CHANCE: f64 = 1e-12;
/// The estimates are updated when the number of blocks has grown by an eighth.
const UPDATE_GROWTH_DIVISOR: usize = 8;

/// The settings of a search.
#[derive(Clone, Debug)]
pub struct SearchSettings<'a> {
    /// Number of commits after the first one: n.
    pub commits: usize,
    /// Largest chance of ever excluding the culprit, and of ever reporting a wrong commit.
    pub alpha: f64,
    /// 1 if the last commit costs more than the first, −1 if less.
    pub direction: f64,
    /// Difference and order (see `PairBlock`) of each earlier block of the first and last commit.
    pub gap_blocks: &'a [(f64, f64)],
    /// Prior chances of the n commits, in any unit; empty if they are equal.
    pub prior: &'a [f64],
}

/// One block of a pair of commits.
#[derive(Clone, Copy, Debug)]
pub struct PairBlock {
    /// Index of the earlier commit, from 0.
    pub before: usize,
    /// Index of the later commit, up to n.
    pub after: usize,
    /// ln(later cost) − ln(earlier cost); infinite if one commit timed out, NaN if both did.
    pub difference: f64,
    /// 1 if the earlier commit ran first, −1 if the later commit ran first.
    pub order: f64,
    /// Difference up to which the block is a tie.
    pub tolerance: f64,
}

/// The commits after `before`, up to `after`. Only `after` can run. Usually this is one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitGroup {
    /// The commit before the group, which can run.
    pub before: usize,
    /// The last commit of the group.
    pub after: usize,
}

/// The state of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The search goes on.
    Open,
    /// One group remains, and the bets on its own pair prove that it changes the cost.
    Culprit(CommitGroup),
    /// No single commit explains the gap.
    Several {
        /// The group with the most evidence of a change, if any.
        likeliest: Option<CommitGroup>,
        /// The commit at which to split the search.
        split: usize,
    },
}

/// The bets against each commit.
///
/// The bet on a block depends only on the blocks before it. Vectors have commit s at index s − 1.
#[derive(Clone, Debug)]
pub struct Search {
    commits: usize,
    ln_threshold: f64,
    direction: f64,
    margin: f64,
    can_run: Vec<bool>,
    /// ln of the chance of each commit, up to a constant.
    ln_likelihoods: Vec<f64>,
    /// ln `E_s`: evidence against "commit s makes the whole gap".
    ln_evidence_against: Vec<f64>,
    /// Number of the block that excluded each commit.
    excluded_at: Vec<Option<usize>>,
    /// ln `F_s`: evidence from the own pair of s against "commit s changes nothing".
    ln_own_evidence: Vec<f64>,
    /// ln of the value that `F_s` must reach; infinite before the own pair of s has run.
    ln_own_thresholds: Vec<f64>,
    /// ln `L_m` at index m: evidence of a step among the commits up to m.
    ln_evidence_up_to: Vec<f64>,
    /// ln `R_m` at index m: evidence of a step among the commits after m.
    ln_evidence_after: Vec<f64>,
    past: Vec<PastBlock>,
    block_count: usize,
    estimates: Estimates,
    /// Number of blocks at the last update of `estimates`.
    estimated_at: usize,
    /// Sum of the chances of the commits up to m, at index m.
    chance_sums: Vec<f64>,
}

impl Search {
    /// A search that begins after the blocks of the first and the last commit.
    ///
    /// # Panics
    /// If there is no commit, or if the prior is not empty and has another length.
    #[must_use]
    pub fn new(settings: &SearchSettings) -> Self {
        let count = settings.commits;
        assert!(count > 0, "a search needs at least one commit");
        let past: Vec<PastBlock> = settings
            .gap_blocks
            .iter()
            .filter(|(difference, _)| difference.is_finite())
            .map(|&(difference, order)| PastBlock {
                before: 0,
                after: count,
                difference: settings.direction * difference,
                order: settings.direction * order,
            })
            .collect();
        let mut differences: Vec<f64> = past.iter().map(|block| block.difference).collect();
        let gap = median(&mut differences).unwrap_or(Estimates::UNKNOWN.step);
        let mut search = Self {
            commits: count,
            ln_threshold: -settings.alpha.ln(),
            direction: settings.direction,
            margin: (MARGIN_FRACTION * gap).max(0.0),
            can_run: vec![true; count + 1],
            ln_likelihoods: ln_prior(settings.prior, count),
            ln_evidence_against: vec![0.0; count],
            excluded_at: vec![None; count],
            ln_own_evidence: vec![0.0; count],
            ln_own_thresholds: vec![f64::INFINITY; count],
            ln_evidence_up_to: vec![0.0; count],
            ln_evidence_after: vec![0.0; count],
            past,
            block_count: settings.gap_blocks.len(),
            estimates: Estimates::UNKNOWN,
            estimated_at: 0,
            chance_sums: Vec::new(),
        };
        search.update_chances();
        search.update_estimates_if_due();
        search
    }

    /// Adds a block, and returns whether it was the first block of a group's own pair.
    ///
    /// `number` is the number of the block, which is stored for the commits that the block
    /// excludes. `rank` is only for the first block of an own pair: k for the k-th own pair that
    /// runs. `F` must then reach k(k + 1)/alpha.
    ///
    /// # Panics
    /// If the pair does not consist of two commits that run.
    pub fn add(&mut self, block: &PairBlock, number: usize, rank: usize) -> bool {
        let (before, after) = (block.before, block.after);
        assert!(before < after && self.can_run[before] && self.can_run[after]);
        self.block_count += 1;
        let is_own = self.group_of(after).before == before;
        let is_first = is_own && self.ln_own_thresholds[after - 1].is_infinite();
        if is_first {
            let rank = rank as f64;
            self.ln_own_thresholds[after - 1] = (rank * (rank + 1.0)).ln() + self.ln_threshold;
        }
        if block.difference.is_nan() {
            // Two timeouts carry no information. A smaller chance lets other pairs run.
            self.multiply_chances(before, after, -std::f64::consts::LN_2);
        } else {
            self.bet(block, is_own, number);
            self.remember(block);
        }
        self.update_estimates_if_due();
        is_first
    }

    /// Removes a commit that cannot run. The commit joins the group of the next commit that can
    /// run. The evidence from the own pairs of both groups is dropped.
    ///
    /// # Panics
    /// If it is the first or the last commit, or was removed before.
    pub fn withdraw(&mut self, commit: usize) {
        assert!(0 < commit && commit < self.commits && self.can_run[commit]);
        self.can_run[commit] = false;
        let after = self.group_of(commit).after;
        for index in [commit - 1, after - 1] {
            self.ln_own_evidence[index] = 0.0;
            self.ln_own_thresholds[index] = f64::INFINITY;
        }
    }

    /// The state of the search: open, one culprit, or several.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let proven = |group: &CommitGroup| {
            self.ln_own_evidence[group.after - 1] >= self.ln_own_thresholds[group.after - 1]
        };
        match self.remaining_groups() {
            Remaining::One(group) if proven(&group) => Outcome::Culprit(group),
            Remaining::Many | Remaining::One(_) => Outcome::Open,
            Remaining::None => {
                let groups = self.groups().into_iter().filter(proven);
                let likeliest = groups.max_by(|first, second| {
                    self.ln_own_evidence[first.after - 1]
                        .total_cmp(&self.ln_own_evidence[second.after - 1])
                });
                let split = self.split_commit();
                Outcome::Several { likeliest, split }
            }
        }
    }

    /// The pair to run next: its blocks give the most expected evidence for their time.
    ///
    /// A build takes as long as `build_cost` trials. `built` says which commits, 0 to n, are built.
    ///
    /// # Panics
    /// If the length of `built` is not n + 1.
    #[must_use]
    pub fn choose_pair(&self, built: &[bool], build_cost: f64) -> (usize, usize) {
        assert_eq!(built.len(), self.commits + 1);
        let urgency_sums = self.urgency_sums();
        let total = urgency_sums[self.commits];
        let likeliest = self.likeliest();
        let has_other_groups = self
            .groups()
            .iter()
            .any(|group| *group != likeliest && !self.is_excluded(*group));
        if !has_other_groups && self.chance_inside(likeliest.before, likeliest.after) > LIKELY {
            return (likeliest.before, likeliest.after);
        }
        let pair_ends = self.pair_ends(likeliest, built, build_cost);
        let mut best = (0, self.commits);
        let mut best_score = f64::NEG_INFINITY;
        for (index, &before) in pair_ends.iter().enumerate() {
            for &after in &pair_ends[index + 1..] {
                let chance = self.chance_inside(before, after);
                let gain = total - (urgency_sums[after] - urgency_sums[before]);
                let builds = f64::from(u8::from(!built[before]) + u8::from(!built[after]));
                let score = chance * gain / (TRIALS_PER_BLOCK + build_cost * builds);
                if score > best_score {
                    (best, best_score) = ((before, after), score);
                }
            }
        }
        best
    }

    /// Whether a commit exists and can run.
    #[must_use]
    pub fn can_run(&self, commit: usize) -> bool {
        self.can_run.get(commit).copied().unwrap_or(false)
    }

    /// ln `E_s` of each commit.
    #[must_use]
    pub fn ln_e_values(&self) -> &[f64] {
        &self.ln_evidence_against
    }

    /// The number of the block that excluded each commit, if any.
    #[must_use]
    pub fn excluded_at(&self) -> &[Option<usize>] {
        &self.excluded_at
    }

    /// ln F of a commit that can run: the evidence from its own pair.
    #[must_use]
    pub fn own_ln_e_value(&self, commit: usize) -> f64 {
        self.ln_own_evidence[commit - 1]
    }

    /// ln of the value that F of a commit must reach; infinite before its own pair has run.
    #[must_use]
    pub fn own_threshold(&self, commit: usize) -> f64 {
        self.ln_own_thresholds[commit - 1]
    }

    /// The chance of each commit.
    #[must_use]
    pub fn chances(&self) -> Vec<f64> {
        self.chance_sums
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect()
    }

    /// Differences up to this number of log units count as 0.
    #[must_use]
    pub fn margin(&self) -> f64 {
        self.margin
    }

    /// The present estimate of the step, in log units and in the direction of the gap.
    #[must_use]
    pub fn step(&self) -> f64 {
        self.estimates.step
    }

    /// The present estimate of the standard deviation of a block's difference.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.estimates.scale
    }

    fn update_estimates_if_due(&mut self) {
        if self.block_count < self.estimated_at + (self.estimated_at / UPDATE_GROWTH_DIVISOR).max(1)
        {
            return;
        }
        let sums = &self.chance_sums;
        let chance = |block: &PastBlock| sums[block.after] - sums[block.before];
        self.estimates = self.estimates.updated(&self.past, self.block_count, chance);
        self.estimated_at = self.block_count;
    }

    /// Bets on a block: against each group outside the pair, on a step on each side of a commit, and
    /// on an own pair.
    fn bet(&mut self, block: &PairBlock, is_own: bool, number: usize) {
        let (before, after) = (block.before, block.after);
        let Estimates { step, scale, .. } = self.estimates;
        let order_effect = block.order * self.direction * self.estimates.order_effect;
        let difference = self.direction * (block.difference - order_effect);
        let stake = Stake::new(step, scale, self.margin, block.tolerance);
        let payoff = stake.payoff_of(difference);
        let chance = self.chance_inside(before, after).clamp(0.0, 1.0);
        for group in self.groups() {
            if before < group.after && group.after <= after {
                continue;
            }
            let group_chance = self.chance_inside(group.before, group.after);
            let other_chance = (1.0 - group_chance).max(MIN_CHANCE);
            let ln_factor = payoff.factor((chance / other_chance).clamp(0.0, 1.0)).ln();
            for index in group.before..group.after {
                self.ln_evidence_against[index] += ln_factor;
                if self.ln_evidence_against[index] >= self.ln_threshold
                    && self.excluded_at[index].is_none()
                {
                    self.excluded_at[index] = Some(number);
                }
            }
        }
        let ln_even_factor = payoff.factor(0.5).ln();
        self.ln_evidence_up_to[after..]
            .iter_mut()
            .for_each(|wealth| *wealth += ln_even_factor);
        self.ln_evidence_after[..=before.min(self.commits - 1)]
            .iter_mut()
            .for_each(|wealth| *wealth += ln_even_factor);
        if is_own {
            self.ln_own_evidence[after - 1] += payoff.factor(chance.max(0.5)).ln();
        }
        // A timeout has an infinite difference. It changes the chances like a difference of one
        // step.
        let limited = if difference.is_infinite() {
            step.copysign(difference)
        } else {
            difference
        };
        let ln_ratio = ln_density((limited - step) / scale) - ln_density(limited / scale);
        self.multiply_chances(before, after, ln_ratio);
    }

    /// Multiplies the chances of the commits inside a pair by e to the power of `ln_ratio`.
    fn multiply_chances(&mut self, before: usize, after: usize, ln_ratio: f64) {
        for ln_likelihood in &mut self.ln_likelihoods[before..after] {
            *ln_likelihood += ln_ratio;
        }
        self.update_chances();
    }

    fn remember(&mut self, block: &PairBlock) {
        if block.difference.is_finite() {
            self.past.push(PastBlock {
                before: block.before,
                after: block.after,
                difference: self.direction * block.difference,
                order: self.direction * block.order,
            });
        }
    }

    fn update_chances(&mut self) {
        let largest = self.ln_likelihoods.iter().copied().fold(f64::MIN, f64::max);
        self.chance_sums.clear();
        self.chance_sums.push(0.0);
        let mut sum = 0.0;
        for ln_likelihood in &self.ln_likelihoods {
            sum += (ln_likelihood - largest).exp();
            self.chance_sums.push(sum);
        }
        for chance_sum in &mut self.chance_sums {
            *chance_sum /= sum;
        }
    }

    /// At index m, the sum of the urgencies of the commits up to m. The urgency of a commit is its
    /// missing evidence times the square root of its chance.
    fn urgency_sums(&self) -> Vec<f64> {
        let floor = URGENCY_FLOOR / self.commits as f64;
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(self.commits + 1);
        sums.push(sum);
        for index in 0..self.commits {
            if self.excluded_at[index].is_none() {
                let missing = (self.ln_threshold - self.ln_evidence_against[index]).max(0.0);
                let chance = self.chance_inside(index, index + 1);
                sum += missing * (chance + floor).sqrt();
            }
            sums.push(sum);
        }
        sums
    }

    /// The commits at which a pair may begin or end, in ascending order.
    fn pair_ends(&self, likeliest: CommitGroup, built: &[bool], build_cost: f64) -> Vec<usize> {
        let quantiles = CHANCE_QUANTILES.iter().map(|&quantile| {
            let commit = self
                .chance_sums
                .partition_point(|&chance_sum| chance_sum < quantile);
            self.next_running(commit.min(self.commits))
        });
        let mut pair_ends = vec![likeliest.before, likeliest.after];
        pair_ends.extend(quantiles);
        if build_cost >= COSTLY_BUILD_TRIALS {
            let is_built = |commit: &usize| built[*commit] && self.can_run[*commit];
            let commits = pair_ends.clone();
            pair_ends.extend(
                commits
                    .iter()
                    .filter_map(|&commit| (0..=commit).rev().find(is_built)),
            );
            pair_ends.extend(
                commits
                    .iter()
                    .filter_map(|&commit| (commit..=self.commits).find(is_built)),
            );
        }
        pair_ends.extend([0, self.commits]);
        pair_ends.sort_unstable();
        pair_ends.dedup();
        pair_ends
    }

    fn likeliest(&self) -> CommitGroup {
        let chance = |group: &CommitGroup| self.chance_inside(group.before, group.after);
        let groups = self.groups();
        let mut likeliest = groups[0];
        for group in groups {
            if chance(&group) > chance(&likeliest) {
                likeliest = group;
            }
        }
        likeliest
    }

    fn groups(&self) -> Vec<CommitGroup> {
        let mut groups = Vec::with_capacity(self.commits);
        let mut before = 0;
        for after in 1..=self.commits {
            if self.can_run[after] {
                groups.push(CommitGroup { before, after });
                before = after;
            }
        }
        groups
    }

    /// The chance that the culprit is in (before, after].
    fn chance_inside(&self, before: usize, after: usize) -> f64 {
        self.chance_sums[after] - self.chance_sums[before]
    }

    /// The group of a commit, from 1 up.
    fn group_of(&self, commit: usize) -> CommitGroup {
        let mut before = commit - 1;
        while !self.can_run[before] {
            before -= 1;
        }
        CommitGroup {
            before,
            after: self.next_running(commit),
        }
    }

    fn next_running(&self, commit: usize) -> usize {
        let mut commit = commit;
        while !self.can_run[commit] {
            commit += 1;
        }
        commit
    }

    fn is_excluded(&self, group: CommitGroup) -> bool {
        self.excluded_at[group.before..group.after]
            .iter()
            .all(Option::is_some)
    }

    fn remaining_groups(&self) -> Remaining {
        let groups = self.groups();
        let mut remaining = groups.into_iter().filter(|group| !self.is_excluded(*group));
        match (remaining.next(), remaining.next()) {
            (None, _) => Remaining::None,
            (Some(group), None) => Remaining::One(group),
            _ => Remaining::Many,
        }
    }

    /// The inner commit with the most evidence of a step on each side; n if no inner commit can
    /// run.
    fn split_commit(&self) -> usize {
        let weaker_evidence =
            |commit: usize| self.ln_evidence_up_to[commit].min(self.ln_evidence_after[commit]);
        let inner = (1..self.commits).filter(|&commit| self.can_run[commit]);
        let mut best = None;
        for commit in inner {
            if best.is_none_or(|best| weaker_evidence(commit) > weaker_evidence(best)) {
                best = Some(commit);
            }
        }
        best.unwrap_or(self.commits)
    }
}

/// The groups that are not excluded.
enum Remaining {
    None,
    One(CommitGroup),
    Many,
}

/// The logarithms of the prior chances, which are at least `MIN_PRIOR_RATIO`/n.
fn ln_prior(chances: &[f64], count: usize) -> Vec<f64> {
    if chances.is_empty() {
        return vec![0.0; count];
    }
    assert_eq!(chances.len(), count);
    let sum: f64 = chances.iter().sum();
    let even = 1.0 / count as f64;
    let floored = |chance: &f64| {
        let known = if sum > 0.0 { chance / sum } else { even };
        known.max(MIN_PRIOR_RATIO * even).ln()
    };
    chances.iter().map(floored).collect()
}

/// The logarithm of the t density with 4 degrees of freedom, up to a constant.
fn ln_density(x: f64) -> f64 {
    -2.5 * (0.25 * x * x).ln_1p()
}
