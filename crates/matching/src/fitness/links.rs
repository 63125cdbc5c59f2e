//! Who is linked to whom under a candidate: neighbours between points, in batches.

use crate::fitness::blocks::{Axes, Blocks, Stretched};
use crate::fitness::neighbours::Neighbours;
use crate::fitness::scan::{Hits, TOGETHER, scan};
use crate::fitness::units::{Units, small};
use crate::problem::Problem;

/// So many links are told at once, or a few more: memory stays linear whatever ties.
const BATCH: usize = 1 << 20;
/// A guessed bound is raised by this factor: its rounding must not hide a neighbour.
const CAUTION: f64 = 1.0 + 1e-12;
const NOBODY: u32 = u32::MAX;

/// Pairs of the rows of two points.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// A point of treated units.
    pub treated: u32,
    /// A point of controls.
    pub control: u32,
    /// What the pairs weigh together.
    pub weight: f64,
    /// How many pairs of rows.
    pub count: u64,
}

/// The search for neighbours of points.
pub struct Linker {
    arms: [Blocks; 2],
    /// Columns with a caliper, and their values in units of the caliper's, point after point.
    fences: Vec<(f64, Vec<f64>)>,
    /// A neighbour of each point under equal weights.
    first_guess: Vec<u32>,
}

/// What a thread needs for searching; it carries guesses from one candidate to the next.
#[derive(Default)]
pub struct Room {
    stretched: [Stretched; 2],
    rows: Vec<f64>,
    guess: Vec<u32>,
    neighbours: [Neighbours; TOGETHER],
    links: Vec<Link>,
}

impl Linker {
    /// Puts the points in place.
    pub fn new(problem: &Problem, units: &Units) -> Self {
        let arms = [false, true].map(|arm| {
            let points = units.arm(arm);
            Blocks::new(
                &units.standard[points.start * units.columns..points.end * units.columns],
                units.columns,
            )
        });
        let fences = problem.caliper.as_ref().map_or_else(Vec::new, |caliper| {
            caliper
                .iter()
                .enumerate()
                .filter(|(_, limit)| limit.is_finite())
                .map(|(column, &limit)| {
                    let values = units
                        .row
                        .iter()
                        .map(|&row| problem.x[row as usize * problem.columns + column]);
                    (limit, values.collect())
                })
                .collect()
        });
        let mut linker = Self {
            arms,
            fences,
            first_guess: Vec::new(),
        };
        let mut room = Room::default();
        linker.search(
            problem,
            units,
            &vec![1.0; units.columns],
            &mut room,
            &mut |_| (),
        );
        linker.first_guess = room.guess;
        linker
    }

    /// Tells of all links under the candidate, batch after batch, in one order.
    pub fn search(
        &self,
        problem: &Problem,
        units: &Units,
        weights: &[f64],
        room: &mut Room,
        tell: &mut dyn FnMut(&[Link]),
    ) {
        let axes = Axes::of(weights);
        if room.guess.is_empty() {
            room.guess.clone_from(&self.first_guess);
            room.guess.resize(units.points(), NOBODY);
        }
        room.rows.clear();
        for standard in units.standard.chunks_exact(units.columns) {
            room.rows.extend(axes.stretch(standard));
        }
        room.links.clear();
        for arm in [false, true] {
            if !problem.estimand.queries(arm) {
                continue;
            }
            let target = usize::from(!arm);
            self.arms[target].stretch(&axes, &mut room.stretched[target]);
            let points = units.arm(arm);
            for first in points.clone().step_by(TOGETHER) {
                let asked = TOGETHER.min(points.end - first);
                self.look(problem, units, arm, first, asked, room);
                if room.links.len() >= BATCH {
                    tell(&room.links);
                    room.links.clear();
                }
            }
        }
        tell(&room.links);
    }

