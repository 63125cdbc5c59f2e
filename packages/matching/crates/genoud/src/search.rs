//! The search: its steps, the memory of evaluated points, and the rule that ends it.
//!
//! Mebane & Sekhon 2011, section 3.

use std::collections::{HashMap, HashSet};

use crate::domain::Boundary;
use crate::individual::{Individual, compare, is_improvement};
use crate::operators::{Parents, children, mutation_reach};
use crate::options::{Direction, OperatorCounts, Options, SearchError};
use crate::random::Source;

/// The next step of the search, which the caller does and answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Evaluate these points, for [`crate::Search::tell`].
    Evaluate(Vec<Vec<f64>>),
    /// Improve these points with a local optimiser, for [`crate::Search::tell_polished`].
    Polish(Vec<Vec<f64>>),
    /// Check whether the gradient at this point is small, for [`crate::Search::tell_gradient`].
    Gradient(Vec<f64>),
    /// The search has ended; there is nothing to do.
    Done(Stop),
}

/// A finished generation.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerationRecord {
    /// Number of the generation; generation 0 is random.
    pub generation: usize,
    /// The best individual of the generation.
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
    /// The population is sorted; the best may be polished next.
    Sorted,
    PolishingBest,
    CheckingImprovement,
    CheckingGradient,
    /// The generation is over; true if the gradient is small or was not checked.
    Concluding(bool),
    Breeding,
    /// The crossover of operator 9 waits for its parents to be polished.
    Crossing {
        children: Vec<Vec<f64>>,
        starts: Vec<Vec<f64>>,
    },
    Ended(Stop),
}

/// A genetic search, which asks its caller for the values of points.
pub struct Search {
    options: Options,
    counts: OperatorCounts,
    source: Source,
    memory: Memory,
    stop_rule: StopRule,
    population: Vec<Individual>,
    generation: usize,
    criteria: Option<usize>,
    evaluations: usize,
    polished: Option<Vec<f64>>,
    gradient: Option<(Vec<f64>, bool)>,
    history: Vec<GenerationRecord>,
    phase: Phase,
    pending: Step,
}

