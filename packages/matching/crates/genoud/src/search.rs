//! The search (Mebane & Sekhon 2011, section 3): its steps, the memory of evaluated points, and the
//! rule that ends the search.
//!
//! A generation: evaluate the children, sort the population, polish the best candidate, compare it
//! with the best of earlier generations (the peak), and decide whether to end. Then breed: make the
//! children of the next generation. The caller evaluates and polishes, so a step returns to it.

use std::collections::{HashMap, HashSet};

use crate::candidate::{Candidate, compare, is_improvement};
use crate::domain::Boundary;
use crate::operators::{Breeder, children, mutation_reach};
use crate::options::{Direction, LOCAL_MINIMUM, OperatorCounts, Options, SearchError};
use crate::random::Source;

/// The next step of the search, which the caller performs.
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
    /// The best candidate of the generation.
    pub best: Candidate,
    /// The first criterion of the candidate in the middle of the order.
    pub median: f64,
    /// Number of points evaluated so far, without the points of the local optimiser.
    pub evaluations: usize,
}

/// The work that the search does next, or waits for.
enum Phase {
    /// The search waits for the values of the children in these rows.
    Evaluating {
        children: Vec<Vec<f64>>,
        rows: Vec<usize>,
    },
    /// The population is sorted. The best candidate may be polished next.
    Sorted,
    /// The search waits for the polished point of the candidate with this rank.
    Polishing(usize),
    /// The best candidate is compared with the best of earlier generations next.
    CheckingImprovement,
    /// The search waits for the gradient at the best candidate.
    CheckingGradient,
    /// The generation is over; true if the gradient is small or was not checked.
    Concluding(bool),
    /// The children of the next generation are made next.
    Breeding,
    /// The search waits for the polished parents of operator 9.
    Crossing {
        children: Vec<Vec<f64>>,
        starts: Vec<Vec<f64>>,
    },
    Ended(Stop),
}

/// A genetic search, which requests the values of points from the caller.
pub struct Search {
    options: Options,
    counts: OperatorCounts,
    source: Source,
    /// Values of all evaluated points, if `options.memory`.
    memory: Memory,
    stop_rule: StopRule,
    /// The candidates, the best first.
    population: Vec<Candidate>,
    generation: usize,
    /// Number of values of each point; `None` before the first answer.
    criteria: Option<usize>,
    /// Number of points evaluated so far, without the points of the local optimiser.
    evaluations: usize,
    /// The last point that polishing could not improve.
    polished_in_vain: Option<Vec<f64>>,
    /// The last point with a checked gradient, and whether this gradient is small.
    checked_gradient: Option<(Vec<f64>, bool)>,
    history: Vec<GenerationRecord>,
    phase: Phase,
    /// The step that the caller must answer next.
    pending: Step,
}

