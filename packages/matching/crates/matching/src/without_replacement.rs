//! Pairs in which no unit is used twice: unit by unit, each from the units that the earlier ones
//! left.

use crate::matcher::{AT_ONCE, Matcher};
use crate::neighbours::SearchResult;
use crate::parallel::{Progress, in_parallel};
use crate::pool::Pool;
use crate::problem::Pairs;

/// Number of units that are searched ahead, among the units that are free then.
const AHEAD: usize = 8 * AT_ONCE;

impl Matcher {
    /// Matches unit by unit, each to the units that the earlier ones left.
    ///
    /// All threads search for some units at a time; a unit whose neighbours were taken meanwhile is
    /// searched again.
    pub(crate) fn pairs_without_replacement(&self, progress: &Progress<'_>) -> Option<Pairs> {
        let mut pairs = Pairs::default();
        let mut free = vec![true; self.problem.rows()];
        let mut pools = self.pools.clone();
        let mut free_points = [false, true].map(|arm| self.pool(arm).points);
        let mut members = Vec::new();
        let queried = |row: &usize| self.problem.estimand.queries(self.problem.treated[*row]);
        let rows: Vec<usize> = (0..self.problem.rows()).filter(queried).collect();
        let total = rows.len();
        for (turn, rows) in rows.chunks(AHEAD).enumerate() {
            let threads = self.problem.threads;
            let ahead = in_parallel(threads, rows.len(), AT_ONCE, &|_, _| true, |part| {
                self.search_free(&rows[part], &pools, &free)
            })?;
            for (&row, mut result) in rows.iter().zip(ahead.into_iter().flatten()) {
                let arm = self.problem.treated[row];
                let targets = usize::from(!arm);
                let member = |target: u32| self.pools[targets].members(target as usize)[0] as usize;
                let mut neighbours = result.neighbours.iter();
                let is_stale = neighbours.any(|&(_, target)| !free[member(target)]);
                if free_points[targets] > 0 && is_stale {
                    let fresh = self.search_free(&[row], &pools, &free).pop();
                    result = fresh.unwrap_or_default();
                }
                if free_points[targets] == 0 || !result.enough {
                    pairs.dropped.push(row);
                    continue;
                }
                members.clear();
                let neighbours = result.neighbours.iter();
                members.extend(neighbours.map(|&(squared, target)| (squared, member(target))));
                let first = pairs.matched.len();
                self.add(&mut pairs, row, &mut members, result.last);
                for &member in &pairs.matched[first..] {
                    free[member] = false;
                    pools[targets].remove(self.position[member] as usize);
                    free_points[targets] -= 1;
                }
            }
            if !progress(turn * AHEAD + rows.len(), total) {
                return None;
            }
        }
        Some(pairs)
    }

    /// Finds the neighbours of each row among the units that are free.
    fn search_free(&self, rows: &[usize], pools: &[Pool; 2], free: &[bool]) -> Vec<SearchResult> {
        let results = rows.iter().map(|_| SearchResult::default());
        let mut results: Vec<SearchResult> = results.collect();
        for arm in [false, true] {
            let admitted = |point: usize, target: usize| {
                let other = self.pool(!arm).members(target)[0] as usize;
                let weight = self.admitted(arm, point, target);
                weight.filter(|_| free[other])
            };
            let search = self.search(&pools[usize::from(!arm)], &admitted);
            let (mut queries, mut places) = (Vec::new(), Vec::new());
            for (&row, place) in rows.iter().zip(&mut results) {
                if self.problem.treated[row] == arm {
                    let point = self.position[row] as usize;
                    queries.push(self.query(arm, point, !arm, self.matches()));
                    places.push(place);
                }
            }
            for (place, result) in places.into_iter().zip(search.run(&queries)) {
                *place = result;
            }
        }
        results
    }
}
