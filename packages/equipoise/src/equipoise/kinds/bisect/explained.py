"""Explain why a culprit differs from its parent, and show hunks of the diff from its parent.

A hunk is a part of a diff. Hunks that name a slower function are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import PurePosixPath

import msgspec
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks
from equipoise.kinds.bisect.analysis import bisect_results
from equipoise.kinds.bisect.terms import (
    BisectDocument,
    Culprit,
    DiffHunk,
    ExplainedCulprit,
    bisection_terms,
)
from equipoise.model.plan import PRIMARY_METRIC, Contrast, Plan
from equipoise.model.record import DIFF, RunRecord
from equipoise.model.result import Comparison
from equipoise.model.revisions import REVISION, CommitDiff
from equipoise.model.why import Explanation
from equipoise.revisions.terms import benchmarks_of
from equipoise.why.causes.unclaimed import is_named, short_name
from equipoise.why.differences.changes import Difference
from equipoise.why.differences.wording import MIN_MENTIONED_FRACTION
from equipoise.why.explanation import GapEvidence
from equipoise.why.kind import JudgedContrast, WhyKind

MAX_HUNKS = 5
"""Maximum number of hunks that are shown."""
MAX_LINES = 40
"""Maximum number of lines of a hunk that are shown."""
MAX_LINE_LETTERS = 200
"""Maximum number of letters of a line that are shown."""
_FUNCTION_KEYS = ("function", "called_by", "caller")
"""Keys of evidence that name a function of the program."""
_COMPILER_SUFFIX = re.compile(r"(\.(constprop|part|isra|cold|lto_priv|llvm)\b.*|::h[0-9a-f]{16})$")
_ARGUMENT_TYPES = re.compile(r"\([^()]*\)( const)?$")
_TYPE_PARAMETERS = re.compile(r"<[^<>]*>")
_IDENTIFIER = re.compile(r"\b[^\W\d]\w*")
_FILE_NAME_OR_HUNK = re.compile(
    r"^(?:--- a/|\+\+\+ b/)(?P<file>.*)|^@@ .*? @@.*(?:\n[ +\-\\].*)*", re.MULTILINE
)
"""The name of a file (group ``file``), or a whole hunk."""
_TEXT_SUFFIXES = frozenset(
    {".json", ".lock", ".md", ".rst", ".toml", ".txt", ".xml", ".yaml", ".yml"}
)
"""Suffixes of files without code, in which a word is not a use of a function."""


class BisectWhy(WhyKind):
    """The explanation of the culprits of a bisection."""

    no_gap_reason = "has not named a commit, and only a named commit can be explained"
    nothing_to_explain_reason = "no commit is named"

    def judged_contrasts(self, record: RunRecord, blocks: Blocks) -> Sequence[JudgedContrast]:
        """Return the contrast of each culprit with its parent."""
        return list(_culprit_contrasts(record, blocks))

    def with_campaign_verdict(self, judged: JudgedContrast, comparison: Comparison) -> Comparison:
        """Return the comparison of a culprit with its parent, as the search judged it.

        If the search compared another metric, the comparison does not change.
        """
        culprit = judged.finding
        assert isinstance(culprit, Culprit)
        ratio = culprit.ratio
        if judged.metric != PRIMARY_METRIC or ratio is None:
            return comparison
        return replace(
            comparison,
            verdict="slower" if ratio > 1.0 else "faster",
            ratio=ratio,
            ratio_ci=culprit.ratio_ci,
            significance_level=culprit.significance_level,
            e_value=culprit.e_value,
            summary=culprit.summary,
        )

    def with_explanation(
        self,
        document: BisectDocument,
        record: RunRecord,
        gap_evidence: GapEvidence,
        causes: Sequence[Explanation],
        experiment: RunRecord | None,
    ) -> BisectDocument:
        """Return the document with an explained culprit in the first search that named it."""
        if not document.results:
            return document
        contrast, difference = gap_evidence.gap.contrast, gap_evidence.difference
        explained = _explained_culprit(record, contrast, difference, causes, experiment)
        return _with_explained(document, record.plan, contrast, explained)


def _culprit_contrasts(record: RunRecord, blocks: Blocks) -> Iterator[JudgedContrast]:
    """Yield each culprit's contrast with its parent, but no merge if its branch has a culprit."""
    plan, terms = record.plan, bisection_terms(record.plan)
    indices = {commit.name: index for index, commit in enumerate(terms.commits_with_branches)}
    results = bisect_results(record, blocks)
    yielded_pairs: set[tuple[int, int]] = set()
    for benchmark, result in zip(benchmarks_of(plan), results, strict=bool(results)):
        explained_merges = {branch.merge for branch in result.branches if branch.culprits}
        for culprit in result.every_culprit:
            parent, commit = (
                terms.condition_of(benchmark.command_index, indices[name])
                for name in (culprit.parent, culprit.commit)
            )
            # Several benchmarks of one command may have the same culprit.
            if culprit.commit not in explained_merges and (parent, commit) not in yielded_pairs:
                yielded_pairs.add((parent, commit))
                yield JudgedContrast(Contrast(parent, commit, REVISION), benchmark.metric, culprit)


