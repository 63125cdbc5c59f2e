//! One search between two commits that differ.

use crate::bisection::sizes::{PastBlock, Sizes};
use crate::bisection::stake::Stake;
use crate::order_statistics::median;

/// Differences up to this part of the confirmed gap count as 0.
const MARGIN: f64 = 0.1;
/// Least chance of a commit before the first block, in chances of an even prior.
const LEAST_PRIOR: f64 = 0.1;
/// A commit counts by the square root of its likelihood of being the culprit plus this over n:
/// likely commits come first, and no commit is forgotten.
const URGENCY_FLOOR: f64 = 0.01;
/// Points of the weights at which a pair may begin or end.
const QUANTILES: [f64; 7] = [0.1, 0.25, 1.0 / 3.0, 0.5, 2.0 / 3.0, 0.75, 0.9];
/// Cost of a build, in trials, from which built commits next to a point are considered, too.
const BUILDS_COUNT: f64 = 0.5;
/// Trials in a block.
const TRIALS: f64 = 2.0;

/// The start of a search.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Number of commits after the first one: n.
    pub commits: usize,
    /// Chance with which the set ever leaves out the culprit, or a name is ever wrong.
    pub alpha: f64,
    /// 1 if the last commit costs more than the first, −1 if less.
    pub direction: f64,
    /// Differences and orders of the blocks (first, last) that confirmed the gap.
    pub confirming: &'a [(f64, f64)],
    /// Chances of the n commits, in any unit; empty if they are equal.
    pub prior: &'a [f64],
}

/// One block of a pair of commits.
#[derive(Clone, Copy, Debug)]
pub struct PairBlock {
    /// Index of the earlier commit, from 0.
    pub before: usize,
    /// Index of the later commit, up to n.
    pub after: usize,
    /// ln(cost of the later) − ln(cost of the earlier); infinite if one timed out, NaN if both did.
    pub difference: f64,
    /// 1 if the earlier commit ran first, −1 if the later did.
    pub order: f64,
    /// Differences below this cannot be detected.
    pub tolerance: f64,
}

/// Consecutive commits of which only the last one runs: (before, after] of its own pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The commit before the first one of the group; it runs.
    pub before: usize,
    /// The last commit of the group.
    pub after: usize,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Commits are left.
    Open,
    /// One commit (or group) is left, and alone makes a difference.
    Culprit(Group),
    /// No single commit explains the gap: one that alone makes a difference, if there is one,
    /// and the commit at which to split.
    Several(Option<Group>, usize),
}

/// The bets against each commit between two that differ.
///
/// Everything that a block is bet on with is a function of the blocks before it.
#[derive(Clone, Debug)]
pub struct Search {
    commits: usize,
    limit: f64,
    direction: f64,
    margin: f64,
    runs: Vec<bool>,
    /// ln of the weight of each commit, which steers, at index s − 1 as all that follow.
    likelihoods: Vec<f64>,
    /// ln `E_s`: against "commit s makes the whole difference".
    against: Vec<f64>,
    excluded_at: Vec<Option<usize>>,
    /// ln `F_s`: against "commit s alone makes no difference".
    own: Vec<f64>,
    /// ln of the value that `F_s` must reach; infinite before its own pair was run.
    bars: Vec<f64>,
    /// ln `L_m` and ln `R_m`, by m: evidence of a step up to m, and after m.
    up_to: Vec<f64>,
    beyond: Vec<f64>,
    past: Vec<PastBlock>,
    blocks: usize,
    sizes: Sizes,
    learnt_at: usize,
    /// Σ of the weights of the commits up to each index, from 0 to 1.
    cumulated: Vec<f64>,
}