impl Search {
    /// Starts a search, whose first step is to evaluate the first generation.
    ///
    /// # Errors
    /// The options do not fit together.
    pub fn new(options: Options) -> Result<Self, SearchError> {
        let counts = options.counts()?;
        let mut source = Source::new(options.generator, options.seed);
        let mut first = options.starting_values.clone();
        for value in first.iter_mut().flatten() {
            *value = options.domain.rounded(*value);
        }
        while first.len() < counts.population {
            first.push(options.domain.point(&mut source));
        }
        let mut search = Self {
            stop_rule: StopRule::new(&options),
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
        search.phase = search.evaluation_phase(first);
        search.advance();
        Ok(search)
    }

    /// Returns the next step; it stays the same until it is answered.
    #[must_use]
    pub fn ask(&self) -> &Step {
        &self.pending
    }

    /// Takes the values of the requested points: `criteria` values for each point.
    ///
    /// # Errors
    /// No values were requested, or the number of values or criteria is wrong.
    pub fn tell(&mut self, values: &[f64], criteria: usize) -> Result<(), SearchError> {
        let Phase::Evaluating { rows, .. } = &self.phase else {
            return Err(SearchError("the next step needs no values".into()));
        };
        if criteria == 0 || values.len() != rows.len() * criteria {
            return Err(SearchError(format!(
                "{} values do not fit {} points with {criteria} criteria each",
                values.len(),
                rows.len()
            )));
        }
        if let Some(before) = self.criteria.filter(|&before| before != criteria) {
            return Err(SearchError(format!(
                "{criteria} criteria for each point, not {before} as before: give as many always"
            )));
        }
        self.criteria = Some(criteria);
        self.evaluations += rows.len();
        let phase = std::mem::replace(&mut self.phase, Phase::Sorted);
        if let Phase::Evaluating { children, rows } = phase {
            self.merge(children, &rows, values, criteria);
        }
        self.advance();
        Ok(())
    }

    /// Takes the polished points and their values.
    ///
    /// # Errors
    /// No polishing was requested, or the number or length of the points is wrong.
    pub fn tell_polished(&mut self, polished: Vec<Individual>) -> Result<(), SearchError> {
        let Step::Polish(starts) = &self.pending else {
            return Err(SearchError("the next step needs no polished points".into()));
        };
        let parameters = self.options.domain.parameters();
        let fits = |individual: &Individual| {
            individual.point.len() == parameters && Some(individual.values.len()) == self.criteria
        };
        if polished.len() != starts.len() || !polished.iter().all(fits) {
            return Err(SearchError(format!(
                "{} polished points for {} starts, or a point or its values have a wrong length",
                polished.len(),
                starts.len()
            )));
        }
        match std::mem::replace(&mut self.phase, Phase::CheckingImprovement) {
            Phase::Crossing { children, starts } => self.cross(children, &starts, &polished),
            _ => polished
                .into_iter()
                .for_each(|best| self.replace_best(best)),
        }
        self.advance();
        Ok(())
    }

    /// Takes whether every component of the requested gradient is small.
    ///
    /// # Errors
    /// No gradient was requested.
    pub fn tell_gradient(&mut self, is_small: bool) -> Result<(), SearchError> {
        let Step::Gradient(point) = &self.pending else {
            return Err(SearchError("the next step needs no gradient".into()));
        };
        self.gradient = Some((point.clone(), is_small));
        self.phase = Phase::Concluding(is_small);
        self.advance();
        Ok(())
    }

    /// Returns the individuals, the best first; none before the first values.
    #[must_use]
    pub fn population(&self) -> &[Individual] {
        &self.population
    }

    /// Returns the number of individuals from each operator.
    #[must_use]
    pub fn counts(&self) -> &OperatorCounts {
        &self.counts
    }

    /// Returns the generation in which the best last improved by more than the tolerance.
    #[must_use]
    pub fn peak_generation(&self) -> usize {
        self.stop_rule.peak_generation
    }

    /// Returns the finished generations.
    #[must_use]
    pub fn history(&self) -> &[GenerationRecord] {
        &self.history
    }

    /// Returns the number of the current generation, or of the last one at the end.
    #[must_use]
    pub fn generation(&self) -> usize {
        self.generation
    }

    /// Returns the current limit of the number of generations; a soft limit can grow.
    #[must_use]
    pub fn generation_limit(&self) -> usize {
        self.stop_rule.generations
    }

    /// Runs the search until it needs an answer from the caller.
    fn advance(&mut self) {
        self.pending = loop {
            if let Some(step) = self.next_step() {
                break step;
            }
        };
    }

    /// Returns the step that this phase needs; `None` after entering the next phase.
    fn next_step(&mut self) -> Option<Step> {
        match std::mem::replace(&mut self.phase, Phase::Sorted) {
            Phase::Evaluating { children, rows } if rows.is_empty() => {
                self.merge(children, &[], &[], 0);
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
                    Phase::CheckingImprovement
                };
                None
            }
            Phase::PolishingBest => {
                self.phase = Phase::PolishingBest;
                Some(Step::Polish(vec![self.population[0].point.clone()]))
            }
            Phase::CheckingImprovement => {
                let best = &self.population[0].values;
                let has_improved = self.stop_rule.update(self.generation, best);
                let needs_gradient = self.options.gradient_check && !has_improved;
                self.phase = match &self.gradient {
                    _ if !needs_gradient => Phase::Concluding(true),
                    Some((point, is_small)) if *point == self.population[0].point => {
                        Phase::Concluding(*is_small)
                    }
                    _ => Phase::CheckingGradient,
                };
                None
            }
            Phase::CheckingGradient => {
                self.phase = Phase::CheckingGradient;
                Some(Step::Gradient(self.population[0].point.clone()))
            }
            Phase::Concluding(is_flat) => {
                self.record();
                let stop = match self.generation {
                    0 => None,
                    generation => self.stop_rule.stop_after(generation, is_flat),
                };
                self.phase = stop.map_or(Phase::Breeding, Phase::Ended);
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

    /// Returns the phase that evaluates the children; with a memory, only new points.
    fn evaluation_phase(&self, children: Vec<Vec<f64>>) -> Phase {
        let mut keys = HashSet::new();
        let mut is_new = |point: &[f64]| {
            !self.options.memory || (self.memory.recall(point).is_none() && keys.insert(key(point)))
        };
        let rows = 0..children.len();
        let rows = rows.filter(|&row| is_new(&children[row])).collect();
        Phase::Evaluating { children, rows }
    }

    /// Replaces the worst by the children, of which `rows` have new values, and sorts all.
    fn merge(&mut self, children: Vec<Vec<f64>>, rows: &[usize], values: &[f64], criteria: usize) {
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

    /// Whether to polish the best individual: after the burn-in, unless it was polished in vain.
    fn polish_is_due(&self) -> bool {
        self.options.polish
            && self.generation > self.options.burn_in
            && self.polished.as_ref() != Some(&self.population[0].point)
    }

    /// Replaces the best individual by its polished point if that is better and admissible.
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
            reach: mutation_reach(self.generation, self.stop_rule.generations),
            source: &mut self.source,
        }
    }

    fn breed(&mut self) {
        let counts = self.counts;
        let mut parents = self.parents();
        let children = children(&mut parents, &counts);
        let starts: Vec<Vec<f64>> = (0..counts.by_operator[8])
            .map(|_| {
                let rank = parents.select();
                parents.population[rank].point.clone()
            })
            .collect();
        self.phase = if starts.is_empty() {
            self.evaluation_phase(children)
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
        self.phase = self.evaluation_phase(children);
    }

    fn record(&mut self) {
        self.history.push(GenerationRecord {
            generation: self.generation,
            best: self.population[0].clone(),
            median: self.population[self.population.len() / 2].values[0],
            evaluations: self.evaluations,
        });
    }
}

/// The values of evaluated points; 0 and -0 are the same parameter.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    known: HashMap<Box<[u64]>, Box<[f64]>>,
}

/// Returns the hash table key of a point; equal points have equal keys.
pub fn key(point: &[f64]) -> Box<[u64]> {
    // Adding 0 turns -0 into 0.
    point.iter().map(|value| (value + 0.0).to_bits()).collect()
}

impl Memory {
    pub fn recall(&self, point: &[f64]) -> Option<&[f64]> {
        self.known.get(&key(point)).map(AsRef::as_ref)
    }

    pub fn learn(&mut self, point: &[f64], values: &[f64]) {
        self.known.insert(key(point), values.into());
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stop {
    /// The best did not improve for the given number of generations.
    NoImprovement,
    /// The search reached the limit of its generations.
    GenerationLimit,
}

/// Decides when the search ends, from the generations since the last improvement.
#[derive(Clone, Debug)]
pub struct StopRule {
    /// The current limit of generations; a soft limit doubles when the search reaches it.
    pub generations: usize,
    /// The generation in which the best last improved by more than the tolerance.
    pub peak_generation: usize,
    has_hard_limit: bool,
    wait_generations: usize,
    tolerance: f64,
    direction: Direction,
    reference: Vec<f64>,
    unimproved_generations: usize,
    waited_generations: usize,
}

impl StopRule {
    pub fn new(options: &Options) -> Self {
        Self {
            generations: options.generations,
            peak_generation: 0,
            has_hard_limit: options.hard_generation_limit,
            wait_generations: options.wait_generations,
            tolerance: options.solution_tolerance,
            direction: options.direction,
            reference: Vec::new(),
            unimproved_generations: 0,
            waited_generations: 0,
        }
    }

    /// Takes the best of a generation; returns whether it is better than the best before.
    pub fn update(&mut self, generation: usize, best: &[f64]) -> bool {
        let has_improved = self.reference.is_empty()
            || is_improvement(best, &self.reference, self.direction, self.tolerance);
        if has_improved {
            self.reference = best.to_vec();
            self.peak_generation = generation;
            self.unimproved_generations = 0;
            self.waited_generations = 0;
        } else {
            self.unimproved_generations += 1;
        }
        has_improved
    }

    /// Returns why the search ends after this generation; `None` if it continues. A generation
    /// without improvement counts only if the gradient `is_flat`: small, or not checked.
    pub fn stop_after(&mut self, generation: usize, is_flat: bool) -> Option<Stop> {
        if self.unimproved_generations > 0 && is_flat {
            self.waited_generations += 1;
        }
        if self.waited_generations > self.wait_generations {
            return Some(Stop::NoImprovement);
        }
        if generation < self.generations {
            return None;
        }
        if self.has_hard_limit || self.unimproved_generations > self.wait_generations {
            return Some(Stop::GenerationLimit);
        }
        self.generations *= 2;
        None
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
