"""Why one condition of a campaign is slower, as far as is known: pure functions of its record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import PurePosixPath
from typing import cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.commits import bisection_of
from equipoise.model.bisection import CommitDiff, DiffHunk, ExplainedCulprit
from equipoise.model.plan import Contrast, Plan
from equipoise.model.record import DIFF, RunRecord
from equipoise.model.result import ResultDocument
from equipoise.model.why import Explanation, ExtraTime, PartName, TimePart
from equipoise.stats.spread import KIND as SPREAD
from equipoise.why.causes.ranking import suggested_causes
from equipoise.why.causes.remaining import is_named, short_name
from equipoise.why.differences.changes import Difference
from equipoise.why.differences.compare import difference_between
from equipoise.why.differences.wording import WORTH_SAYING, where_the_time_goes
from equipoise.why.evidence.sources import (
    EvidenceSet,
    decode_evidence,
    latest_conditions,
    observations_of_pair,
)
from equipoise.why.experiment.outcome import tested_causes
from equipoise.why.gap import Gap, explains_gap, gaps_of

MOST_HUNKS = 5
MOST_LINES = 40
"""Number of lines of a hunk that are shown."""
LONGEST_LINE = 200
"""Letters of a line that are shown."""
_FUNCTIONS = ("function", "called_by", "caller")
"""Keys of evidence that name a function of the program."""
_OF_COMPILER = re.compile(r"(\.(constprop|part|isra|cold|lto_priv|llvm)\b.*|::h[0-9a-f]{16})$")
_ARGUMENTS = re.compile(r"\([^()]*\)( const)?$")
_PARAMETERS = re.compile(r"<[^<>]*>")
_IDENTIFIER = re.compile(r"\b[^\W\d]\w*")
_FILE_OR_HUNK = re.compile(
    r"^(?:--- a/|\+\+\+ b/)(?P<file>.*)|^@@ .*? @@.*(?:\n[ +\-\\].*)*", re.MULTILINE
)
_NO_SOURCE = frozenset({".json", ".lock", ".md", ".rst", ".toml", ".txt", ".xml", ".yaml", ".yml"})
"""Endings of files that hold prose or data: a word there is no use of a function."""


class GapEvidence(Struct, frozen=True):
    """A gap, and what its observations say of it."""

    gap: Gap
    evidence: EvidenceSet
    difference: Difference


def with_causes(
    document: ResultDocument,
    record: RunRecord,
    experiment: RunRecord | None,
    gap: Gap | None = None,
) -> ResultDocument:
    """Return the document of a campaign with the causes of a gap: by default the last observed one.

    ``experiment`` is the campaign that tested the causes, if there is one.
    """
    if gap is None:
        evidence = latest_evidence(record)
    else:
        extra, names = document.extra_time, (gap.comparison.baseline, gap.comparison.candidate)
        if extra is not None and (extra.baseline, extra.candidate) == names:
            return document
        evidence = evidence_of_gap(record, gap)
        document = replace(document, why=tuple(one for one in document.why if one.kind == SPREAD))
    extra_time = None if evidence is None else _extra_time(evidence)
    causes = _causes(record, evidence, experiment)
    if document.searches and evidence is not None:
        contrast = evidence.gap.contrast
        if experiment is not None and not explains_gap(experiment, record, contrast):
            experiment = None
        explained = _explained_culprit(record, contrast, evidence.difference, causes, experiment)
        document = _with_explained(document, record.plan, contrast, explained)
    return replace(document, why=(*document.why, *causes), extra_time=extra_time)


def _with_explained(
    document: ResultDocument, plan: Plan, contrast: Contrast, explained: ExplainedCulprit
) -> ResultDocument:
    """Return the document with an explained culprit in the first search that named it."""
    if document.bisect is not None:
        return replace(document, bisect=replace(document.bisect, explained=explained))
    terms = bisection_of(plan)
    process, searches = terms.process_of(contrast.candidate), list(document.bisects)
    for place, benchmark in enumerate(plan.commit_benchmarks):
        search = searches[place]
        names = {one.commit for one in search.every_culprit}
        if benchmark.process == process and explained.commit in names:
            searches[place] = replace(search, explained=explained)
            break
    return replace(document, bisects=tuple(searches))


def latest_evidence(record: RunRecord) -> GapEvidence | None:
    """Return what the observations of the gap that was observed last say; ``None`` without one."""
    conditions = latest_conditions(record.observations)
    for gap in gaps_of(record) if conditions else ():
        if gap.is_called and conditions <= {*gap.pair}:
            return evidence_of_gap(record, gap)
    return None


def evidence_of_gap(record: RunRecord, gap: Gap) -> GapEvidence:
    """Return what the observations of a gap say; without any, what its trials' accounts say."""
    baseline, candidate = gap.pair
    observations = observations_of_pair(record.observations, baseline, candidate)
    evidence = decode_evidence(observations, baseline, candidate)
    conditions = (record.plan.conditions[baseline], record.plan.conditions[candidate])
    return GapEvidence(gap, evidence, difference_between(gap.trials, evidence, conditions))


