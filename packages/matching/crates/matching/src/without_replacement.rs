//! Matching without replacement: units are matched in turn, to units that are still free.

use crate::matcher::{Matcher, QUERY_CHUNK};
use crate::neighbours::SearchResult;
use crate::parallel::{Progress, parallel_map};
use crate::pool::Pool;
use crate::problem::Pairs;

/// Number of units of a round. All threads search together for the units of a round.
const UNITS_PER_ROUND: usize = 8 * QUERY_CHUNK;

impl Matcher {
    /// Returns the pairs of matching without replacement; `None` if `progress` stops the search. If
    /// a unit takes a neighbour of a later unit, the search for the later unit is repeated.
    pub(crate) fn pairs_without_replacement(&self, progress: &Progress<'_>) -> Option<Pairs> {
        let mut pairs = Pairs::default();
        let mut free = vec![true; self.problem.rows()];
        let mut pools = self.pools.clone();
        let mut free_points = [false, true].map(|arm| self.pool(arm).point_count);
        let mut members = Vec::new();
        let treated = &self.problem.treated;
        let is_matched = |row: &usize| self.problem.estimand.matches_arm(treated[*row]);
        let rows: Vec<usize> = (0..self.problem.rows()).filter(is_matched).collect();
        let total = rows.len();
        for (round, rows) in rows.chunks(UNITS_PER_ROUND).enumerate() {
            let threads = self.problem.threads;
            let results = parallel_map(threads, rows.len(), QUERY_CHUNK, &|_, _| true, |range| {
                self.search_free(&rows[range], &pools, &free)
            })?;
            for (&row, mut result) in rows.iter().zip(results.into_iter().flatten()) {
                let arm = self.problem.treated[row];
                let targets = usize::from(!arm);
                let member = |target: u32| self.pools[targets].members(target as usize)[0] as usize;
                let mut neighbours = result.neighbours.iter();
                let is_stale = neighbours.any(|&(_, target)| !free[member(target)]);
                if free_points[targets] > 0 && is_stale {
                    let fresh = self.search_free(&[row], &pools, &free).pop();
                    result = fresh.unwrap_or_default();
                }
                if free_points[targets] == 0 || !result.has_enough {
                    pairs.dropped.push(row);
                    continue;
                }
                members.clear();
                let neighbours = result.neighbours.iter();
                members.extend(neighbours.map(|&(squared, target)| (squared, member(target))));
                let first_new = pairs.matched.len();
                self.add_pairs(&mut pairs, row, &mut members, result.last_distance);
                for &member in &pairs.matched[first_new..] {
                    free[member] = false;
                    pools[targets].remove(self.point_of_row[member] as usize);
                    free_points[targets] -= 1;
                }
            }
            if !progress(round * UNITS_PER_ROUND + rows.len(), total) {
                return None;
            }
        }
        Some(pairs)
    }

    fn search_free(&self, rows: &[usize], pools: &[Pool; 2], free: &[bool]) -> Vec<SearchResult> {
        let results = rows.iter().map(|_| SearchResult::default());
        let mut results: Vec<SearchResult> = results.collect();
        for arm in [false, true] {
            let weight_of = |point: usize, target: usize| {
                let other = self.pool(!arm).members(target)[0] as usize;
                let weight = self.admitted_weight(arm, point, target);
                weight.filter(|_| free[other])
            };
            let search = self.search(&pools[usize::from(!arm)], &weight_of);
            let (mut queries, mut slots) = (Vec::new(), Vec::new());
            for (&row, slot) in rows.iter().zip(&mut results) {
                if self.problem.treated[row] == arm {
                    let point = self.point_of_row[row] as usize;
                    queries.push(self.query(arm, point, !arm, self.match_count()));
                    slots.push(slot);
                }
            }
            for (slot, result) in slots.into_iter().zip(search.run(&queries)) {
                *slot = result;
            }
        }
        results
    }
}
