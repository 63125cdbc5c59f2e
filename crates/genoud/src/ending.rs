//! When a search ends (Mebane & Sekhon 2011, section 3: the generation limits and waiting).

use crate::individual::improved;
use crate::options::{Direction, Options};

/// Why a search ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stop {
    /// It waited long enough for an improvement.
    NoImprovement,
    /// It has had all its generations.
    GenerationLimit,
}

/// Counts the generations since something improved.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The limit as it stands; a soft one doubles.
    pub generations: usize,
    /// When the best last improved by more than the tolerance.
    pub peak: usize,
    hard: bool,
    wait: usize,
    tolerance: f64,
    direction: Direction,
    reference: Vec<f64>,
    unimproved: usize,
    waited: usize,
}

impl Ending {
    pub fn new(options: &Options) -> Self {
        Self {
            generations: options.generations,
            peak: 0,
            hard: options.hard_generation_limit,
            wait: options.wait_generations,
            tolerance: options.solution_tolerance,
            direction: options.direction,
            reference: Vec::new(),
            unimproved: 0,
            waited: 0,
        }
    }

    /// Notes the best of a generation; whether it improved on the last that did.
    pub fn note(&mut self, generation: usize, best: &[f64]) -> bool {
        let better = self.reference.is_empty()
            || improved(best, &self.reference, self.direction, self.tolerance);
        if better {
            self.reference = best.to_vec();
            self.peak = generation;
            self.unimproved = 0;
            self.waited = 0;
        } else {
            self.unimproved += 1;
        }
        better
    }

    /// Whether the search ends after this generation; it waits only where `flat` (the gradient
    /// is small, or nobody looked).
    pub fn verdict(&mut self, generation: usize, flat: bool) -> Option<Stop> {
        if self.unimproved > 0 && flat {
            self.waited += 1;
        }
        if self.waited > self.wait {
            return Some(Stop::NoImprovement);
        }
        if generation < self.generations {
            return None;
        }
        if self.hard || self.unimproved > self.wait {
            return Some(Stop::GenerationLimit);
        }
        self.generations *= 2;
        None
    }
}