def _causes(
    record: RunRecord, evidence: GapEvidence | None, experiment: RunRecord | None
) -> tuple[Explanation, ...]:
    """Return the causes as an experiment showed them, else as evidence suggests, all open."""
    if record.plan.explains is not None:
        return tested_causes(record)
    if experiment is not None and (
        evidence is None or explains_gap(experiment, record, evidence.gap.contrast)
    ):
        return tested_causes(experiment)
    return () if evidence is None else suggested_causes(evidence.difference)


def _extra_time(evidence: GapEvidence) -> ExtraTime:
    """Return where the extra time goes."""
    comparison, difference = evidence.gap.comparison, evidence.difference
    gap_s = difference.gap.extra
    return ExtraTime(
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        slower=getattr(comparison, difference.slower),
        gap_s=gap_s,
        gap_s_ci=difference.gap.extra_ci,
        parts=tuple(
            TimePart(
                part=cast(PartName, name.removesuffix("_s")),
                baseline_s=change.baseline,
                candidate_s=change.candidate,
                extra_s=change.extra,
                extra_s_ci=change.extra_ci,
                share_of_gap=change.extra / gap_s if gap_s > 0 else None,
            )
            for name, change in difference.split.items()
        ),
        observed={
            source: (len(runs.baseline), len(runs.candidate))
            for source, runs in evidence.evidence.by_source().items()
            if runs.every
        },
        # Accounts that are not known stand beside each trial.
        unseen={
            source: remarks for source, remarks in difference.unseen.items() if source != "accounts"
        },
        summary=where_the_time_goes(difference),
    )


def _explained_culprit(
    record: RunRecord,
    contrast: Contrast,
    difference: Difference,
    causes: Sequence[Explanation],
    experiment: RunRecord | None,
) -> ExplainedCulprit:
    """Return what is known of a culprit that was observed.

    ``causes`` are those of its gap, the largest first; ``experiment`` is the campaign that tested
    them, if there is one.
    """
    terms = bisection_of(record.plan)
    functions = tuple(dict.fromkeys((*_functions(causes), *_longer_functions(difference))))
    diff = _diff_of(record, contrast.candidate)
    found = [] if diff is None else list(_hunks_of(diff.patch, functions))
    return ExplainedCulprit(
        commit=terms.every_commit[terms.commit_of(contrast.candidate)].name,
        parent=terms.every_commit[terms.commit_of(contrast.baseline)].name,
        run=None if experiment is None else experiment.id,
        functions=functions,
        files=() if diff is None else tuple(diff.files.splitlines()),
        hunks=tuple(found[:MOST_HUNKS]),
        omitted=len(found[MOST_HUNKS:]),
        diff_is_cut=diff is not None and diff.is_cut,
    )


def _functions(causes: Sequence[Explanation]) -> Iterator[str]:
    """Yield the functions that causes name; those of refuted causes are left out."""
    standing = [one for one in causes if one.status != "refuted"]
    for key, cause in product(_FUNCTIONS, standing):
        name = cause.evidence.get(key)
        if isinstance(name, str) and _identifier(name):
            yield name


def _longer_functions(difference: Difference) -> Iterator[str]:
    """Yield the functions with at least a twentieth of the gap, certain or not; largest first."""
    least = WORTH_SAYING * difference.gap.extra
    changes = [one for one in difference.functions.items() if one[1].extra >= least > 0.0]
    for function, _ in sorted(changes, key=lambda one: -one[1].extra):
        if is_named(function.name):
            yield short_name(function)


def _diff_of(record: RunRecord, condition: int) -> CommitDiff | None:
    for one in reversed(record.observations):
        if (one.source, one.condition) == (DIFF, condition) and one.document is not None:
            return msgspec.json.decode(one.document, type=CommitDiff)
    return None


def _identifier(name: str) -> str:
    """Return the last word of a function's name, as its source has it; empty without one."""
    name = _OF_COMPILER.sub("", name)
    name = _ARGUMENTS.sub("", name)
    while (shorter := _PARAMETERS.sub("", name)) != name:
        name = shorter
    words: list[str] = _IDENTIFIER.findall(name)
    return words[-1] if words else ""


def _hunks_of(patch: str, functions: Sequence[str]) -> Iterator[DiffHunk]:
    """Yield the hunks that name a function: first where it was changed, or a use of it was."""
    hunks = [one for one in _hunks(patch) if PurePosixPath(one[0]).suffix not in _NO_SOURCE]
    yielded: set[int] = set()
    for only_changed in (True, False):
        for function in functions:
            is_named = re.compile(rf"\b{re.escape(_identifier(function))}\b").search
            for place, (file, lines) in enumerate(hunks):
                searched = [line for line in lines if not (only_changed and line[:1] == " ")]
                if place not in yielded and any(map(is_named, searched)):
                    yielded.add(place)
                    yield DiffHunk(file, function, tuple(_shortened(lines)))


def _hunks(patch: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the file and the lines of each hunk of a patch."""
    file = ""
    for part in _FILE_OR_HUNK.finditer(patch):
        if part["file"] is None:
            yield file, part[0].split("\n")
        else:
            file = part["file"]


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    for line in lines[:MOST_LINES]:
        yield line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
    if len(lines) > MOST_LINES:
        yield f"… {len(lines) - MOST_LINES} more lines"
