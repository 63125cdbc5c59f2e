//! The neighbours of one query: the nearest that are needed, and all that tie with the last.

/// Neighbours as they are found.
#[derive(Default)]
pub struct Neighbours {
    /// Squared distance and point, in the order of the points once the search has ended.
    pub found: Vec<(f64, u32)>,
    /// The nearest of the needed weight: squared distance and weight, ascending.
    nearest: Vec<(f64, f64)>,
    weight: f64,
    needed: f64,
    tolerance: f64,
    /// The squared distance of the last that is needed, as far as known.
    last: f64,
}

impl Neighbours {
    /// Forgets everything. No neighbour that is needed lies further than `bound`.
    pub fn start(&mut self, needed: f64, tolerance: f64, bound: f64) {
        self.found.clear();
        self.nearest.clear();
        self.weight = 0.0;
        self.needed = needed;
        self.tolerance = tolerance;
        self.last = bound;
    }

    /// How far a neighbour may lie.
    pub fn reach(&self) -> f64 {
        self.last + self.tolerance
    }

    /// Takes a neighbour; answers how far further ones may lie.
    pub fn take(&mut self, squared: f64, point: usize, weight: f64) -> f64 {
        self.found.push((squared, super::units::small(point)));
        if squared <= self.last && (squared < self.last || self.weight < self.needed) {
            let place = self.nearest.partition_point(|&(near, _)| near <= squared);
            self.nearest.insert(place, (squared, weight));
            self.weight += weight;
            while let Some(&(_, furthest)) = self.nearest.last() {
                if self.weight - furthest < self.needed {
                    break;
                }
                self.weight -= furthest;
                self.nearest.pop();
            }
            if self.weight >= self.needed {
                self.last = self.nearest.last().map_or(self.last, |&(last, _)| last);
            }
        }
        self.reach()
    }

    /// Leaves those that are needed and those that tie; answers whether there were enough.
    pub fn end(&mut self) -> bool {
        let enough = self.weight >= self.needed;
        if !enough {
            self.last = f64::INFINITY;
        }
        let reach = self.reach();
        self.found.retain(|&(squared, _)| squared <= reach);
        enough
    }
}
