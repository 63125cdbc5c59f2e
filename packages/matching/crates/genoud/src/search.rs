//! The search as a dialogue: its steps, the memory of evaluated points, and when it ends.
//!
//! Mebane & Sekhon 2011, section 3.

use std::collections::{HashMap, HashSet};

use crate::domain::Boundary;
use crate::individual::{Individual, compare, improved};
use crate::operators::{Parents, children, mutation_reach};
use crate::options::{Direction, OperatorCounts, Options, Unusable};
use crate::random::Source;

/// The next step of the search.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The values of these points: [`crate::Search::tell`].
    Evaluate(Vec<Vec<f64>>),
    /// Points that a local optimiser is to polish: [`crate::Search::tell_polished`].
    Polish(Vec<Vec<f64>>),
    /// Whether the gradient at this point is small: [`crate::Search::tell_gradient`].
    Gradient(Vec<f64>),
    /// Nothing: the search has ended.
    Done(Stop),
}

/// A finished generation.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// From 0, which is random.
    pub generation: usize,
    /// Its best individual.
    pub best: Individual,
    /// The first criterion of the middle individual.
    pub median: f64,
    /// Number of points evaluated so far, without those of the local optimiser.
    pub evaluations: usize,
}

enum Phase {
    /// The values of `children[row]` are missing for the `rows`.
    Evaluating {
        children: Vec<Vec<f64>>,
        rows: Vec<usize>,
    },
    /// The population is sorted.
    Sorted,
    PolishingBest,
    Judging,
    CheckingGradient,
    /// The generation is over; whether the gradient is small.
    Concluding(bool),
    Breeding,
    /// Operator 9 waits for its parents to be polished.
    Crossing {
        children: Vec<Vec<f64>>,
        starts: Vec<Vec<f64>>,
    },
    Ended(Stop),
}

/// A genetic search that asks for values and gets them.
pub struct Search {
    options: Options,
    counts: OperatorCounts,
    source: Source,
    memory: Memory,
    ending: Ending,
    population: Vec<Individual>,
    generation: usize,
    criteria: Option<usize>,
    evaluations: usize,
    polished: Option<Vec<f64>>,
    gradient: Option<(Vec<f64>, bool)>,
    history: Vec<Record>,
    phase: Phase,
    pending: Step,
}

