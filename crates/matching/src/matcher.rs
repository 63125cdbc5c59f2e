//! Finds the pairs of a problem.

use std::collections::HashMap;

use crate::embed::{Points, embed};
use crate::parallel::{Progress, in_parallel};
use crate::pool::Pool;
use crate::problem::{Method, Pairs, Problem, Restriction};
use crate::search::{Found, Query};
use crate::ties::kept_by_lot;

/// Queries that a thread takes at once.
const AT_ONCE: usize = 64;
/// So many queries are tried to see how much of the data a tree leaves out.
const TRIED: usize = 24;
/// A tree costs about this much more for each block that it does look into.
const COST_OF_TREE: f64 = 2.0;

/// A problem whose units are in place for searching.
pub struct Matcher {
    pub(crate) problem: Problem,
    points: Points,
    pools: [Pool; 2],
    /// Of each row: its point in the pool of its arm.
    position: Vec<usize>,
    given: HashMap<usize, Vec<(usize, f64)>>,
    by_tree: bool,
}

/// What was found for the points of a pool.
pub(crate) struct Neighbourhoods {
    starts: Vec<usize>,
    found: Vec<(f64, u32)>,
    last: Vec<f64>,
    enough: Vec<bool>,
}

impl Neighbourhoods {
    pub(crate) fn of(&self, point: usize) -> &[(f64, u32)] {
        &self.found[self.starts[point]..self.starts[point + 1]]
    }

    pub(crate) fn enough(&self, point: usize) -> bool {
        self.enough[point]
    }
}

impl Matcher {
    /// Puts the units of the problem in place.
    #[must_use]
    pub fn new(problem: Problem) -> Self {
        let points = embed(&problem);
        let merged =
            problem.restrictions.is_empty() && problem.replace && problem.weights.is_none();
        let pools = [false, true].map(|arm| {
            let rows: Vec<usize> = (0..problem.rows())
                .filter(|&row| problem.treated[row] == arm)
                .collect();
            Pool::new(&problem, &points, &rows, merged)
        });
        let mut position = vec![0; problem.rows()];
        for pool in &pools {
            for point in 0..pool.points {
                for &row in pool.members(point) {
                    position[row as usize] = point;
                }
            }
        }
        let given = given_distances(&problem.restrictions);
        let mut matcher = Self {
            problem,
            points,
            pools,
            position,
            given,
            by_tree: true,
        };
        matcher.by_tree = matcher.prefers_tree();
        matcher
    }

    /// Whether a tree of boxes is searched.
    #[must_use]
    pub fn uses_tree(&self) -> bool {
        self.by_tree
    }

    pub(crate) fn pool(&self, arm: bool) -> &Pool {
        &self.pools[usize::from(arm)]
    }

    fn prefers_tree(&self) -> bool {
        match self.problem.method {
            Method::Tree => return true,
            Method::BruteForce => return false,
            Method::Chosen => {}
        }
        let (mut looked, mut all) = (0, 0);
        let mut found = Found::default();
        for arm in [false, true] {
            let targets = self.pool(!arm);
            if !self.problem.estimand.queries(arm) || targets.block_count() < 8 {
                continue;
            }
            let queries = self.pool(arm);
            for point in (0..queries.points).step_by(queries.points.div_ceil(TRIED)) {
                self.look(&mut found, arm, point, &|_| true);
                looked += found.blocks;
                all += targets.block_count();
            }
        }
        (looked as f64) * COST_OF_TREE < all as f64
    }

    /// Searches the other arm around a point of the arm; only rows that are `free` are admitted.
    pub(crate) fn look(
        &self,
        found: &mut Found,
        arm: bool,
        point: usize,
        free: &dyn Fn(usize) -> bool,
    ) {
        let targets = self.pool(!arm);
        let row = self.pool(arm).members(point)[0] as usize;
        let admitted = |target: usize| {
            let other = targets.members(target)[0] as usize;
            (free(other) && self.within_caliper(row, other)).then(|| targets.weight[target])
        };
        self.search(found, !arm, row, self.problem.matches as f64, &admitted);
    }