def _with_explained(
    document: BisectDocument, plan: Plan, contrast: Contrast, explained: ExplainedCulprit
) -> BisectDocument:
    if document.bisect is not None:
        return replace(document, bisect=replace(document.bisect, explained_culprit=explained))
    terms = bisection_terms(plan)
    command, results = terms.command_of(contrast.candidate), list(document.bisects)
    for index, benchmark in enumerate(benchmarks_of(plan)):
        culprits = {culprit.commit for culprit in results[index].every_culprit}
        if benchmark.command_index == command and explained.commit in culprits:
            results[index] = replace(results[index], explained_culprit=explained)
            break
    return replace(document, bisects=tuple(results))


def _explained_culprit(
    record: RunRecord,
    contrast: Contrast,
    difference: Difference,
    causes: Sequence[Explanation],
    experiment: RunRecord | None,
) -> ExplainedCulprit:
    """Return the explanation of a culprit; the largest of ``causes`` comes first."""
    terms = bisection_terms(record.plan)
    functions = tuple(dict.fromkeys((*_named_functions(causes), *_slower_functions(difference))))
    diff = _recorded_diff(record, contrast.candidate)
    hunks = [] if diff is None else list(_hunks_naming(diff.patch, functions))
    return ExplainedCulprit(
        commit=terms.commits_with_branches[terms.commit_of(contrast.candidate)].name,
        parent=terms.commits_with_branches[terms.commit_of(contrast.baseline)].name,
        run=None if experiment is None else experiment.id,
        functions=functions,
        files=() if diff is None else tuple(diff.files.splitlines()),
        hunks=tuple(hunks[:MAX_HUNKS]),
        omitted=len(hunks[MAX_HUNKS:]),
        diff_is_cut=diff is not None and diff.is_cut,
    )


def _named_functions(causes: Sequence[Explanation]) -> Iterator[str]:
    """Yield the functions that the causes name, except refuted causes."""
    open_causes = [cause for cause in causes if cause.status != "refuted"]
    for key, cause in product(_FUNCTION_KEYS, open_causes):
        name = cause.evidence.get(key)
        if isinstance(name, str) and _identifier(name):
            yield name


def _slower_functions(difference: Difference) -> Iterator[str]:
    """Yield the functions that explain a relevant share of the gap, the largest share first."""
    min_extra = MIN_MENTIONED_FRACTION * difference.wall_time.extra
    extra_times = {function: time.extra for function, time in difference.functions.items()}
    slower = [function for function, extra in extra_times.items() if extra >= min_extra > 0.0]
    for function in sorted(slower, key=lambda function: -extra_times[function]):
        if is_named(function.name):
            yield short_name(function)


def _recorded_diff(record: RunRecord, condition: int) -> CommitDiff | None:
    for observation in reversed(record.observations):
        is_diff = (observation.source, observation.condition) == (DIFF, condition)
        if is_diff and observation.document is not None:
            return msgspec.json.decode(observation.document, type=CommitDiff)
    return None


def _identifier(name: str) -> str:
    """Return a function's name without namespaces and types; empty if the name is unknown."""
    name = _COMPILER_SUFFIX.sub("", name)
    name = _ARGUMENT_TYPES.sub("", name)
    while (shorter := _TYPE_PARAMETERS.sub("", name)) != name:
        name = shorter
    words: list[str] = _IDENTIFIER.findall(name)
    return words[-1] if words else ""


def _hunks_naming(patch: str, functions: Sequence[str]) -> Iterator[DiffHunk]:
    """Yield the hunks that name a function; hunks with the name in a changed line come first."""
    hunks = [
        (file, lines)
        for file, lines in _hunks(patch)
        if PurePosixPath(file).suffix not in _TEXT_SUFFIXES
    ]
    yielded_indices: set[int] = set()
    for only_changed in (True, False):
        for function in functions:
            find_name = re.compile(rf"\b{re.escape(_identifier(function))}\b").search
            for index, (file, lines) in enumerate(hunks):
                searched_lines = [line for line in lines if not (only_changed and line[:1] == " ")]
                if index not in yielded_indices and any(map(find_name, searched_lines)):
                    yielded_indices.add(index)
                    yield DiffHunk(file, function, tuple(_shortened_lines(lines)))


def _hunks(patch: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the file and the lines of each hunk of a patch."""
    file = ""
    for match in _FILE_NAME_OR_HUNK.finditer(patch):
        if match["file"] is None:
            yield file, match[0].split("\n")
        else:
            file = match["file"]


def _shortened_lines(lines: Sequence[str]) -> Iterator[str]:
    for line in lines[:MAX_LINES]:
        yield line if len(line) <= MAX_LINE_LETTERS else f"{line[: MAX_LINE_LETTERS - 1]}…"
    if len(lines) > MAX_LINES:
        yield f"… {len(lines) - MAX_LINES} more lines"
