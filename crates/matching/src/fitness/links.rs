//! Who is linked to whom under a candidate: neighbours between points, in batches.

use crate::fitness::blocks::{Axes, Blocks, Stretched};
use crate::fitness::fences::Fences;
use crate::fitness::nearest::{NOBODY, Nearest, Search};
use crate::fitness::several::Several;
use crate::fitness::units::{Units, small};
use crate::instructions::Instructions;
use crate::problem::Problem;

/// So many links are told at once, or a few more: memory stays linear whatever ties.
const BATCH: usize = 1 << 20;

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
    fences: Fences,
    /// Whether the nearest point is as many neighbours as anybody needs.
    one_is_enough: bool,
    /// A neighbour of each point under equal weights.
    first_guess: Vec<u32>,
    instructions: Instructions,
}

/// What a thread needs for searching; it carries guesses from one candidate to the next.
#[derive(Default)]
pub struct Room {
    stretched: [Stretched; 2],
    nearest: Nearest,
    several: Several,
    links: Vec<Link>,
}

impl Linker {
    /// Puts the points in place.
    pub fn new(problem: &Problem, units: &Units, instructions: Instructions) -> Self {
        let arms = [false, true].map(|arm| {
            let points = units.arm(arm);
            Blocks::new(
                &units.standard[points.start * units.columns..points.end * units.columns],
                units.columns,
            )
        });
        let lightest = units.weight.iter().copied().fold(f64::INFINITY, f64::min);
        let mut linker = Self {
            arms,
            fences: Fences::new(problem, units),
            one_is_enough: lightest >= problem.matches as f64,
            first_guess: vec![NOBODY; units.points()],
            instructions,
        };
        let mut room = Room::default();
        linker.search(
            problem,
            units,
            &vec![1.0; units.columns],
            &mut room,
            &mut |_| (),
        );
        linker.first_guess = room.nearest.guess;
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
        let axes = Axes::of(weights, &self.arms);
        let asked = [false, true].map(|arm| problem.estimand.queries(arm));
        for arm in [false, true] {
            if asked[usize::from(!arm)] {
                let target = usize::from(arm);
                self.arms[target].stretch(&axes, &mut room.stretched[target]);
            }
        }
        if room.nearest.guess.is_empty() {
            room.nearest.guess.clone_from(&self.first_guess);
        }
        room.links.clear();
        let search = Search {
            units,
            arms: &self.arms,
            stretched: &room.stretched,
            axes: &axes,
            fences: &self.fences,
            tolerance: problem.reach(0.0),
            instructions: self.instructions,
        };
        if self.one_is_enough {
            let found = if asked == [true, true] {
                room.nearest.search::<true>(&search, true)
            } else {
                room.nearest.search::<false>(&search, asked[1])
            };
            if found {
                for arm in [false, true] {
                    if !asked[usize::from(arm)] {
                        continue;
                    }
                    for point in units.arm(arm) {
                        link(units, arm, point, room.nearest.of(point), &mut room.links);
                    }
                }
                tell(&room.links);
                return;
            }
        }
        let drops = problem.caliper.is_some();
        for arm in [false, true] {
            if !asked[usize::from(arm)] {
                continue;
            }
            room.several
                .search(&search, arm, problem.matches, drops, &mut |point, found| {
                    link(units, arm, point, found, &mut room.links);
                    if room.links.len() >= BATCH {
                        tell(&room.links);
                        room.links.clear();
                    }
                });
        }
        tell(&room.links);
    }
}

/// Links a point to its neighbours, which share its weight.
fn link(units: &Units, arm: bool, point: usize, found: &[u32], links: &mut Vec<Link>) {
    let own_count = u64::from(units.count[point]);
    let own_weight = units.weight[point];
    let mut total = 0.0;
    let mut rows = 0;
    for &other in found {
        total += units.weight[other as usize];
        rows += u64::from(units.count[other as usize]);
    }
    for &other in found {
        let count = u64::from(units.count[other as usize]);
        let share = if total > 0.0 {
            units.weight[other as usize] / total
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