impl Search {
    /// A search after its gap was confirmed.
    ///
    /// # Panics
    /// If there is no commit, or the prior has another length.
    #[must_use]
    pub fn new(segment: &Segment) -> Self {
        let count = segment.commits;
        assert!(count > 0, "a gap has a commit");
        let past: Vec<PastBlock> = segment
            .confirming
            .iter()
            .filter(|(difference, _)| difference.is_finite())
            .map(|&(difference, order)| PastBlock {
                before: 0,
                after: count,
                difference: segment.direction * difference,
                order: segment.direction * order,
            })
            .collect();
        let mut differences: Vec<f64> = past.iter().map(|block| block.difference).collect();
        let gap = median(&mut differences).unwrap_or(Sizes::UNKNOWN.step);
        let mut search = Self {
            commits: count,
            limit: -segment.alpha.ln(),
            direction: segment.direction,
            margin: (MARGIN * gap).max(0.0),
            runs: vec![true; count + 1],
            likelihoods: prior(segment.prior, count),
            against: vec![0.0; count],
            excluded_at: vec![None; count],
            own: vec![0.0; count],
            bars: vec![f64::INFINITY; count],
            up_to: vec![0.0; count],
            beyond: vec![0.0; count],
            past,
            blocks: segment.confirming.len(),
            sizes: Sizes::UNKNOWN,
            learnt_at: 0,
            cumulated: Vec::new(),
        };
        search.weigh();
        search.learn_if_due();
        search
    }

    /// Adds a block, whose bet depends on the blocks before it, and returns whether it was the
    /// first of its commit's own pair.
    ///
    /// `number` is remembered for the commits that the block excludes; `rank` is the k that a
    /// commit gets whose own pair is run for the first time.
    ///
    /// # Panics
    /// If the pair does not consist of two commits that run.
    pub fn add(&mut self, block: &PairBlock, number: usize, rank: usize) -> bool {
        let (before, after) = (block.before, block.after);
        assert!(before < after && self.runs[before] && self.runs[after]);
        self.blocks += 1;
        let is_own = self.group_of(after).before == before;
        let is_first = is_own && self.bars[after - 1].is_infinite();
        if is_first {
            let rank = rank as f64;
            self.bars[after - 1] = (rank * (rank + 1.0)).ln() + self.limit;
        }
        if block.difference.is_nan() {
            // Two timeouts carry no information, but the same pair must not run without end.
            self.steer(before, after, -std::f64::consts::LN_2);
        } else {
            self.bet(block, is_own, number);
            self.remember(block);
        }
        self.learn_if_due();
        is_first
    }

    /// Takes out a commit that does not run: it forms one hypothesis with the next commit that
    /// runs, and the evidence of their own pairs is void.
    ///
    /// # Panics
    /// If it is the first or the last commit, or is out already.
    pub fn withdraw(&mut self, commit: usize) {
        assert!(0 < commit && commit < self.commits && self.runs[commit]);
        self.runs[commit] = false;
        let after = self.group_of(commit).after;
        for place in [commit - 1, after - 1] {
            self.own[place] = 0.0;
            self.bars[place] = f64::INFINITY;
        }
    }

