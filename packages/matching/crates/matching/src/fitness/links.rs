//! Matches points by a candidate's weights, and reports the matches as links, in batches.

use crate::fitness::blocks::{Blocks, ColumnScale, StretchedPoints};
use crate::fitness::nearest::{NO_GUESS, Nearest, Search};
use crate::fitness::several::SeveralNearest;
use crate::fitness::units::{Calipers, Units};
use crate::instructions::Instructions;
use crate::problem::{Problem, to_u32};

/// Number of links after which a batch is reported, so that many ties need little memory.
const MIN_BATCH_LINKS: usize = 1 << 20;

/// All pairs between the rows of two points.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Index of a point of treated units.
    pub treated: u32,
    /// Index of a point of controls.
    pub control: u32,
    /// Total weight of the pairs.
    pub weight: f64,
    /// Number of pairs of rows.
    pub count: u64,
}

/// Finds the links of candidates.
pub struct Linker {
    arms: [Blocks; 2],
    calipers: Calipers,
    /// Whether one neighbour has enough weight for every point.
    one_is_enough: bool,
    /// A neighbour of each point by equal weights of the columns.
    first_guess: Vec<u32>,
    instructions: Instructions,
}

/// The memory of a thread for searching. It keeps neighbours as guesses for the next candidate.
#[derive(Default)]
pub struct Workspace {
    stretched: [StretchedPoints; 2],
    nearest: Nearest,
    several: SeveralNearest,
    links: Vec<Link>,
}

impl Linker {
    /// Arranges the points in blocks, and guesses neighbours by equal weights.
    pub fn new(problem: &Problem, units: &Units, instructions: Instructions) -> Self {
        let arms = [false, true].map(|arm| {
            let points = units.arm(arm);
            Blocks::new(
                &units.standardised[points.start * units.columns..points.end * units.columns],
                units.columns,
            )
        });
        let lightest = units.weights.iter().copied().fold(f64::INFINITY, f64::min);
        let mut linker = Self {
            arms,
            calipers: Calipers::new(problem, units),
            one_is_enough: lightest >= problem.matches as f64,
            first_guess: vec![NO_GUESS; units.points()],
            instructions,
        };
        let mut workspace = Workspace::default();
        let equal_weights = vec![1.0; units.columns];
        linker.search(problem, units, &equal_weights, &mut workspace, &mut |_| ());
        linker.first_guess = workspace.nearest.guess;
        linker
    }

    /// Reports all links of a candidate with these weights, in batches and in a fixed order.
    /// `Nearest` is the faster search, but gives up if there are too many ties.
    pub fn search(
        &self,
        problem: &Problem,
        units: &Units,
        weights: &[f64],
        workspace: &mut Workspace,
        report: &mut dyn FnMut(&[Link]),
    ) {
        let scale = ColumnScale::new(weights, &self.arms);
        let arms = problem.estimand.matched_arms();
        for &arm in &arms {
            let target = usize::from(!arm);
            self.arms[target].stretch(&scale, &mut workspace.stretched[target]);
        }
        if workspace.nearest.guess.is_empty() {
            workspace.nearest.guess.clone_from(&self.first_guess);
        }
        workspace.links.clear();
        let search = Search {
            units,
            arms: &self.arms,
            stretched: &workspace.stretched,
            scale: &scale,
            calipers: &self.calipers,
            tolerance: problem.tie_limit(0.0),
            instructions: self.instructions,
        };
        if self.one_is_enough {
            let is_complete = match arms[..] {
                [arm] => workspace.nearest.search::<false>(&search, arm),
                _ => workspace.nearest.search::<true>(&search, true),
            };
            if is_complete {
                for arm in arms {
                    for point in units.arm(arm) {
                        let neighbours = workspace.nearest.neighbours_of(point);
                        add_links(units, arm, point, neighbours, &mut workspace.links);
                    }
                }
                report(&workspace.links);
                return;
            }
        }
        let drops_incomplete = problem.caliper.is_some();
        for arm in arms {
            let Workspace { several, links, .. } = workspace;
            several.search(
                &search,
                arm,
                problem.matches,
                drops_incomplete,
                &mut |point, neighbours| {
                    add_links(units, arm, point, neighbours, links);
                    if links.len() >= MIN_BATCH_LINKS {
                        report(links);
                        links.clear();
                    }
                },
            );
        }
        report(&workspace.links);
    }
}

/// Adds the links of a point to its neighbours, which share the weight of the point.
fn add_links(units: &Units, arm: bool, point: usize, neighbours: &[u32], links: &mut Vec<Link>) {
    let own_count = u64::from(units.row_count[point]);
    let own_weight = units.weights[point];
    let mut total_weight = 0.0;
    let mut total_count = 0;
    for &other in neighbours {
        total_weight += units.weights[other as usize];
        total_count += u64::from(units.row_count[other as usize]);
    }
    for &other in neighbours {
        let count = u64::from(units.row_count[other as usize]);
        let share = if total_weight > 0.0 {
            units.weights[other as usize] / total_weight
        } else {
            count as f64 / total_count as f64
        };
        let (treated, control) = if arm {
            (to_u32(point), other)
        } else {
            (other, to_u32(point))
        };
        links.push(Link {
            treated,
            control,
            weight: own_weight * share,
            count: own_count * count,
        });
    }
}
