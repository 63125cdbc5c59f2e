//! Pairs of smallest total cost in a sparse graph of two arms, in which each unit has its degree.
//!
//! A unit is in at least `minimum` and at most `maximum` pairs. A minimum-cost flow is found by
//! successive shortest paths with prices (Ahuja, Magnanti and Orlin 1993, Network Flows, section
//! 9.7). Prices and flow survive when pairs join the graph, so that later solutions are cheap: the
//! caller prices all other pairs, and adds those that are too cheap.
//!
//! A pair carries a unit of flow from the first to the second arm. Besides the units there is the
//! *ground*, which supplies and takes any flow. Every search for a path begins at a unit with a
//! surplus or a shortage, and ends at a unit with the opposite, or at the ground.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::to_u32;

/// How many pairs the units of an arm have. A unit stands for one or more equal rows.
#[derive(Clone, Debug)]
pub struct Degrees {
    /// Smallest number of pairs of each unit.
    pub minimum: Vec<i64>,
    /// Largest number of pairs of each unit.
    pub maximum: Vec<i64>,
    /// Number of rows of each unit. Two units have at most one pair for each pair of rows.
    pub rows: Vec<i64>,
    /// Number of units with a minimum of 1 that may be in no pair.
    pub max_omitted: i64,
}

/// A candidate pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arc {
    /// Position in the first arm.
    pub first: u32,
    /// Position in the second arm.
    pub second: u32,
    /// Cost of the pair, at least 0.
    pub cost: i64,
    /// How often the pair is in the solution.
    pub flow: i64,
    /// Whether the pair has joined the graph, but no search has seen it.
    is_waiting: bool,
}

/// One step of a path, which changes the flow.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Use an unused pair.
    Use(u32),
    /// Leave out a used pair.
    Leave(u32),
    /// Change the number of pairs of a unit beyond its minimum.
    Spare(u32, i64),
    /// Change the number of pairs that a unit lacks.
    Missing(u32, i64),
    /// Omit a unit, or stop omitting it.
    Omit(u32, bool),
    /// Change the number of omitted units of an arm.
    Total(usize, i64),
}

/// The graph with its flow and its prices.
pub struct PairFlow {
    /// Numbers of units of both arms.
    sizes: [usize; 2],
    degrees: [Degrees; 2],
    /// Cost of a pair that a unit lacks. The last missing pair of each row costs twice as much, if
    /// a row has several pairs.
    penalty: i64,
    /// Sorted by first, then by second unit.
    arcs: Vec<Arc>,
    /// Index of the first arc of each unit of the first arm.
    first_starts: Vec<usize>,
    /// Arcs of each unit of the second arm, and the index of the first of them.
    second_arcs: Vec<u32>,
    second_starts: Vec<usize>,
    /// Number of pairs of a unit beyond its minimum.
    spare: Vec<i64>,
    missing: Vec<i64>,
    is_omitted: Vec<bool>,
    omitted_counts: [i64; 2],
    /// Whether units may be omitted. All units get pairs first, because the searches are then short.
    may_omit: bool,
    /// Price of each node. The cost of an open arc, plus the price of its tail, minus the price of
    /// its head, is at least 0.
    prices: Vec<i64>,
    /// Flow that waits at each node; negative for a shortage.
    surplus: Vec<i64>,
    /// Nodes that may have a surplus or a shortage, and arcs that wait.
    pending_nodes: Vec<u32>,
    pending_arcs: Vec<u32>,
    search: Memory,
}

/// Memory of a search, kept for the next search.
#[derive(Default)]
struct Memory {
    distance: Vec<i64>,
    parent: Vec<(u32, Step)>,
    /// Number of the search that reached the node last, and of the search that settled it.
    reached: Vec<u32>,
    settled_in: Vec<u32>,
    settled: Vec<u32>,
    heap: BinaryHeap<Reverse<(i64, u32)>>,
    number: u32,
    /// For each arm, the unit that paths reach next from the node of omitted units.
    next_omitted: [u32; 2],
    /// The end that is nearest so far, and its distance.
    bound: i64,
    end: usize,
}