    /// Searches the pool of `arm` around the row.
    pub(crate) fn search(
        &self,
        found: &mut Found,
        arm: bool,
        row: usize,
        needed: f64,
        admitted: &dyn Fn(usize) -> Option<f64>,
    ) {
        let pool = self.pool(arm);
        let mut given = Vec::new();
        if let Some(pairs) = self.given.get(&row) {
            for &(other, squared) in pairs {
                if self.problem.treated[other] == arm {
                    given.push((self.position[other], squared));
                }
            }
        }
        let forbidden: Vec<usize> = given
            .iter()
            .filter(|(_, squared)| *squared < 0.0)
            .map(|&(point, _)| point)
            .collect();
        given.retain(|&(_, squared)| squared >= 0.0);
        let fence: Vec<(f64, f64)> =
            self.problem
                .caliper
                .as_ref()
                .map_or_else(Vec::new, |caliper| {
                    pool.fenced
                        .iter()
                        .map(|&column| (self.x(row, column), caliper[column]))
                        .collect()
                });
        found.search(
            pool,
            &Query {
                point: self.points.of(row),
                fence: &fence,
                needed: needed - 1e-10,
                slack: self.problem.reach(0.0),
                admitted: &|point| {
                    if forbidden.contains(&point) {
                        None
                    } else {
                        admitted(point)
                    }
                },
                given: &given,
                by_tree: self.by_tree,
            },
        );
    }

    fn x(&self, row: usize, column: usize) -> f64 {
        self.problem.x[row * self.problem.columns + column]
    }

    /// Whether two rows lie no further apart than the caliper in any column.
    pub(crate) fn within_caliper(&self, row: usize, other: usize) -> bool {
        let Some(caliper) = &self.problem.caliper else {
            return true;
        };
        self.pools[0]
            .fenced
            .iter()
            .all(|&column| (self.x(row, column) - self.x(other, column)).abs() <= caliper[column])
    }

    /// Whether something can keep a unit from being matched.
    pub(crate) fn filtered(&self) -> bool {
        self.problem.caliper.is_some() || !self.problem.restrictions.is_empty()
    }

    /// The pairs; `None` if `progress`, told how many units are done of how many, stops the search.
    pub fn pairs(&self, progress: &Progress<'_>) -> Option<Pairs> {
        if !self.problem.replace {
            return self.pairs_without_replacement(progress);
        }
        let asking = [false, true].map(|arm| self.problem.estimand.queries(arm));
        let points = |arm: bool| usize::from(asking[usize::from(arm)]) * self.pool(arm).points;
        let mut arms = [None, None];
        for arm in [false, true] {
            if asking[usize::from(arm)] {
                let before = usize::from(arm) * points(false);
                let told = |done, _| progress(before + done, points(false) + points(true));
                arms[usize::from(arm)] =
                    Some(self.neighbourhoods(arm, &told, &|found, point| {
                        self.look(found, arm, point, &|_| true);
                    })?);
            }
        }
        let mut pairs = Pairs::default();
        let mut members = Vec::new();
        for row in 0..self.problem.rows() {
            let arm = self.problem.treated[row];
            let Some(found) = &arms[usize::from(arm)] else {
                continue;
            };
            let point = self.position[row];
            let targets = self.pool(!arm);
            if !found.enough[point] && self.filtered() {
                pairs.dropped.push(row);
                continue;
            }
            members.clear();
            for &(squared, target) in found.of(point) {
                for &member in targets.members(target as usize) {
                    members.push((squared, member as usize));
                }
            }
            self.add(&mut pairs, row, &mut members, found.last[point]);
        }
        Some(pairs)
    }

