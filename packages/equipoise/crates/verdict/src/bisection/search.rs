//! The search for the commit that changed the cost: evidence against commits, and the next pair to
//! run.
//!
//! Commits have indices from 0 (the first) to n (the last). The culprit has an index from 1 to n. A
//! *group* is a commit that can run, with all commits directly before it that cannot. The *own
//! pair* of a group is the commit before the group, and the last commit of the group.

use crate::bisection::sizes::{PastBlock, Sizes};
use crate::bisection::stake::Stake;
use crate::order_statistics::median;

/// Differences up to this fraction of the gap between the first and the last commit count as 0.
const MARGIN_FRACTION: f64 = 0.1;
/// Smallest prior chance of a commit, relative to 1/n for n commits.
const MIN_PRIOR_RATIO: f64 = 0.1;
/// This number over n is added to the chance that a commit is the culprit, so that the search also
/// tests unlikely commits.
const URGENCY_FLOOR: f64 = 0.01;
/// A pair may begin or end where the summed chances of the commits reach these values.
const WEIGHT_QUANTILES: [f64; 7] = [0.1, 0.25, 1.0 / 3.0, 0.5, 2.0 / 3.0, 0.75, 0.9];
/// If a build costs at least this many trials, pairs of built commits are considered, too.
const COSTLY_BUILD_TRIALS: f64 = 0.5;
const TRIALS_PER_BLOCK: f64 = 2.0;