impl PairFlow {
    /// Returns a graph without pairs, in which every unit waits for its minimum.
    #[must_use]
    pub fn new(first: Degrees, second: Degrees, penalty: i64) -> Self {
        let sizes = [first.minimum.len(), second.minimum.len()];
        let units = sizes[0] + sizes[1];
        let nodes = units + 3;
        let supply = first.minimum.iter().copied();
        let demand = second.minimum.iter().map(|&minimum| -minimum);
        let mut surplus: Vec<i64> = supply.chain(demand).collect();
        surplus.resize(nodes, 0);
        Self {
            sizes,
            degrees: [first, second],
            penalty,
            arcs: Vec::new(),
            first_starts: vec![0; sizes[0] + 1],
            second_arcs: Vec::new(),
            second_starts: vec![0; sizes[1] + 1],
            spare: vec![0; units],
            missing: vec![0; units],
            is_omitted: vec![false; units],
            omitted_counts: [0, 0],
            may_omit: false,
            prices: vec![0; nodes],
            surplus,
            // The last node comes first.
            pending_nodes: (0..to_u32(units)).rev().collect(),
            pending_arcs: Vec::new(),
            search: Memory {
                distance: vec![0; nodes],
                parent: vec![(0, Step::Total(0, 0)); nodes],
                reached: vec![0; nodes],
                settled_in: vec![0; nodes],
                ..Memory::default()
            },
        }
    }

    /// Adds pairs to the graph, which must not be in it: first unit, second unit, cost.
    pub fn add(&mut self, pairs: impl IntoIterator<Item = (u32, u32, i64)>) {
        self.arcs
            .extend(pairs.into_iter().map(|(first, second, cost)| Arc {
                first,
                second,
                cost,
                flow: 0,
                is_waiting: true,
            }));
        self.arcs
            .sort_unstable_by_key(|arc| (arc.first, arc.second));
        let counts = |size: usize, unit: &dyn Fn(&Arc) -> u32| {
            let mut starts = vec![0; size + 1];
            for arc in &self.arcs {
                starts[unit(arc) as usize + 1] += 1;
            }
            for index in 0..size {
                starts[index + 1] += starts[index];
            }
            starts
        };
        self.first_starts = counts(self.sizes[0], &|arc| arc.first);
        self.second_starts = counts(self.sizes[1], &|arc| arc.second);
        let mut next = self.second_starts.clone();
        self.second_arcs = vec![0; self.arcs.len()];
        for (index, arc) in (0..).zip(&self.arcs) {
            let place = &mut next[arc.second as usize];
            self.second_arcs[*place] = index;
            *place += 1;
        }
        let mut waiting = Vec::new();
        for index in 0..to_u32(self.arcs.len()) {
            if self.arcs[index as usize].is_waiting {
                let reduced = self.reduced_cost(index);
                if reduced < 0 {
                    waiting.push((Reverse(reduced), Reverse(index)));
                } else {
                    self.arcs[index as usize].is_waiting = false;
                }
            }
        }
        // The cheapest pair comes last, and is the first to be taken.
        waiting.sort_unstable();
        self.pending_arcs = waiting
            .into_iter()
            .map(|(_, Reverse(index))| index)
            .collect();
    }

    /// Searches at most this many paths. Returns whether the flow is optimal.
    pub fn solve(&mut self, max_searches: usize) -> bool {
        for _ in 0..max_searches {
            if let Some(&node) = self.pending_nodes.last() {
                match self.surplus[node as usize].signum() {
                    0 => {
                        self.pending_nodes.pop();
                    }
                    sign => self.send(node as usize, sign),
                }
            } else if let Some(index) = self.pending_arcs.pop() {
                let is_cheap = self.reduced_cost(index) < 0;
                let capacity = self.capacity(index);
                let arc = &mut self.arcs[index as usize];
                arc.is_waiting = false;
                if is_cheap {
                    arc.flow = capacity;
                    let nodes = [arc.first as usize, self.sizes[0] + arc.second as usize];
                    self.surplus[nodes[0]] -= capacity;
                    self.surplus[nodes[1]] += capacity;
                    self.pending_nodes.extend(nodes.map(to_u32));
                }
            } else if !self.may_omit {
                self.open_omission();
            } else {
                self.tighten_prices();
                return true;
            }
        }
        false
    }

    /// The pairs of the graph, sorted by first, then by second unit.
    #[must_use]
    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// The prices of the units of an arm.
    #[must_use]
    pub fn prices(&self, arm: usize) -> &[i64] {
        &self.prices[self.nodes_of(arm)]
    }

    /// The numbers of pairs that the units of an arm lack.
    #[must_use]
    pub fn missing(&self, arm: usize) -> &[i64] {
        &self.missing[self.nodes_of(arm)]
    }

    fn nodes_of(&self, arm: usize) -> std::ops::Range<usize> {
        let start = arm * self.sizes[0];
        start..start + self.sizes[arm]
    }

    fn reduced_cost(&self, index: u32) -> i64 {
        let arc = &self.arcs[index as usize];
        let second = self.sizes[0] + arc.second as usize;
        arc.cost + self.prices[arc.first as usize] - self.prices[second]
    }