    /// Adds the pairs of one unit.
    fn add(&self, pairs: &mut Pairs, row: usize, members: &mut Vec<(f64, usize)>, last: f64) {
        if !self.problem.ties && members.len() > self.problem.matches {
            kept_by_lot(&self.problem, row, members, last);
        }
        members.sort_unstable_by_key(|&(_, member)| member);
        let total: f64 = members
            .iter()
            .map(|&(_, member)| self.problem.weight(member))
            .sum();
        for &(_, member) in members.iter() {
            pairs.query.push(row);
            pairs.matched.push(member);
            let share = if total > 0.0 {
                self.problem.weight(member) / total
            } else {
                1.0 / members.len() as f64
            };
            pairs.weight.push(self.problem.weight(row) * share);
        }
    }

    /// Unit after unit, each from what the earlier ones left.
    fn pairs_without_replacement(&self, progress: &Progress<'_>) -> Option<Pairs> {
        let mut pairs = Pairs::default();
        let mut free = vec![true; self.problem.rows()];
        let mut left = [false, true].map(|arm| self.pool(arm).points);
        let mut found = Found::default();
        let mut members = Vec::new();
        for row in 0..self.problem.rows() {
            if row % AT_ONCE == 0 && !progress(row, self.problem.rows()) {
                return None;
            }
            let arm = self.problem.treated[row];
            if !self.problem.estimand.queries(arm) {
                continue;
            }
            let targets = &mut left[usize::from(!arm)];
            if *targets > 0 {
                self.look(&mut found, arm, self.position[row], &|other| free[other]);
            }
            if *targets == 0 || !found.enough {
                pairs.dropped.push(row);
                continue;
            }
            members.clear();
            members.extend(found.neighbours.iter().map(|&(squared, target)| {
                (
                    squared,
                    self.pool(!arm).members(target as usize)[0] as usize,
                )
            }));
            let first = pairs.matched.len();
            self.add(&mut pairs, row, &mut members, found.last);
            for &member in &pairs.matched[first..] {
                free[member] = false;
                *targets -= 1;
            }
        }
        progress(self.problem.rows(), self.problem.rows()).then_some(pairs)
    }

    /// What `look` finds for each point of the arm, by all threads.
    pub(crate) fn neighbourhoods(
        &self,
        arm: bool,
        progress: &Progress<'_>,
        look: &(dyn Fn(&mut Found, usize) + Sync),
    ) -> Option<Neighbourhoods> {
        let points = self.pool(arm).points;
        let chunks = in_parallel(self.problem.threads, points, AT_ONCE, progress, |range| {
            let mut found = Found::default();
            let mut answers = Vec::with_capacity(range.len());
            let mut all = Vec::new();
            for point in range {
                look(&mut found, point);
                all.extend_from_slice(&found.neighbours);
                answers.push((all.len(), found.last, found.enough));
            }
            (answers, all)
        })?;
        let mut together = Neighbourhoods {
            starts: vec![0],
            found: Vec::with_capacity(chunks.iter().map(|(_, all)| all.len()).sum()),
            last: Vec::with_capacity(points),
            enough: Vec::with_capacity(points),
        };
        for (answers, all) in chunks {
            let before = together.found.len();
            together.found.extend(all);
            for (end, last, enough) in answers {
                together.starts.push(before + end);
                together.last.push(last);
                together.enough.push(enough);
            }
        }
        Some(together)
    }
}

/// By row, the rows to which a distance is given; the last restriction of a pair holds.
fn given_distances(restrictions: &[Restriction]) -> HashMap<usize, Vec<(usize, f64)>> {
    let mut given: HashMap<usize, Vec<(usize, f64)>> = HashMap::new();
    for restriction in restrictions {
        let (first, second) = (restriction.first, restriction.second);
        for (row, other) in [(first, second), (second, first)] {
            let pairs = given.entry(row).or_default();
            pairs.retain(|&(known, _)| known != other);
            pairs.push((other, restriction.squared_distance));
        }
    }
    given
}