impl Search {
    /// A search that asks for its first generation.
    ///
    /// # Errors
    /// If the options do not fit together.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let counts = options.counts()?;
        let mut source = Source::new(options.generator, options.seed);
        let mut first = options.starting_values.clone();
        for value in first.iter_mut().flatten() {
            *value = options.domain.whole(*value);
        }
        while first.len() < counts.population {
            first.push(options.domain.point(&mut source));
        }
        let mut search = Self {
            ending: Ending::new(&options),
            counts,
            source,
            memory: Memory::default(),
            population: Vec::new(),
            generation: 0,
            criteria: None,
            evaluations: 0,
            polished: None,
            gradient: None,
            history: Vec::new(),
            phase: Phase::Breeding,
            pending: Step::Polish(Vec::new()),
            options,
        };
        search.phase = search.evaluating(first);
        search.advance();
        Ok(search)
    }

    /// Returns the next step; the same until it has its answer.
    #[must_use]
    pub fn ask(&self) -> &Step {
        &self.pending
    }

    /// The values of the requested points, `criteria` of them for each.
    ///
    /// # Errors
    /// If no values were requested, or their number for each point has changed.
    pub fn tell(&mut self, values: &[f64], criteria: usize) -> Result<(), Unusable> {
        let Phase::Evaluating { rows, .. } = &self.phase else {
            return Err(Unusable("no values were asked for".into()));
        };
        if criteria == 0 || values.len() != rows.len() * criteria {
            return Err(Unusable(format!(
                "{} values of {} points with {criteria} criteria each",
                values.len(),
                rows.len()
            )));
        }
        if let Some(before) = self.criteria.filter(|&before| before != criteria) {
            return Err(Unusable(format!(
                "{criteria} criteria for each point, after {before}: there must be as many always"
            )));
        }
        self.criteria = Some(criteria);
        self.evaluations += rows.len();
        let phase = std::mem::replace(&mut self.phase, Phase::Sorted);
        if let Phase::Evaluating { children, rows } = phase {
            self.settle(children, &rows, values, criteria);
        }
        self.advance();
        Ok(())
    }

    /// Takes the polished points and the values there.
    ///
    /// # Errors
    /// If no polishing was requested, or the numbers of points differ.
    pub fn tell_polished(&mut self, polished: Vec<Individual>) -> Result<(), Unusable> {
        let Step::Polish(starts) = &self.pending else {
            return Err(Unusable("nothing was to be polished".into()));
        };
        let parameters = self.options.domain.parameters();
        let fits = |individual: &Individual| {
            individual.point.len() == parameters && Some(individual.values.len()) == self.criteria
        };
        if polished.len() != starts.len() || !polished.iter().all(fits) {
            return Err(Unusable(format!(
                "{} polished points for {} starts, or points or values of another length",
                polished.len(),
                starts.len()
            )));
        }
        match std::mem::replace(&mut self.phase, Phase::Judging) {
            Phase::Crossing { children, starts } => self.cross(children, &starts, &polished),
            _ => polished
                .into_iter()
                .for_each(|best| self.replace_best(best)),
        }
        self.advance();
        Ok(())
    }

    /// Whether every component of the gradient that was asked for is small.
    ///
    /// # Errors
    /// If no gradient was asked for.
    pub fn tell_gradient(&mut self, small: bool) -> Result<(), Unusable> {
        let Step::Gradient(point) = &self.pending else {
            return Err(Unusable("no gradient was asked for".into()));
        };
        self.gradient = Some((point.clone(), small));
        self.phase = Phase::Concluding(small);
        self.advance();
        Ok(())
    }

    /// The individuals, the best first; empty before the first values.
    #[must_use]
    pub fn population(&self) -> &[Individual] {
        &self.population
    }

    /// Returns how often each operator is used.
    #[must_use]
    pub fn counts(&self) -> &OperatorCounts {
        &self.counts
    }

    /// When the best last improved by more than the tolerance.
    #[must_use]
    pub fn peak_generation(&self) -> usize {
        self.ending.peak
    }

    /// Returns the finished generations.
    #[must_use]
    pub fn history(&self) -> &[Record] {
        &self.history
    }

    /// The present generation, from 0; at the end the last one.
    #[must_use]
    pub fn generation(&self) -> usize {
        self.generation
    }

    /// Returns the number of generations at most, as of now.
    #[must_use]
    pub fn generation_limit(&self) -> usize {
        self.ending.generations
    }

    /// Goes on until something is needed from outside.
    fn advance(&mut self) {
        self.pending = loop {
            if let Some(step) = self.turn() {
                break step;
            }
        };
    }

    /// One turn: returns a request, or `None` and enters the next phase.
    fn turn(&mut self) -> Option<Step> {
        match std::mem::replace(&mut self.phase, Phase::Sorted) {
            Phase::Evaluating { children, rows } if rows.is_empty() => {
                self.settle(children, &[], &[], 0);
                None
            }
            Phase::Evaluating { children, rows } => {
                let points = rows.iter().map(|&row| children[row].clone()).collect();
                self.phase = Phase::Evaluating { children, rows };
                Some(Step::Evaluate(points))
            }
            Phase::Sorted => {
                let is_due = self.polish_is_due();
                self.phase = if is_due {
                    Phase::PolishingBest
                } else {
                    Phase::Judging
                };
                None
            }
            Phase::PolishingBest => {
                self.phase = Phase::PolishingBest;
                Some(Step::Polish(vec![self.population[0].point.clone()]))
            }
            Phase::Judging => {
                let best = &self.population[0].values;
                let improved = self.ending.note(self.generation, best);
                let needs_gradient = self.options.gradient_check && !improved;
                self.phase = match &self.gradient {
                    _ if !needs_gradient => Phase::Concluding(true),
                    Some((point, small)) if *point == self.population[0].point => {
                        Phase::Concluding(*small)
                    }
                    _ => Phase::CheckingGradient,
                };
                None
            }
            Phase::CheckingGradient => {
                self.phase = Phase::CheckingGradient;
                Some(Step::Gradient(self.population[0].point.clone()))
            }
            Phase::Concluding(flat) => {
                self.record();
                let over = match self.generation {
                    0 => None,
                    generation => self.ending.verdict(generation, flat),
                };
                self.phase = over.map_or(Phase::Breeding, Phase::Ended);
                None
            }
            Phase::Breeding => {
                self.generation += 1;
                self.breed();
                None
            }
            Phase::Crossing { children, starts } => {
                let points = starts.clone();
                self.phase = Phase::Crossing { children, starts };
                Some(Step::Polish(points))
            }
            Phase::Ended(stop) => {
                self.phase = Phase::Ended(stop);
                Some(Step::Done(stop))
            }
        }
    }

    /// Returns the phase that evaluates new points, each once if there is a memory.
    fn evaluating(&self, children: Vec<Vec<f64>>) -> Phase {
        let mut keys = HashSet::new();
        let mut is_new = |point: &[f64]| {
            !self.options.memory || (self.memory.recall(point).is_none() && keys.insert(key(point)))
        };
        let rows = 0..children.len();
        let rows = rows.filter(|&row| is_new(&children[row])).collect();
        Phase::Evaluating { children, rows }
    }

    /// Replaces the worst by the children, of which `rows` have new values, and sorts all.
    fn settle(&mut self, children: Vec<Vec<f64>>, rows: &[usize], values: &[f64], criteria: usize) {
        let mut new_values = values.chunks_exact(criteria.max(1));
        if self.options.memory {
            for (&row, values) in rows.iter().zip(&mut new_values) {
                self.memory.learn(&children[row], values);
            }
        }
        let survivors = self.population.len().saturating_sub(children.len());
        self.population.truncate(survivors);
        for point in children {
            let values = if self.options.memory {
                self.memory.recall(&point)
            } else {
                new_values.next()
            };
            // Every child was evaluated or is remembered.
            let values = values.unwrap_or(&[]).to_vec();
            self.population.push(Individual { point, values });
        }
        let direction = self.options.direction;
        self.population
            .sort_by(|left, right| compare(&left.values, &right.values, direction));
        self.phase = Phase::Sorted;
    }

    /// The best individual is polished in each generation after the burn-in, unless polishing
    /// changed nothing.
    fn polish_is_due(&self) -> bool {
        self.options.polish
            && self.generation > self.options.burn_in
            && self.polished.as_ref() != Some(&self.population[0].point)
    }

    /// Replaces the best by the polished best if that is better and admissible.
    fn replace_best(&mut self, polished: Individual) {
        let Options {
            boundary,
            domain,
            direction,
            ..
        } = &self.options;
        let Individual { point, values } = &polished;
        let is_inside = *boundary == Boundary::Anything || domain.contains(point);
        let is_finite = point.iter().all(|value| value.is_finite());
        let order = compare(values, &self.population[0].values, *direction);
        if is_inside && is_finite && order.is_lt() {
            if self.options.memory {
                self.memory.learn(point, values);
            }
            self.population[0] = polished;
        } else {
            self.polished = Some(self.population[0].point.clone());
        }
    }

    fn parents(&mut self) -> Parents<'_> {
        Parents {
            population: &self.population,
            domain: &self.options.domain,
            boundary: self.options.boundary,
            reach: mutation_reach(self.generation, self.ending.generations),
            source: &mut self.source,
        }
    }

    fn breed(&mut self) {
        let counts = self.counts;
        let mut parents = self.parents();
        let children = children(&mut parents, &counts);
        let starts: Vec<Vec<f64>> = (0..counts.each[8])
            .map(|_| {
                let rank = parents.select();
                parents.population[rank].point.clone()
            })
            .collect();
        self.phase = if starts.is_empty() {
            self.evaluating(children)
        } else {
            Phase::Crossing { children, starts }
        };
    }

    fn cross(&mut self, mut children: Vec<Vec<f64>>, starts: &[Vec<f64>], polished: &[Individual]) {
        let mix = self.options.mix;
        let mut parents = self.parents();
        for (start, end) in starts.iter().zip(polished) {
            children.push(parents.local_minimum_crossover(start, &end.point, mix));
        }
        self.phase = self.evaluating(children);
    }

    fn record(&mut self) {
        self.history.push(Record {
            generation: self.generation,
            best: self.population[0].clone(),
            median: self.population[self.population.len() / 2].values[0],
            evaluations: self.evaluations,
        });
    }
}

/// A hash table from points to values; equal points have equal parameters, -0 being 0.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    known: HashMap<Box<[u64]>, Box<[f64]>>,
}

/// Returns the key of a point; equal points have equal keys.
pub fn key(point: &[f64]) -> Box<[u64]> {
    // Adding 0 makes 0 of -0.
    point.iter().map(|value| (value + 0.0).to_bits()).collect()
}

impl Memory {
    /// The values of a point that was evaluated.
    pub fn recall(&self, point: &[f64]) -> Option<&[f64]> {
        self.known.get(&key(point)).map(AsRef::as_ref)
    }

    /// Keeps the values of a point.
    pub fn learn(&mut self, point: &[f64], values: &[f64]) {
        self.known.insert(key(point), values.into());
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stop {
    /// The search waited long enough for an improvement.
    NoImprovement,
    /// The search has had all its generations.
    GenerationLimit,
}

/// Counts the generations since something improved.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The present limit; a soft limit doubles.
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

    /// Whether the search ends after this generation. A generation without improvement counts only
    /// if `flat` (the gradient is small, or unknown).
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

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