    /// Whether only one commit is left that makes a difference alone, or no commit is left.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let proven = |group: &Group| self.own[group.after - 1] >= self.bars[group.after - 1];
        let left = self.only_group_left();
        match left {
            Left::One(group) if proven(&group) => Outcome::Culprit(group),
            Left::Many | Left::One(_) => Outcome::Open,
            Left::None => {
                let groups = self.groups().into_iter().filter(proven);
                let best = groups.max_by(|one, other| {
                    self.own[one.after - 1].total_cmp(&self.own[other.after - 1])
                });
                Outcome::Several(best, self.split())
            }
        }
    }

    /// The pair with the most expected evidence for its cost; a build costs `trials` trials.
    ///
    /// `built` states for each of the n + 1 commits whether it can run without a build.
    ///
    /// # Panics
    /// If `built` has another length.
    #[must_use]
    pub fn choose(&self, built: &[bool], trials: f64) -> (usize, usize) {
        assert_eq!(built.len(), self.commits + 1);
        let urgency = self.urgency();
        let total = urgency[self.commits];
        let leader = self.leader();
        let of_group = |sums: &[f64], group: Group| sums[group.after] - sums[group.before];
        let others_left = self
            .groups()
            .iter()
            .any(|group| *group != leader && !self.is_excluded(*group));
        if !others_left && of_group(&self.cumulated, leader) > 0.5 {
            return (leader.before, leader.after);
        }
        let places = self.places(leader, built, trials);
        let mut best = (0, self.commits);
        let mut most = f64::NEG_INFINITY;
        for (index, &before) in places.iter().enumerate() {
            for &after in &places[index + 1..] {
                let chance = self.cumulated[after] - self.cumulated[before];
                let gain = total - (urgency[after] - urgency[before]);
                let new = f64::from(u8::from(!built[before]) + u8::from(!built[after]));
                let score = chance * gain / (TRIALS + trials * new);
                if score > most {
                    (best, most) = ((before, after), score);
                }
            }
        }
        best
    }

    /// Whether there is such a commit, and it runs.
    #[must_use]
    pub fn runs(&self, commit: usize) -> bool {
        self.runs.get(commit).copied().unwrap_or(false)
    }

    /// ln `E_s` of each commit.
    #[must_use]
    pub fn ln_e_values(&self) -> &[f64] {
        &self.against
    }

    /// The block that excluded each commit.
    #[must_use]
    pub fn excluded_at(&self) -> &[Option<usize>] {
        &self.excluded_at
    }

    /// ln F of a commit that runs, of its own pair.
    #[must_use]
    pub fn own_ln_e_value(&self, commit: usize) -> f64 {
        self.own[commit - 1]
    }

    /// ln of the value that F of a commit must reach; infinite before its own pair was run.
    #[must_use]
    pub fn own_bar(&self, commit: usize) -> f64 {
        self.bars[commit - 1]
    }

    /// Each commit's chance of being the culprit, as it steers the search.
    #[must_use]
    pub fn weights(&self) -> Vec<f64> {
        self.cumulated
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect()
    }

    /// Differences up to this, in log units, count as 0.
    #[must_use]
    pub fn margin(&self) -> f64 {
        self.margin
    }

    /// The step as it is learnt so far, in log units and in the direction of the gap.
    #[must_use]
    pub fn step(&self) -> f64 {
        self.sizes.step
    }

    /// The standard deviation of a block's difference, as it is learnt so far.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.sizes.scale
    }

    fn learn_if_due(&mut self) {
        if self.blocks < self.learnt_at + (self.learnt_at / 8).max(1) {
            return;
        }
        let cumulated = &self.cumulated;
        self.sizes = self.sizes.learn(&self.past, self.blocks, |block| {
            cumulated[block.after] - cumulated[block.before]
        });
        self.learnt_at = self.blocks;
    }

    fn bet(&mut self, block: &PairBlock, is_own: bool, number: usize) {
        let (before, after) = (block.before, block.after);
        let Sizes { step, scale, slot } = self.sizes;
        let difference = self.direction * (block.difference - block.order * self.direction * slot);
        let stake = Stake::new(step, scale, self.margin, block.tolerance);
        let payoff = stake.on(difference);
        let chance = (self.cumulated[after] - self.cumulated[before]).clamp(0.0, 1.0);
        for group in self.groups() {
            if before < group.after && group.after <= after {
                continue;
            }
            let weight = self.cumulated[group.after] - self.cumulated[group.before];
            let rest = (1.0 - weight).max(1e-12);
            let ln_factor = payoff.factor((chance / rest).clamp(0.0, 1.0)).ln();
            for place in group.before..group.after {
                self.against[place] += ln_factor;
                if self.against[place] >= self.limit && self.excluded_at[place].is_none() {
                    self.excluded_at[place] = Some(number);
                }
            }
        }
        let even = payoff.factor(0.5).ln();
        self.up_to[after..]
            .iter_mut()
            .for_each(|wealth| *wealth += even);
        self.beyond[..=before.min(self.commits - 1)]
            .iter_mut()
            .for_each(|wealth| *wealth += even);
        if is_own {
            self.own[after - 1] += payoff.factor(chance.max(0.5)).ln();
        }
        // A timeout counts as far out as any outlier, which would not steer at all.
        let steering = if difference.is_infinite() {
            step.copysign(difference)
        } else {
            difference
        };
        let ratio = ln_density((steering - step) / scale) - ln_density(steering / scale);
        self.steer(before, after, ratio);
    }

    /// Multiply the weights of the commits inside a pair by e to the power of the ratio.
    fn steer(&mut self, before: usize, after: usize, ratio: f64) {
        for likelihood in &mut self.likelihoods[before..after] {
            *likelihood += ratio;
        }
        self.weigh();
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

    fn weigh(&mut self) {
        let largest = self.likelihoods.iter().copied().fold(f64::MIN, f64::max);
        self.cumulated.clear();
        self.cumulated.push(0.0);
        let mut sum = 0.0;
        for likelihood in &self.likelihoods {
            sum += (likelihood - largest).exp();
            self.cumulated.push(sum);
        }
        for cumulated in &mut self.cumulated {
            *cumulated /= sum;
        }
    }

    /// Σ of the evidence still missing for each commit's exclusion, weighted by the commit's
    /// likelihood, up to each index.
    fn urgency(&self) -> Vec<f64> {
        let floor = URGENCY_FLOOR / self.commits as f64;
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(self.commits + 1);
        sums.push(sum);
        for place in 0..self.commits {
            if self.excluded_at[place].is_none() {
                let need = (self.limit - self.against[place]).max(0.0);
                let weight = self.cumulated[place + 1] - self.cumulated[place];
                sum += need * (weight + floor).sqrt();
            }
            sums.push(sum);
        }
        sums
    }

    /// Indices at which a pair may begin or end, increasing.
    fn places(&self, leader: Group, built: &[bool], trials: f64) -> Vec<usize> {
        let quantiles = QUANTILES.iter().map(|&quantile| {
            let point = self.cumulated.partition_point(|&weight| weight < quantile);
            self.next_running(point.min(self.commits))
        });
        let mut places = vec![leader.before, leader.after];
        places.extend(quantiles);
        if trials >= BUILDS_COUNT {
            let usable = |commit: &usize| built[*commit] && self.runs[*commit];
            let points = places.clone();
            places.extend(
                points
                    .iter()
                    .filter_map(|&point| (0..=point).rev().find(usable)),
            );
            places.extend(
                points
                    .iter()
                    .filter_map(|&point| (point..=self.commits).find(usable)),
            );
        }
        places.extend([0, self.commits]);
        places.sort_unstable();
        places.dedup();
        places
    }

    fn leader(&self) -> Group {
        let weight = |group: &Group| self.cumulated[group.after] - self.cumulated[group.before];
        let groups = self.groups();
        let mut leader = groups[0];
        for group in groups {
            if weight(&group) > weight(&leader) {
                leader = group;
            }
        }
        leader
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::with_capacity(self.commits);
        let mut before = 0;
        for after in 1..=self.commits {
            if self.runs[after] {
                groups.push(Group { before, after });
                before = after;
            }
        }
        groups
    }

    /// The group that a commit from 1 up belongs to.
    fn group_of(&self, commit: usize) -> Group {
        let mut before = commit - 1;
        while !self.runs[before] {
            before -= 1;
        }
        Group {
            before,
            after: self.next_running(commit),
        }
    }

    fn next_running(&self, commit: usize) -> usize {
        let mut commit = commit;
        while !self.runs[commit] {
            commit += 1;
        }
        commit
    }

    /// Whether each commit of a group is excluded.
    fn is_excluded(&self, group: Group) -> bool {
        self.excluded_at[group.before..group.after]
            .iter()
            .all(Option::is_some)
    }

    fn only_group_left(&self) -> Left {
        let groups = self.groups();
        let mut left = groups.into_iter().filter(|group| !self.is_excluded(*group));
        match (left.next(), left.next()) {
            (None, _) => Left::None,
            (Some(group), None) => Left::One(group),
            _ => Left::Many,
        }
    }

    /// The commit with the most evidence of a step on both sides; n if there is none between.
    fn split(&self) -> usize {
        let both = |commit: usize| self.up_to[commit].min(self.beyond[commit]);
        let inner = (1..self.commits).filter(|&commit| self.runs[commit]);
        let mut best = None;
        for commit in inner {
            if best.is_none_or(|best| both(commit) > both(best)) {
                best = Some(commit);
            }
        }
        best.unwrap_or(self.commits)
    }
}

enum Left {
    None,
    One(Group),
    Many,
}

/// ln of the chances before the first block.
fn prior(chances: &[f64], count: usize) -> Vec<f64> {
    if chances.is_empty() {
        return vec![0.0; count];
    }
    assert_eq!(chances.len(), count);
    let sum: f64 = chances.iter().sum();
    let even = 1.0 / count as f64;
    let floored = |chance: &f64| {
        let known = if sum > 0.0 { chance / sum } else { even };
        known.max(LEAST_PRIOR * even).ln()
    };
    chances.iter().map(floored).collect()
}

/// ln of the t density with 4 degrees of freedom, but for a constant.
fn ln_density(x: f64) -> f64 {
    -2.5 * (0.25 * x * x).ln_1p()
}