    /// Finds the neighbours of some points of the arm that follow each other.
    fn look(
        &self,
        problem: &Problem,
        units: &Units,
        arm: bool,
        first: usize,
        asked: usize,
        room: &mut Room,
    ) {
        let target = usize::from(!arm);
        let others = units.arm(!arm);
        let axes = room.stretched[target].axes;
        let row = |point: usize| point * axes..(point + 1) * axes;
        let needed = problem.matches as f64 - 1e-10;
        let tolerance = problem.reach(0.0);
        let mut queries = [0.0; TOGETHER * MOST_AXES];
        let mut long = Vec::new();
        let queries = if axes <= MOST_AXES {
            &mut queries[..TOGETHER * axes]
        } else {
            long.resize(TOGETHER * axes, 0.0);
            &mut long[..]
        };
        // Whoever is not there reaches nothing.
        let mut reach = [-1.0; TOGETHER];
        for query in 0..asked {
            let own = &room.rows[row(first + query)];
            queries[query * axes..(query + 1) * axes].copy_from_slice(own);
            let guess = room.guess[first + query];
            let mut bound = f64::INFINITY;
            if guess != NOBODY && units.weight[guess as usize] >= needed {
                let both = own.iter().zip(&room.rows[row(guess as usize)]);
                let squared: f64 = both.map(|(own, other)| (own - other).powi(2)).sum();
                bound = squared * CAUTION + f64::MIN_POSITIVE;
            }
            room.neighbours[query].start(needed, tolerance, bound);
            reach[query] = room.neighbours[query].reach();
        }
        let mut heard = Heard {
            linker: self,
            units,
            first,
            offset: others.start,
            neighbours: &mut room.neighbours,
        };
        scan(&room.stretched[target], queries, reach, &mut heard);
        let filtered = problem.caliper.is_some();
        for query in 0..asked {
            let neighbours = &mut room.neighbours[query];
            let enough = neighbours.end();
            let nearest = neighbours
                .found
                .iter()
                .min_by(|left, right| left.0.total_cmp(&right.0));
            room.guess[first + query] = nearest.map_or(NOBODY, |&(_, point)| point);
            if enough || !filtered {
                link(
                    units,
                    arm,
                    first + query,
                    &neighbours.found,
                    &mut room.links,
                );
            }
        }
    }

    /// Whether two points lie no further apart than the caliper in any column.
    fn within_caliper(&self, point: usize, other: usize) -> bool {
        self.fences
            .iter()
            .all(|(limit, values)| (values[point] - values[other]).abs() <= *limit)
    }
}

/// Queries of no more axes need no room of their own.
const MOST_AXES: usize = 32;

struct Heard<'a> {
    linker: &'a Linker,
    units: &'a Units,
    first: usize,
    offset: usize,
    neighbours: &'a mut [Neighbours; TOGETHER],
}

impl Hits for Heard<'_> {
    fn hit(&mut self, query: usize, point: usize, squared: f64) -> f64 {
        let point = point + self.offset;
        let neighbours = &mut self.neighbours[query];
        if !self.linker.within_caliper(self.first + query, point) {
            return neighbours.reach();
        }
        neighbours.take(squared, point, self.units.weight[point])
    }
}

/// Links a point to its neighbours, which share its weight.
fn link(units: &Units, arm: bool, point: usize, found: &[(f64, u32)], links: &mut Vec<Link>) {
    let own_count = u64::from(units.count[point]);
    let own_weight = units.weight[point];
    let of = |values: &[f64], other: u32| values[other as usize];
    let total: f64 = found
        .iter()
        .map(|&(_, other)| of(&units.weight, other))
        .sum();
    let rows: u64 = found
        .iter()
        .map(|&(_, other)| u64::from(units.count[other as usize]))
        .sum();
    for &(_, other) in found {
        let count = u64::from(units.count[other as usize]);
        let share = if total > 0.0 {
            of(&units.weight, other) / total
        } else {
            count as f64 / rows as f64
        };
        let (treated, control) = if arm {
            (small(point), other)
        } else {
            (other, small(point))
        };
        links.push(Link {
            treated,
            control,
            weight: own_weight * share,
            count: own_count * count,
        });
    }
}