/// The settings of a search.
#[derive(Clone, Debug)]
pub struct SearchSettings<'a> {
    /// Number of commits after the first one: n.
    pub commits: usize,
    /// Largest chance of ever excluding the culprit, and of ever reporting a wrong commit.
    pub alpha: f64,
    /// 1 if the last commit costs more than the first, −1 if less.
    pub direction: f64,
    /// Difference and order (see `PairBlock`) of each block of the first and the last commit.
    pub confirming: &'a [(f64, f64)],
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
pub struct Group {
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
    Culprit(Group),
    /// No single commit explains the gap. The first value is the group with the most evidence of a
    /// change, if any. The second value is the commit at which to split the search.
    Several(Option<Group>, usize),
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
    /// ln of the likelihood that each commit is the culprit. It only chooses pairs and stakes.
    ln_likelihoods: Vec<f64>,
    /// ln `E_s`: evidence against "commit s makes the whole difference".
    ln_against: Vec<f64>,
    /// Number of the block that excluded each commit.
    excluded_at: Vec<Option<usize>>,
    /// ln `F_s`: evidence, from its own pair, against "commit s makes no difference".
    ln_own: Vec<f64>,
    /// ln of the value that `F_s` must reach; infinite before the own pair of s was run.
    ln_own_thresholds: Vec<f64>,
    /// ln `L_m` at index m: evidence of a step at a commit up to m.
    ln_up_to: Vec<f64>,
    /// ln `R_m` at index m: evidence of a step at a commit after m.
    ln_after: Vec<f64>,
    past: Vec<PastBlock>,
    block_count: usize,
    sizes: Sizes,
    /// Number of blocks at the last update of `sizes`.
    estimated_at: usize,
    /// At index m, the chance that the culprit is one of the commits up to m.
    weight_sums: Vec<f64>,
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
            .confirming
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
        let gap = median(&mut differences).unwrap_or(Sizes::UNKNOWN.step);
        let mut search = Self {
            commits: count,
            ln_threshold: -settings.alpha.ln(),
            direction: settings.direction,
            margin: (MARGIN_FRACTION * gap).max(0.0),
            can_run: vec![true; count + 1],
            ln_likelihoods: ln_prior(settings.prior, count),
            ln_against: vec![0.0; count],
            excluded_at: vec![None; count],
            ln_own: vec![0.0; count],
            ln_own_thresholds: vec![f64::INFINITY; count],
            ln_up_to: vec![0.0; count],
            ln_after: vec![0.0; count],
            past,
            block_count: settings.confirming.len(),
            sizes: Sizes::UNKNOWN,
            estimated_at: 0,
            weight_sums: Vec::new(),
        };
        search.update_weights();
        search.update_sizes_if_due();
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
            // Two timeouts carry no information. A smaller weight lets other pairs run.
            self.multiply_weights(before, after, -std::f64::consts::LN_2);
        } else {
            self.bet(block, is_own, number);
            self.remember(block);
        }
        self.update_sizes_if_due();
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
            self.ln_own[index] = 0.0;
            self.ln_own_thresholds[index] = f64::INFINITY;
        }
    }

    /// The state of the search: open, one culprit, or several.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let proven =
            |group: &Group| self.ln_own[group.after - 1] >= self.ln_own_thresholds[group.after - 1];
        match self.remaining_groups() {
            Remaining::One(group) if proven(&group) => Outcome::Culprit(group),
            Remaining::Many | Remaining::One(_) => Outcome::Open,
            Remaining::None => {
                let groups = self.groups().into_iter().filter(proven);
                let best = groups.max_by(|first, second| {
                    self.ln_own[first.after - 1].total_cmp(&self.ln_own[second.after - 1])
                });
                Outcome::Several(best, self.split_commit())
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
    pub fn choose(&self, built: &[bool], build_cost: f64) -> (usize, usize) {
        assert_eq!(built.len(), self.commits + 1);
        let urgency_sums = self.urgency_sums();
        let total = urgency_sums[self.commits];
        let likeliest = self.likeliest();
        let has_other_groups = self
            .groups()
            .iter()
            .any(|group| *group != likeliest && !self.is_excluded(*group));
        if !has_other_groups && self.weight(likeliest.before, likeliest.after) > 0.5 {
            return (likeliest.before, likeliest.after);
        }
        let pair_ends = self.pair_ends(likeliest, built, build_cost);
        let mut best = (0, self.commits);
        let mut best_score = f64::NEG_INFINITY;
        for (index, &before) in pair_ends.iter().enumerate() {
            for &after in &pair_ends[index + 1..] {
                let chance = self.weight(before, after);
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
    pub fn runs(&self, commit: usize) -> bool {
        self.can_run.get(commit).copied().unwrap_or(false)
    }

    /// ln `E_s` of each commit.
    #[must_use]
    pub fn ln_e_values(&self) -> &[f64] {
        &self.ln_against
    }

    /// The number of the block that excluded each commit, if any.
    #[must_use]
    pub fn excluded_at(&self) -> &[Option<usize>] {
        &self.excluded_at
    }

    /// ln F of a commit that can run: the evidence from its own pair.
    #[must_use]
    pub fn own_ln_e_value(&self, commit: usize) -> f64 {
        self.ln_own[commit - 1]
    }

    /// ln of the value that F of a commit must reach; infinite before its own pair was run.
    #[must_use]
    pub fn own_threshold(&self, commit: usize) -> f64 {
        self.ln_own_thresholds[commit - 1]
    }

    /// The chance that each commit is the culprit, for the choice of pairs.
    #[must_use]
    pub fn weights(&self) -> Vec<f64> {
        self.weight_sums
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
        self.sizes.step
    }

    /// The present estimate of the standard deviation of a block's difference.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.sizes.scale
    }

    /// Updates the sizes if the number of blocks has grown by an eighth since the last update.
    fn update_sizes_if_due(&mut self) {
        if self.block_count < self.estimated_at + (self.estimated_at / 8).max(1) {
            return;
        }
        let weight_sums = &self.weight_sums;
        self.sizes = self.sizes.updated(&self.past, self.block_count, |block| {
            weight_sums[block.after] - weight_sums[block.before]
        });
        self.estimated_at = self.block_count;
    }

    /// Bets on a block. There are bets against each group outside the pair, on a step on each side
    /// of a commit, and on an own pair.
    fn bet(&mut self, block: &PairBlock, is_own: bool, number: usize) {
        let (before, after) = (block.before, block.after);
        let Sizes { step, scale, slot } = self.sizes;
        let difference = self.direction * (block.difference - block.order * self.direction * slot);
        let stake = Stake::new(step, scale, self.margin, block.tolerance);
        let payoff = stake.payoff_of(difference);
        let chance = self.weight(before, after).clamp(0.0, 1.0);
        for group in self.groups() {
            if before < group.after && group.after <= after {
                continue;
            }
            let weight = self.weight(group.before, group.after);
            let other_weight = (1.0 - weight).max(1e-12);
            let ln_factor = payoff.factor((chance / other_weight).clamp(0.0, 1.0)).ln();
            for index in group.before..group.after {
                self.ln_against[index] += ln_factor;
                if self.ln_against[index] >= self.ln_threshold && self.excluded_at[index].is_none()
                {
                    self.excluded_at[index] = Some(number);
                }
            }
        }
        let ln_even_factor = payoff.factor(0.5).ln();
        self.ln_up_to[after..]
            .iter_mut()
            .for_each(|wealth| *wealth += ln_even_factor);
        self.ln_after[..=before.min(self.commits - 1)]
            .iter_mut()
            .for_each(|wealth| *wealth += ln_even_factor);
        if is_own {
            self.ln_own[after - 1] += payoff.factor(chance.max(0.5)).ln();
        }
        // A timeout has an infinite difference. It changes the weights like a difference of one
        // step.
        let limited = if difference.is_infinite() {
            step.copysign(difference)
        } else {
            difference
        };
        let ln_ratio = ln_density((limited - step) / scale) - ln_density(limited / scale);
        self.multiply_weights(before, after, ln_ratio);
    }

    /// Multiplies the weights of the commits inside a pair by e to the power of `ln_ratio`.
    fn multiply_weights(&mut self, before: usize, after: usize, ln_ratio: f64) {
        for ln_likelihood in &mut self.ln_likelihoods[before..after] {
            *ln_likelihood += ln_ratio;
        }
        self.update_weights();
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

    fn update_weights(&mut self) {
        let largest = self.ln_likelihoods.iter().copied().fold(f64::MIN, f64::max);
        self.weight_sums.clear();
        self.weight_sums.push(0.0);
        let mut sum = 0.0;
        for ln_likelihood in &self.ln_likelihoods {
            sum += (ln_likelihood - largest).exp();
            self.weight_sums.push(sum);
        }
        for weight_sum in &mut self.weight_sums {
            *weight_sum /= sum;
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
                let missing = (self.ln_threshold - self.ln_against[index]).max(0.0);
                let weight = self.weight(index, index + 1);
                sum += missing * (weight + floor).sqrt();
            }
            sums.push(sum);
        }
        sums
    }

    /// The commits at which a pair may begin or end, increasing.
    fn pair_ends(&self, likeliest: Group, built: &[bool], build_cost: f64) -> Vec<usize> {
        let quantiles = WEIGHT_QUANTILES.iter().map(|&quantile| {
            let commit = self
                .weight_sums
                .partition_point(|&weight| weight < quantile);
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

    fn likeliest(&self) -> Group {
        let weight = |group: &Group| self.weight(group.before, group.after);
        let groups = self.groups();
        let mut likeliest = groups[0];
        for group in groups {
            if weight(&group) > weight(&likeliest) {
                likeliest = group;
            }
        }
        likeliest
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::with_capacity(self.commits);
        let mut before = 0;
        for after in 1..=self.commits {
            if self.can_run[after] {
                groups.push(Group { before, after });
                before = after;
            }
        }
        groups
    }

    /// The chance that the culprit is in (before, after].
    fn weight(&self, before: usize, after: usize) -> f64 {
        self.weight_sums[after] - self.weight_sums[before]
    }

    /// The group of a commit, from 1 up.
    fn group_of(&self, commit: usize) -> Group {
        let mut before = commit - 1;
        while !self.can_run[before] {
            before -= 1;
        }
        Group {
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

    fn is_excluded(&self, group: Group) -> bool {
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
        let weaker_evidence = |commit: usize| self.ln_up_to[commit].min(self.ln_after[commit]);
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
    One(Group),
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
