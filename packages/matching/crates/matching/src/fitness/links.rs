//! Links between points under a candidate, in batches.

use crate::fitness::blocks::{Axes, Blocks, Stretched};
use crate::fitness::nearest::{NOBODY, Nearest, Search};
use crate::fitness::several::SeveralNearest;
use crate::fitness::units::{Calipers, Units};
use crate::instructions::Instructions;
use crate::problem::{Problem, small};

/// Links of a batch, or a few more: memory stays linear however many tie.
const BATCH: usize = 1 << 20;

/// Pairs of the rows of two points.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// A point of treated units.
    pub treated: u32,
    /// A point of controls.
    pub control: u32,
    /// Weight of the pairs together.
    pub weight: f64,
    /// Number of pairs of rows.
    pub count: u64,
}

/// The search for neighbours of points.
pub struct Linker {
    arms: [Blocks; 2],
    calipers: Calipers,
    /// Whether the nearest point is enough for every point.
    one_is_enough: bool,
    /// A neighbour of each point under equal weights.
    first_guess: Vec<u32>,
    instructions: Instructions,
}

/// Memory of a thread for searching; it carries guesses from one candidate to the next.
#[derive(Default)]
pub struct Workspace {
    stretched: [Stretched; 2],
    nearest: Nearest,
    several: SeveralNearest,
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
            calipers: Calipers::new(problem, units),
            one_is_enough: lightest >= problem.matches as f64,
            first_guess: vec![NOBODY; units.points()],
            instructions,
        };
        let mut workspace = Workspace::default();
        let equal = vec![1.0; units.columns];
        linker.search(problem, units, &equal, &mut workspace, &mut |_| ());
        linker.first_guess = workspace.nearest.guess;
        linker
    }

    /// Reports all links under the candidate in batches, in a fixed order.
    pub fn search(
        &self,
        problem: &Problem,
        units: &Units,
        weights: &[f64],
        workspace: &mut Workspace,
        tell: &mut dyn FnMut(&[Link]),
    ) {
        let axes = Axes::of(weights, &self.arms);
        let asking = problem.estimand.arms();
        for &arm in &asking {
            let target = usize::from(!arm);
            self.arms[target].stretch(&axes, &mut workspace.stretched[target]);
        }
        if workspace.nearest.guess.is_empty() {
            workspace.nearest.guess.clone_from(&self.first_guess);
        }
        workspace.links.clear();
        let search = Search {
            units,
            arms: &self.arms,
            stretched: &workspace.stretched,
            axes: &axes,
            calipers: &self.calipers,
            tolerance: problem.reach(0.0),
            instructions: self.instructions,
        };
        if self.one_is_enough {
            let is_complete = match asking[..] {
                [arm] => workspace.nearest.search::<false>(&search, arm),
                _ => workspace.nearest.search::<true>(&search, true),
            };
            if is_complete {
                for arm in asking {
                    for point in units.arm(arm) {
                        let neighbours = workspace.nearest.of(point);
                        link(units, arm, point, neighbours, &mut workspace.links);
                    }
                }
                tell(&workspace.links);
                return;
            }
        }
        let drops = problem.caliper.is_some();
        for arm in asking {
            let Workspace { several, links, .. } = workspace;
            several.search(
                &search,
                arm,
                problem.matches,
                drops,
                &mut |point, neighbours| {
                    link(units, arm, point, neighbours, links);
                    if links.len() >= BATCH {
                        tell(links);
                        links.clear();
                    }
                },
            );
        }
        tell(&workspace.links);
    }
}

/// Links a point to its neighbours, which share its weight.
fn link(units: &Units, arm: bool, point: usize, neighbours: &[u32], links: &mut Vec<Link>) {
    let own_count = u64::from(units.count[point]);
    let own_weight = units.weight[point];
    let mut total = 0.0;
    let mut rows = 0;
    for &other in neighbours {
        total += units.weight[other as usize];
        rows += u64::from(units.count[other as usize]);
    }
    for &other in neighbours {
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