impl Search {
    /// Starts a search, whose first step is to evaluate the first generation.
    ///
    /// # Errors
    /// The options do not fit together.
    pub fn new(options: Options) -> Result<Self, SearchError> {
        let counts = options.operator_counts()?;
        let mut source = Source::new(options.generator, options.seed);
        let mut first_points = options.starting_values.clone();
        for value in first_points.iter_mut().flatten() {
            *value = options.domain.rounded(*value);
        }
        while first_points.len() < counts.population {
            first_points.push(options.domain.point(&mut source));
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
            polished_in_vain: None,
            checked_gradient: None,
            history: Vec::new(),
            phase: Phase::Breeding,
            pending: Step::Polish(Vec::new()),
            options,
        };
        search.phase = search.evaluation_phase(first_points);
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
        if let Some(earlier) = self.criteria.filter(|&earlier| earlier != criteria) {
            return Err(SearchError(format!(
                "{criteria} values for each point, but {earlier} values in earlier answers"
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
    pub fn tell_polished(&mut self, polished: Vec<Candidate>) -> Result<(), SearchError> {
        let Step::Polish(starts) = &self.pending else {
            return Err(SearchError("the next step needs no polished points".into()));
        };
        let parameters = self.options.domain.parameter_count();
        let fits = |candidate: &Candidate| {
            candidate.point.len() == parameters && Some(candidate.values.len()) == self.criteria
        };
        if polished.len() != starts.len() || !polished.iter().all(fits) {
            return Err(SearchError(format!(
                "{} polished points for {} starts, or a point or its values have a wrong length",
                polished.len(),
                starts.len()
            )));
        }
        // After the best is polished, the improvement is checked.
        match std::mem::replace(&mut self.phase, Phase::CheckingImprovement) {
            Phase::Crossing { children, starts } => self.cross(children, &starts, &polished),
            Phase::Polishing(rank) => polished
                .into_iter()
                .for_each(|candidate| self.replace(rank, candidate)),
            _ => {}
        }
        self.advance();
        Ok(())
    }

    /// Takes the answer whether every component of the requested gradient is small.
    ///
    /// # Errors
    /// No gradient was requested.
    pub fn tell_gradient(&mut self, is_small: bool) -> Result<(), SearchError> {
        let Step::Gradient(point) = &self.pending else {
            return Err(SearchError("the next step needs no gradient".into()));
        };
        self.checked_gradient = Some((point.clone(), is_small));
        self.phase = Phase::Concluding(is_small);
        self.advance();
        Ok(())
    }

    /// Returns the candidates, the best first; none before the first values.
    #[must_use]
    pub fn population(&self) -> &[Candidate] {
        &self.population
    }

    /// Returns the number of candidates from each operator.
    #[must_use]
    pub fn counts(&self) -> &OperatorCounts {
        &self.counts
    }

    /// Returns the last generation that improved by more than the tolerance.
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
        self.stop_rule.generation_limit
    }

    fn advance(&mut self) {
        self.pending = loop {
            if let Some(step) = self.next_step() {
                break step;
            }
        };
    }

    /// Works on the current phase; returns a step for the caller, or `None` if the phase changed.
    fn next_step(&mut self) -> Option<Step> {
        // `Sorted` is a placeholder, because each arm sets the next phase.
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
                self.phase = self
                    .rank_to_polish()
                    .map_or(Phase::CheckingImprovement, Phase::Polishing);
                None
            }
            Phase::Polishing(rank) => {
                self.phase = Phase::Polishing(rank);
                Some(Step::Polish(vec![self.population[rank].point.clone()]))
            }
            Phase::CheckingImprovement => {
                let best = &self.population[0].values;
                let has_improved = self.stop_rule.update(self.generation, best);
                let needs_gradient = self.options.gradient_check && !has_improved;
                self.phase = match &self.checked_gradient {
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

    /// Returns the phase that evaluates the children. With a memory, only new points are evaluated.
    fn evaluation_phase(&self, children: Vec<Vec<f64>>) -> Phase {
        let mut keys = HashSet::new();
        let mut is_new = |point: &[f64]| {
            !self.options.memory || (self.memory.recall(point).is_none() && keys.insert(key(point)))
        };
        let rows = 0..children.len();
        let rows = rows.filter(|&row| is_new(&children[row])).collect();
        Phase::Evaluating { children, rows }
    }

    /// Replaces the worst candidates by the children, and sorts the population. `values` belong to
    /// the children in `rows`; the memory has the values of the other children.
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
            // Every child has values: it was evaluated, or the memory has its values.
            let values = values.unwrap_or(&[]).to_vec();
            self.population.push(Candidate { point, values });
        }
        let direction = self.options.direction;
        self.population
            .sort_by(|left, right| compare(&left.values, &right.values, direction));
        self.phase = Phase::Sorted;
    }

    /// Returns the rank of the candidate to polish, after the burn-in. It is the best one, unless
    /// polishing it was in vain: then any one, which may lie below a higher peak.
    fn rank_to_polish(&mut self) -> Option<usize> {
        let is_due = self.options.polish && self.generation > self.options.burn_in;
        if !is_due || self.polished_in_vain.as_ref() != Some(&self.population[0].point) {
            return is_due.then_some(0);
        }
        let rank = self.source.index(self.population.len());
        (self.population[rank].point != self.population[0].point).then_some(rank)
    }

    /// Replaces a candidate by its polished point if this point is better and admissible.
    fn replace(&mut self, rank: usize, polished: Candidate) {
        let Options {
            boundary,
            domain,
            direction,
            ..
        } = &self.options;
        let direction = *direction;
        let Candidate { point, values } = &polished;
        let is_inside = *boundary == Boundary::RandomPoints || domain.contains(point);
        let is_finite = point.iter().all(|value| value.is_finite());
        let order = compare(values, &self.population[rank].values, direction);
        if is_inside && is_finite && order.is_lt() {
            if self.options.memory {
                self.memory.learn(point, values);
            }
            self.population[rank] = polished;
            self.population
                .sort_by(|left, right| compare(&left.values, &right.values, direction));
        } else if rank == 0 {
            self.polished_in_vain = Some(self.population[0].point.clone());
        }
    }

    fn breeder(&mut self) -> Breeder<'_> {
        Breeder {
            population: &self.population,
            domain: &self.options.domain,
            boundary: self.options.boundary,
            reach: mutation_reach(self.generation, self.stop_rule.generation_limit),
            source: &mut self.source,
        }
    }

    /// Makes the children of the operators 2 to 8, and draws the parents of operator 9.
    fn breed(&mut self) {
        let counts = self.counts;
        let mut breeder = self.breeder();
        let children = children(&mut breeder, &counts);
        let starts: Vec<Vec<f64>> = (0..counts.by_operator[LOCAL_MINIMUM])
            .map(|_| {
                let rank = breeder.draw_parent();
                breeder.population[rank].point.clone()
            })
            .collect();
        self.phase = if starts.is_empty() {
            self.evaluation_phase(children)
        } else {
            Phase::Crossing { children, starts }
        };
    }

    /// Adds the children of operator 9 from its parents, `starts`, and their polished points.
    fn cross(&mut self, mut children: Vec<Vec<f64>>, starts: &[Vec<f64>], polished: &[Candidate]) {
        let mix = self.options.mix;
        let mut breeder = self.breeder();
        for (start, end) in starts.iter().zip(polished) {
            children.push(breeder.local_minimum_crossover(start, &end.point, mix));
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

/// The values of evaluated points.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    known: HashMap<Box<[u64]>, Box<[f64]>>,
}

/// Returns the key of a point in the memory; equal points have equal keys.
pub fn key(point: &[f64]) -> Box<[u64]> {
    // Adding 0 turns -0 into 0, which is the same parameter.
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
    /// The best values did not improve for more than `wait_generations` generations.
    NoImprovement,
    /// The search reached the limit of its generations.
    GenerationLimit,
}

/// Decides when the search ends, from the generations since the last improvement.
#[derive(Clone, Debug)]
pub struct StopRule {
    /// The current limit of generations. A soft limit doubles when the search reaches it.
    pub generation_limit: usize,
    /// The peak: the last generation that improved by more than the tolerance.
    pub peak_generation: usize,
    has_hard_limit: bool,
    wait_generations: usize,
    tolerance: f64,
    direction: Direction,
    peak_values: Vec<f64>,
    /// Number of generations since the peak.
    unimproved_generations: usize,
    /// Number of generations since the peak that had a small gradient, or no checked gradient.
    waited_generations: usize,
}

impl StopRule {
    pub fn new(options: &Options) -> Self {
        Self {
            generation_limit: options.generations,
            peak_generation: 0,
            has_hard_limit: options.hard_generation_limit,
            wait_generations: options.wait_generations,
            tolerance: options.solution_tolerance,
            direction: options.direction,
            peak_values: Vec::new(),
            unimproved_generations: 0,
            waited_generations: 0,
        }
    }

    /// Takes the best values of a generation; returns whether they are better than at the peak.
    pub fn update(&mut self, generation: usize, best: &[f64]) -> bool {
        let has_improved = self.peak_values.is_empty()
            || is_improvement(best, &self.peak_values, self.direction, self.tolerance);
        if has_improved {
            self.peak_values = best.to_vec();
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
        if generation < self.generation_limit {
            return None;
        }
        if self.has_hard_limit || self.unimproved_generations > self.wait_generations {
            return Some(Stop::GenerationLimit);
        }
        self.generation_limit *= 2;
        None
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