    /// The largest number of times that a pair can be in a solution.
    fn capacity(&self, index: u32) -> i64 {
        let arc = &self.arcs[index as usize];
        let [first, second] = &self.degrees;
        let units = [arc.first as usize, arc.second as usize];
        (first.rows[units[0]] * second.rows[units[1]])
            .min(first.maximum[units[0]])
            .min(second.maximum[units[1]])
    }

    fn ground(&self) -> usize {
        self.sizes[0] + self.sizes[1] + 2
    }

    /// The node through which omitted units of an arm go to the ground.
    fn omission(&self, arm: usize) -> usize {
        self.sizes[0] + self.sizes[1] + arm
    }

    fn arm_of(&self, unit: usize) -> usize {
        usize::from(unit >= self.sizes[0])
    }

    fn minimum(&self, unit: usize) -> i64 {
        let arm = self.arm_of(unit);
        self.degrees[arm].minimum[unit - arm * self.sizes[0]]
    }

    /// The largest number of pairs of a unit beyond its minimum; 0 for a unit that takes no part.
    fn max_spare(&self, unit: usize) -> i64 {
        let arm = self.arm_of(unit);
        let degrees = &self.degrees[arm];
        let unit = unit - arm * self.sizes[0];
        (degrees.maximum[unit] - degrees.minimum[unit]).max(0)
    }

    /// The number of pairs that a unit may lack before a row has none; if a row has one pair at
    /// most, all pairs of the unit.
    fn simple_missing(&self, unit: usize) -> i64 {
        let arm = self.arm_of(unit);
        let degrees = &self.degrees[arm];
        let unit = unit - arm * self.sizes[0];
        let (minimum, rows) = (degrees.minimum[unit], degrees.rows[unit]);
        if minimum > rows {
            minimum - rows
        } else {
            minimum
        }
    }

    fn can_be_omitted(&self, unit: usize) -> bool {
        self.may_omit && self.degrees[self.arm_of(unit)].max_omitted > 0 && self.minimum(unit) == 1
    }

    /// The cost of the pair that a unit lacks, if it lacks this many.
    fn missing_cost(&self, unit: usize, count: i64) -> i64 {
        if count > self.simple_missing(unit) {
            2 * self.penalty
        } else {
            self.penalty
        }
    }

    /// Sends flow along the cheapest path from a node with a surplus (sign 1), or to a node with a
    /// shortage (sign -1).
    fn send(&mut self, start: usize, sign: i64) {
        self.start_search(start);
        // In a search from a surplus, units of the first arm use pairs, and units of the second arm
        // leave pairs out. In a search from a shortage, this is reversed.
        let using_arm = usize::from(sign < 0);
        while let Some(Reverse((distance, node))) = self.search.heap.pop() {
            if distance >= self.search.bound {
                break;
            }
            let node = node as usize;
            if self.search.settled_in[node] == self.search.number {
                continue;
            }
            self.search.settled_in[node] = self.search.number;
            self.search.settled.push(to_u32(node));
            for arm in [0, 1] {
                if self.search.next_omitted[arm] == to_u32(node) {
                    self.relax_next_omitted(arm, sign, arm == using_arm);
                }
            }
            if node >= self.sizes[0] + self.sizes[1] {
                self.relax_omission(node, sign, using_arm);
            } else if self.arm_of(node) == using_arm {
                self.relax_using(node, sign);
            } else {
                self.relax_leaving(node, sign);
            }
        }
        let end = self.search.end;
        debug_assert!(
            self.search.bound < i64::MAX,
            "every unit reaches the ground"
        );
        self.update_prices(sign);
        let mut amount = self.surplus[start].abs();
        if end != self.ground() {
            amount = amount.min(self.surplus[end].abs());
        }
        amount = self
            .path(start, end)
            .fold(amount, |amount, step| amount.min(self.room(step)));
        let steps: Vec<Step> = self.path(start, end).collect();
        for step in steps {
            self.apply(step, amount);
        }
        self.surplus[start] -= sign * amount;
        if end != self.ground() {
            self.surplus[end] += sign * amount;
        }
    }

