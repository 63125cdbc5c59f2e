"""Compute the result of a gate; that of a join is computed from the records of its slices."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, ContrastCosts, costs_of_contrasts
from equipoise.analysis.result import increasing_metrics, run_info, trial_rows
from equipoise.analysis.warnings import warnings_of
from equipoise.campaign.blocks import complete_blocks
from equipoise.kinds.gate.analysis import (
    GateAnalysis,
    benchmark_of,
    finite_median,
    joined_bisect_lines,
)
from equipoise.kinds.gate.joined_verdict import JoinedDecision, judge_joined
from equipoise.kinds.gate.terms import (
    GateDocument,
    GateOutcome,
    GatePlan,
    GateResult,
    GateRow,
    GateRunner,
)
from equipoise.model.errors import UnusableInput
from equipoise.model.host import HOST_FACTS, distinct_names, shared_facts
from equipoise.model.plan import Condition
from equipoise.model.quantities import counted, names_of
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.model.result import SCHEMA, ConditionResult
from equipoise.model.revisions import SourcePlace
from equipoise.stats.hosts import HostBlocks, HostClaims, claims_about_hosts

_UNNAMED_RUNNER = "runner"
"""Name of a runner whose slice has no host."""


class Runner(Struct, frozen=True):
    """One runner of a join: its slice, and the costs of its benchmarks."""

    name: str
    record: RunRecord
    blocks: Blocks
    costs: dict[str, ContrastCosts]
    """Costs of each benchmark, by its name."""
    warnings: tuple[CampaignWarning, ...]
    """Warnings about metrics without a value."""


class GateOrJoinAnalysis(GateAnalysis):
    """Analysis of a gate on one runner, or of a join."""

    def document(self, record: RunRecord) -> GateDocument | None:
        """Return the document of a join; ``None`` for the gate of one runner."""
        terms = record.plan.terms
        assert isinstance(terms, GatePlan), "the plan is not of a gate"
        return joined_document(record) if terms.joined else None


def joined_document(record: RunRecord) -> GateDocument:
    """Return the result document of a join, whose slices are the earlier runs of the record."""
    names = distinct_names(
        [_UNNAMED_RUNNER if run.host is None else run.host.name for run in record.earlier_runs]
    )
    runners = [_runner(name, run) for name, run in zip(names, record.earlier_runs, strict=True)]
    trials = itertools.chain.from_iterable(runner.record.trials for runner in runners)
    rows = (
        replace(row, host=runner.name)
        for runner in runners
        for row in trial_rows(runner.record, runner.blocks, runner.blocks)
    )
    return GateDocument(
        schema=SCHEMA,
        run=run_info(record, sum(len(runner.blocks) for runner in runners)),
        environment=shared_facts([runner.record.environment for runner in runners]),
        conditions=tuple(_conditions(runners)),
        comparisons=(),
        control=None,
        why=(),
        warnings=tuple(_warnings(runners)),
        trials=tuple(rows),
        more_is_better=increasing_metrics(trials),
        gate=_joined_result(record, runners),
    )


def _runner(name: str, run: RunRecord) -> Runner:
    blocks = complete_blocks(run.draws, run.trials)
    terms = run.plan.terms
    assert isinstance(terms, GatePlan), "a slice is a gate"
    costs: dict[str, ContrastCosts] = {}
    warnings: list[CampaignWarning] = []
    for metric in terms.metrics if blocks else ():
        try:
            contrast_costs = costs_of_contrasts(run.plan, blocks, metric)
        except UnusableInput as error:
            warnings.append(CampaignWarning("metric_unknown", error.what, error.hint or ""))
        else:
            costs |= {benchmark_of(run.plan, each): each for each in contrast_costs}
    return Runner(name, run, blocks, costs, tuple(warnings))


def _terms_of(record: RunRecord) -> GatePlan:
    terms = record.plan.terms
    assert isinstance(terms, GatePlan), "a slice is a gate"
    return terms


def _joined_result(record: RunRecord, runners: Sequence[Runner]) -> GateResult | None:
    """Judge all benchmarks on all runners together; ``None`` if no runner has a block."""
    terms, judgement = record.plan.terms, record.plan.judgement
    assert isinstance(terms, GatePlan), "a join is a gate"
    names = list(dict.fromkeys(name for runner in runners for name in runner.costs))
    if not names:
        return None
    present = [[runner for runner in runners if name in runner.costs] for name in names]
    decisions = judge_joined(
        [
            [runner.costs[name].paired_blocks for runner in having]
            for name, having in zip(names, present, strict=True)
        ],
        min_effect=judgement.min_effect,
        alpha=judgement.alpha,
    )
    rows = tuple(
        _row(
            name,
            having,
            decision,
            judgement.min_effect,
            judgement.alpha / len(names),
            terms.places.get(name),
        )
        for name, having, decision in zip(names, present, decisions, strict=True)
    )
    outcomes = Counter(row.outcome for row in rows)
    return GateResult(
        baseline=terms.baseline,
        candidate=terms.candidate,
        min_effect=judgement.min_effect,
        passed=not (outcomes["slower"] or (terms.fails_undecided and outcomes["undecided"])),
        rows=rows,
        summary=_joined_sentence(terms, rows, outcomes, judgement.min_effect, len(runners)),
        bisect_lines=joined_bisect_lines(
            {
                row.benchmark: terms.bisect_argvs[row.benchmark]
                for row in rows
                if row.outcome == "slower" and row.benchmark in terms.bisect_argvs
            }
        ),
        failures={
            f"{name} on {runner.name}": reason
            for runner in runners
            for name, reason in _terms_of(runner.record).failures.items()
        },
        runners=tuple(runner.name for runner in runners),
        alpha=judgement.alpha,
    )


def _row(
    name: str,
    runners: Sequence[Runner],
    decision: JoinedDecision,
    min_effect: float,
    level_of_differences: float,
    place: SourcePlace | None,
) -> GateRow:
    mean, level = decision.mean, decision.level
    claims = _claims_about(name, runners, level_of_differences)
    hosts = tuple(
        GateRunner(
            host=runner.name,
            run=runner.record.id,
            ratio=verdict.ratio,
            ratio_ci=verdict.ratio_ci,
            blocks=verdict.blocks,
            environment={
                fact: runner.record.environment[fact]
                for fact in HOST_FACTS
                if fact in runner.record.environment
            },
            baseline_median=finite_median(runner.costs[name].paired_blocks.baseline),
            candidate_median=finite_median(runner.costs[name].paired_blocks.candidate),
            equivalence_ci=verdict.equivalence_ci,
            outcome=outcome,
            differs=claim.direction,
        )
        for runner, verdict, outcome, claim in zip(
            runners, decision.runners, decision.runner_outcomes, claims, strict=True
        )
    )
    row = GateRow(
        benchmark=name,
        metric=runners[0].costs[name].metric,
        baseline_median=None,
        candidate_median=None,
        ratio=mean.ratio,
        ratio_ci=mean.ratio_ci,
        significance_level=level,
        blocks=sum(host.blocks for host in hosts),
        outcome=decision.outcome,
        summary="",
        equivalence_ci=mean.equivalence_ci,
        equivalence_level=decision.runners[0].equivalence_level,
        hosts=hosts,
        mean_outcome=decision.mean_outcome,
        place=place,
    )
    return replace(row, summary=_row_sentence(row, min_effect))


def _claims_about(name: str, runners: Sequence[Runner], level: float) -> tuple[HostClaims, ...]:
    """Return which runners differ; runners of one machine never do."""
    hosts = []
    for runner in runners:
        host = runner.record.host
        identity = runner.record.identity if host is None else host.identity
        blocks = runner.costs[name].paired_blocks
        hosts.append(HostBlocks(runner.name, identity, blocks, 1 / len(runners), "finished"))
    return claims_about_hosts(hosts, alpha=level)


def _row_sentence(row: GateRow, min_effect: float) -> str:
    claim = f"slower by more than {min_effect:g} %"
    subject = _runners_phrase(len(row.hosts))
    match row.outcome:
        case "slower":
            return f"{row.benchmark} is {claim} {'; '.join(_slower_clauses(row))}."
        case "passes":
            return f"{row.benchmark} is not {claim} on any of {subject}."
        case "undecided":
            blocks = counted(row.blocks, "block")
            return (
                f"whether {row.benchmark} is {claim} on any of {subject} is not known after "
                f"{blocks}."
            )


def _slower_clauses(row: GateRow) -> Iterator[str]:
    """Yield where a benchmark is slower, and by how much at least."""
    slower = [host for host in row.hosts if host.outcome == "slower"]
    subject = _runners_phrase(len(row.hosts))
    if len(slower) == len(row.hosts) > 1:
        lows = [host.equivalence_ci[0] for host in slower]
        known_lows = [low for low in lows if low is not None]
        low = min(known_lows) if len(known_lows) == len(lows) else None
        yield f"on each of {subject}{_extent(low)}"
        return
    for host in slower:
        yield f"on {host.host}{_extent(host.equivalence_ci[0])}"
    if row.mean_outcome == "slower" and len(row.hosts) > 1:
        yield f"on the mean over {subject}{_extent(row.equivalence_ci[0])}"
    elif not slower:
        yield f"on at least one of {subject}, and which one is not known"


def _extent(low: float | None) -> str:
    return " (it ran out of time)" if low is None else f" (by at least {100 * (low - 1):.3g} %)"


def _runners_phrase(count: int) -> str:
    return "this runner" if count == 1 else f"these {count} runners"


def _joined_sentence(
    terms: GatePlan,
    rows: Sequence[GateRow],
    outcomes: Counter[GateOutcome],
    min_effect: float,
    runner_count: int,
) -> str:
    revisions = f"{terms.candidate.label} against {terms.baseline.label}"
    if len(rows) == 1:
        return f"{revisions}: {rows[0].summary}"
    claim = f"slower by more than {min_effect:g} % on any of {_runners_phrase(runner_count)}"
    clause = f"none of {len(rows)} benchmarks is known to be {claim}"
    if slower := outcomes["slower"]:
        clause = f"{slower} of {len(rows)} benchmarks {'is' if slower == 1 else 'are'} {claim}"
    undecided_clause = f", {outcomes['undecided']} undecided" if outcomes["undecided"] else ""
    return f"{revisions}: {clause}{undecided_clause}."


def _conditions(runners: Sequence[Runner]) -> Iterator[ConditionResult]:
    """Yield each condition of any runner, with its trials on all runners; costs are not pooled."""
    trials: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    conditions: dict[str, Condition] = {}
    for runner in runners:
        planned = runner.record.plan.conditions
        conditions |= {
            condition.name: condition for condition in planned if condition.name not in conditions
        }
        analysed = itertools.chain.from_iterable(runner.blocks.values())
        trials.update(planned[trial.condition].name for trial in analysed)
        failures.update(
            planned[trial.condition].name
            for trial in runner.record.trials
            if trial.failure is not None
        )
    for name, condition in conditions.items():
        yield ConditionResult(
            name=name,
            levels=condition.levels,
            command=condition.command,
            trials=trials[name],
            failures=failures[name],
            metrics={},
        )


def _warnings(runners: Sequence[Runner]) -> Iterator[CampaignWarning]:
    """Yield the warnings about benchmarks that some runners lack, and those of the slices."""
    names = dict.fromkeys(name for runner in runners for name in runner.costs)
    for name in names:
        having = [runner.name for runner in runners if name in runner.costs]
        if len(having) < len(runners):
            yield CampaignWarning(
                "not_on_every_runner",
                f"{name} ran only on {names_of(having)}, and was judged by that alone",
                "run the same benchmarks in each job",
            )
    for runner in runners:
        if not runner.blocks:
            yield CampaignWarning(
                "runner_without_block",
                f"{runner.name}: no block is complete; no result has a block from there",
                "raise --budget",
            )
    runners_by_warning: dict[CampaignWarning, list[str]] = defaultdict(list)
    for runner in runners:
        of_slice = warnings_of(runner.record, (), None, runner.blocks)
        for warning in (*of_slice, *runner.warnings):
            runners_by_warning[warning].append(runner.name)
    for warning, runner_names in runners_by_warning.items():
        summary = f"{names_of(runner_names)}: {warning.summary}"
        yield CampaignWarning(warning.code, summary, warning.hint)
