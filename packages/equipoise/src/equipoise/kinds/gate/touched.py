"""Order last the benchmarks of a gate that run no file of the diff: ``equipoise gate --touched``.

The files of a benchmark come from one observed run of the baseline, and stay in the plan of the
gate. A later gate uses them again if the same benchmark has the same command, and if its new
baseline differs neither in a file whose functions ran, nor outside of functions in a file that was
imported, nor in a file that was opened. Then the benchmark would run the same files.

The order only decides who gets the budget first. No verdict depends on it (docs/methods/gate.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from equipoise.kinds.gate.earlier import command_outside_checkout, earlier_gates
from equipoise.kinds.gate.terms import GatePlan, KnownFiles, TouchedOrder
from equipoise.kinds.gate.verdict import has_schedule
from equipoise.ledger import Ledger
from equipoise.model.plan import Condition, Plan
from equipoise.model.quantities import counted
from equipoise.model.revisions import BENCHMARK
from equipoise.report.units import waiting_time
from equipoise.revisions.build_cache import digest
from equipoise.revisions.executed_files import (
    ObservedFiles,
    blob_content,
    changes_of,
    differ_inside_functions,
    observe_files,
    tracked_blobs,
)
from equipoise.revisions.git import Repository
from equipoise.revisions.plan import Checkout, RevisionsRequest
from equipoise.shared.safe_text import short_line
from equipoise.shared.spelling import option


class _Evidence(Struct, frozen=True):
    """The files of one benchmark, and when they were observed."""

    files: ObservedFiles
    commit: str
    observed_at: float


def with_touched_order(
    plan: Plan,
    request: RevisionsRequest,
    checkouts: tuple[Checkout, Checkout],
    ledger: Ledger,
    scratch: Path,
    *,
    now: float,
    show: Callable[[str], None],
) -> tuple[Plan, str]:
    """Return the plan of a gate in which untouched benchmarks come last, and a line about it.

    ``checkouts`` are those of the baseline and of the candidate, ``scratch`` is a private folder,
    ``now`` is in seconds since 1970. ``show`` is called with a line about each observed run.

    Raise `UnusableInput` if git fails.
    """
    reason = _reason_without_order(plan, request)
    if reason is not None:
        return plan, f"{option('touched')} changes nothing: {reason}"
    terms = plan.terms
    assert isinstance(terms, GatePlan)
    baseline, candidate = checkouts
    blobs = tracked_blobs(request.repository, baseline.revision.commit)
    changes = changes_of(
        request.repository,
        baseline.revision,
        candidate.revision,
        (baseline.tree, candidate.tree),
    )
    conditions = [plan.conditions[contrast.baseline] for contrast in plan.contrasts]
    keys = [_key(plan, index) for index in range(len(conditions))]
    evidence = _kept_evidence(ledger, set(keys), request.repository, blobs)
    build_input = next(changes.build_inputs, None) if request.build is not None else None
    for index, (key, condition) in enumerate(zip(keys, conditions, strict=True), start=1):
        if key in evidence or build_input is not None:
            continue
        name = short_line(condition.levels[BENCHMARK])
        show(f"observing the files of benchmark {index} of {len(keys)}: {name}")
        files = observe_files(
            condition, baseline, blobs, request.tool, scratch, request.limits.timeout_s
        )
        if files is not None:
            evidence[key] = _Evidence(files, baseline.revision.commit, now)
    unknown = {
        index: why
        for index, key in enumerate(keys)
        if (why := _unknown_because(evidence.get(key), build_input)) is not None
    }
    untouched = tuple(
        index
        for index, key in enumerate(keys)
        if index not in unknown and not changes.touch(evidence[key].files)
    )
    order = _order(untouched, evidence, blobs)
    sentence = _sentence(conditions, unknown, untouched, list(evidence.values()), now)
    return replace(plan, terms=replace(terms, touched=order)), sentence


def _reason_without_order(plan: Plan, request: RevisionsRequest) -> str | None:
    """Return the reason why no benchmark can come last; ``None`` if benchmarks are scheduled."""
    tool = request.tool
    if not has_schedule(plan, plan.stopping):
        if tool is not None and tool.listing is None:
            return f"{tool.name} runs all benchmarks in one process"
        if len(plan.contrasts) == 1:
            return "there is only one benchmark"
        return "every block runs all undecided benchmarks"
    if tool is not None and not tool.records_files:
        return f"the files that benchmarks of {tool.name} run are not known"
    return None


def _key(plan: Plan, index: int) -> str:
    condition = plan.conditions[plan.contrasts[index].baseline]
    return digest([condition.levels[BENCHMARK], command_outside_checkout(condition)])


def _kept_evidence(
    ledger: Ledger, keys: set[str], repository: Repository, blobs: Mapping[str, str]
) -> dict[str, _Evidence]:
    """Return the evidence of earlier gates that also holds for the baseline with these blobs."""

    @cache
    def has_same_outline(path: str, blob: str) -> bool:
        if not path.endswith(".py") or path not in blobs:
            return False
        before, after = (blob_content(repository, name) for name in (blob, blobs[path]))
        return before is not None and after is not None and differ_inside_functions(before, after)

    def holds(known: KnownFiles, files: tuple[tuple[str, str], ...]) -> bool:
        # The ledger may have gates of somebody else.
        if not set(range(len(files))).issuperset((*known.ran, *known.read)):
            return False
        return all(blobs.get(files[index][0]) == files[index][1] for index in known.ran) and all(
            blobs.get(path) == blob or has_same_outline(path, blob)
            for path, blob in (files[index] for index in known.read)
        )

    kept: dict[str, _Evidence] = {}
    for record in earlier_gates(ledger):
        touched = record.plan.terms.touched if isinstance(record.plan.terms, GatePlan) else None
        for known in () if touched is None else touched.benchmarks:
            assert touched is not None
            is_needed = known.benchmark in keys and known.benchmark not in kept
            if is_needed and holds(known, touched.files):
                ran, read = (
                    frozenset(touched.files[index][0] for index in indices)
                    for indices in (known.ran, known.read)
                )
                files = ObservedFiles(ran, read, known.unknown_because)
                kept[known.benchmark] = _Evidence(files, known.commit, known.observed_at)
    return kept


def _unknown_because(evidence: _Evidence | None, build_input: str | None) -> str | None:
    if build_input is not None:
        return f"the build may read {build_input}, which differs"
    return "its observed run failed" if evidence is None else evidence.files.unknown_because


def _order(
    untouched: tuple[int, ...], evidence: Mapping[str, _Evidence], blobs: Mapping[str, str]
) -> TouchedOrder:
    all_files = [known.files for known in evidence.values()]
    paths = sorted({path for files in all_files for path in files.ran | files.read})
    places = {path: index for index, path in enumerate(paths)}
    return TouchedOrder(
        untouched,
        tuple((path, blobs[path]) for path in paths),
        tuple(
            KnownFiles(
                key,
                known.commit,
                known.observed_at,
                tuple(sorted(places[path] for path in known.files.ran)),
                tuple(sorted(places[path] for path in known.files.read)),
                known.files.unknown_because,
            )
            for key, known in evidence.items()
        ),
    )


def _sentence(
    conditions: list[Condition],
    unknown: Mapping[int, str],
    untouched: tuple[int, ...],
    evidence: list[_Evidence],
    now: float,
) -> str:
    touched_count = len(conditions) - len(unknown) - len(untouched)
    benchmarks = counted(len(conditions), "benchmark")
    clauses = [f"{touched_count} of {benchmarks} may run a changed file"]
    if unknown:
        index, why = next(iter(unknown.items()))
        example = short_line(f"{conditions[index].levels[BENCHMARK]}: {why}")
        clauses.append(f"{_verb(len(unknown))} unknown and may, too ({example})")
    clauses.append(f"{_verb(len(untouched))} measured last")
    earlier = [known.observed_at for known in evidence if known.observed_at < now]
    if earlier:
        age = waiting_time(now - min(earlier))
        clauses.append(f"{len(earlier)} observed up to {age} ago")
    return f"{option('touched')}: {', '.join(clauses)}"


def _verb(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"