    /// The steps of the path that was found, the last step first.
    fn path(&self, start: usize, end: usize) -> impl Iterator<Item = Step> + '_ {
        let mut node = end;
        std::iter::from_fn(move || {
            (node != start).then(|| {
                let (previous, step) = self.search.parent[node];
                node = previous as usize;
                step
            })
        })
    }

    /// How much flow can go over a step at its cost.
    fn room(&self, step: Step) -> i64 {
        match step {
            Step::Use(index) => self.capacity(index) - self.arcs[index as usize].flow,
            Step::Leave(index) => self.arcs[index as usize].flow,
            Step::Spare(unit, change) => {
                let (unit, spare) = (unit as usize, self.spare[unit as usize]);
                if change > 0 {
                    self.max_spare(unit) - spare
                } else {
                    spare
                }
            }
            Step::Missing(unit, change) => {
                let (unit, missing) = (unit as usize, self.missing[unit as usize]);
                let simple = self.simple_missing(unit);
                match (change > 0, missing < simple, missing <= simple) {
                    (true, true, _) => simple - missing,
                    (true, false, _) => self.minimum(unit) - missing,
                    (false, _, true) => missing,
                    (false, _, false) => missing - simple,
                }
            }
            Step::Omit(..) => 1,
            Step::Total(arm, change) => {
                let count = self.omitted_counts[arm];
                if change > 0 {
                    self.degrees[arm].max_omitted - count
                } else {
                    count
                }
            }
        }
    }

    fn apply(&mut self, step: Step, amount: i64) {
        match step {
            Step::Use(index) => self.arcs[index as usize].flow += amount,
            Step::Leave(index) => self.arcs[index as usize].flow -= amount,
            Step::Spare(unit, change) => self.spare[unit as usize] += change * amount,
            Step::Missing(unit, change) => self.missing[unit as usize] += change * amount,
            Step::Omit(unit, is_omitted) => self.is_omitted[unit as usize] = is_omitted,
            Step::Total(arm, change) => self.omitted_counts[arm] += change * amount,
        }
    }

    /// Lets the nodes of omitted units send all flow that they may; it goes back if it saves nothing.
    fn open_omission(&mut self) {
        self.may_omit = true;
        for (arm, sign) in [(0, -1), (1, 1)] {
            let count = self.degrees[arm].max_omitted;
            if count == 0 {
                continue;
            }
            let node = self.omission(arm);
            let units = self.nodes_of(arm).filter(|&unit| self.minimum(unit) == 1);
            let highest = units.map(|unit| sign * self.prices[unit]).max();
            self.prices[node] = sign * highest.unwrap_or(0).max(0);
            self.omitted_counts[arm] = count;
            self.surplus[node] += sign * count;
            self.pending_nodes.push(to_u32(node));
        }
    }

    fn start_search(&mut self, start: usize) {
        let search = &mut self.search;
        search.number += 1;
        search.heap.clear();
        search.settled.clear();
        search.bound = i64::MAX;
        search.next_omitted = [u32::MAX; 2];
        search.end = start;
        search.distance[start] = 0;
        search.reached[start] = search.number;
        search.heap.push(Reverse((0, to_u32(start))));
    }

    /// Continues paths at a unit that uses one more pair, or one less beyond its minimum.
    fn relax_using(&mut self, unit: usize, sign: i64) {
        let arm = self.arm_of(unit);
        let ground = self.ground();
        if self.spare[unit] > 0 {
            self.relax(unit, ground, 0, Step::Spare(to_u32(unit), -1), sign);
        }
        if self.missing[unit] < self.minimum(unit) {
            let cost = self.missing_cost(unit, self.missing[unit] + 1);
            self.relax(unit, ground, cost, Step::Missing(to_u32(unit), 1), sign);
        }
        if self.can_be_omitted(unit) && !self.is_omitted[unit] {
            let node = self.omission(arm);
            self.relax(unit, node, 0, Step::Omit(to_u32(unit), true), sign);
        }
        for place in self.arc_places(unit) {
            let (index, arc) = self.arc_at(arm, place);
            if !arc.is_waiting && arc.flow < self.capacity(index) {
                let other = self.other_end(arm, &arc);
                self.relax(unit, other, arc.cost, Step::Use(index), sign);
            }
        }
    }

    /// Continues paths at a unit that has one pair too many.
    fn relax_leaving(&mut self, unit: usize, sign: i64) {
        let arm = self.arm_of(unit);
        let ground = self.ground();
        if self.spare[unit] < self.max_spare(unit) {
            self.relax(unit, ground, 0, Step::Spare(to_u32(unit), 1), sign);
        }
        if self.missing[unit] > 0 {
            let cost = -self.missing_cost(unit, self.missing[unit]);
            self.relax(unit, ground, cost, Step::Missing(to_u32(unit), -1), sign);
        }
        if self.is_omitted[unit] {
            let node = self.omission(arm);
            self.relax(unit, node, 0, Step::Omit(to_u32(unit), false), sign);
        }
        for place in self.arc_places(unit) {
            let (index, arc) = self.arc_at(arm, place);
            if arc.flow > 0 {
                let other = self.other_end(arm, &arc);
                self.relax(unit, other, -arc.cost, Step::Leave(index), sign);
            }
        }
    }

    /// Continues paths at the node of omitted units.
    fn relax_omission(&mut self, node: usize, sign: i64, using_arm: usize) {
        let arm = node - self.sizes[0] - self.sizes[1];
        let ground = self.ground();
        let is_using = arm == using_arm;
        let count = self.omitted_counts[arm];
        if is_using && count < self.degrees[arm].max_omitted {
            self.relax(node, ground, 0, Step::Total(arm, 1), sign);
        }
        if !is_using && count > 0 {
            self.relax(node, ground, 0, Step::Total(arm, -1), sign);
        }
        self.relax_next_omitted(arm, sign, is_using);
    }

    /// Continues paths at the nearest unit that the node of omitted units has not reached. So a
    /// search does not touch all units.
    fn relax_next_omitted(&mut self, arm: usize, sign: i64, is_using: bool) {
        let units = self.nodes_of(arm).filter(|&unit| {
            self.is_omitted[unit] == is_using
                && self.can_be_omitted(unit)
                && self.search.settled_in[unit] != self.search.number
        });
        // The reduced cost of a step to a unit falls with sign * price.
        let Some(unit) = units.max_by_key(|&unit| (sign * self.prices[unit], Reverse(unit))) else {
            return;
        };
        self.search.next_omitted[arm] = to_u32(unit);
        let node = self.omission(arm);
        let step = Step::Omit(to_u32(unit), !is_using);
        self.relax(node, unit, 0, step, sign);
    }

    fn arc_places(&self, unit: usize) -> std::ops::Range<usize> {
        if unit < self.sizes[0] {
            self.first_starts[unit]..self.first_starts[unit + 1]
        } else {
            let unit = unit - self.sizes[0];
            self.second_starts[unit]..self.second_starts[unit + 1]
        }
    }

    fn arc_at(&self, arm: usize, place: usize) -> (u32, Arc) {
        let index = if arm == 0 {
            to_u32(place)
        } else {
            self.second_arcs[place]
        };
        (index, self.arcs[index as usize])
    }

    fn other_end(&self, arm: usize, arc: &Arc) -> usize {
        if arm == 0 {
            self.sizes[0] + arc.second as usize
        } else {
            arc.first as usize
        }
    }

    /// Records a path to `next` over a node, if it is the shortest so far and may reach an end.
    fn relax(&mut self, node: usize, next: usize, cost: i64, step: Step, sign: i64) {
        let reduced = cost + sign * (self.prices[node] - self.prices[next]);
        debug_assert!(reduced >= 0, "prices fit the flow");
        let distance = self.search.distance[node] + reduced;
        let search = &mut self.search;
        if distance >= search.bound
            || (search.reached[next] == search.number && distance >= search.distance[next])
        {
            return;
        }
        search.reached[next] = search.number;
        search.distance[next] = distance;
        search.parent[next] = (to_u32(node), step);
        if next == self.sizes[0] + self.sizes[1] + 2 || sign * self.surplus[next] < 0 {
            search.bound = distance;
            search.end = next;
        } else {
            search.heap.push(Reverse((distance, to_u32(next))));
        }
    }

    /// Moves the prices of the settled nodes, so that the path costs nothing.
    fn update_prices(&mut self, sign: i64) {
        for &node in &self.search.settled {
            let node = node as usize;
            self.prices[node] += sign * (self.search.distance[node] - self.search.bound);
        }
    }

    /// Raises the prices of the first arm and lowers those of the second as far as possible, so that
    /// few pairs outside the graph seem cheap.
    fn tighten_prices(&mut self) {
        for arm in [0, 1] {
            let sign = if arm == 0 { 1 } else { -1 };
            for unit in self.nodes_of(arm) {
                // Limits of sign * price, from arcs that begin at the ground and end at the unit
                // (first arm), or begin at the unit and end at the ground (second arm).
                let mut limit = i64::MAX;
                if self.spare[unit] < self.max_spare(unit) {
                    limit = limit.min(0);
                }
                if self.missing[unit] > 0 {
                    limit = limit.min(-self.missing_cost(unit, self.missing[unit]));
                }
                if self.is_omitted[unit] {
                    limit = limit.min(sign * self.prices[self.omission(arm)]);
                }
                for place in self.arc_places(unit) {
                    let (_, arc) = self.arc_at(arm, place);
                    if arc.flow > 0 {
                        let other = self.other_end(arm, &arc);
                        limit = limit.min(sign * self.prices[other] - arc.cost);
                    }
                }
                if limit < i64::MAX {
                    self.prices[unit] = sign * limit;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
