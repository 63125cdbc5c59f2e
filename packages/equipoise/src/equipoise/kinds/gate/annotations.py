"""Annotations of the lines at which the slower benchmarks of a gate are defined.

GitHub shows them in a check (https://docs.github.com/rest/checks/runs), GitLab in a Code Quality
report (https://docs.gitlab.com/ci/testing/code_quality/). The result of the gate may come from a
pull request of a stranger, so nothing of it becomes a link or a path outside of the repository.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Literal

import msgspec
from msgspec import Struct

from equipoise.kinds.gate.terms import GateDocument, GateResult, GateRow
from equipoise.model.quantities import counted
from equipoise.model.revisions import SourcePlace
from equipoise.report.renderers.markdown import line
from equipoise.shared.safe_text import MAX_LINE_LETTERS, MAX_NAME_LETTERS, short_line

CHECK_NAME = "Equipoise gate"
"""Name of the check. A later check of the same name replaces an earlier one in the pull request."""
_MAX_ANNOTATIONS = 500
"""Maximum number of annotations; GitHub takes 50 in one request."""
_MAX_PATH_LETTERS = 1000
_MAX_LINE = 10_000_000
_LINK_BEGINNING = re.compile(r"://|\bwww\.", re.IGNORECASE)
"""Text from which GitHub makes a link, even in plain text."""

Conclusion = Literal["success", "failure", "neutral"]


class Annotation(Struct, frozen=True):
    """A slower benchmark at the line of its definition."""

    place: SourcePlace
    title: str
    message: str
    key: str
    """Name of the benchmark and its metric."""


class Check(Struct, frozen=True):
    """The result of a gate as a check of GitHub shows it."""

    conclusion: Conclusion
    title: str
    note: str
    """Sentences in Markdown for the end of the summary; empty if all places are known."""
    annotations: tuple[Annotation, ...]


def check_of(gate: GateResult | None, head: str) -> Check:
    """Return the check of a gate on the commit ``head`` of a pull request."""
    if gate is None:
        return Check("neutral", "no gate was judged", "", ())
    conclusion: Conclusion = "failure"
    if gate.passed and not gate.failures:
        conclusion = "success" if gate.shortage is None else "neutral"
    annotations = tuple(annotations_of(gate))
    slower_rows = [row for row in gate.rows if row.outcome == "slower"]
    slower_count = len(slower_rows)
    title = (
        f"{slower_count or 'none'} of {counted(len(gate.rows), 'benchmark')} "
        f"slower by more than {gate.min_effect:g} %"
    )
    if gate.shortage is not None:
        title += f", {gate.shortage.undecided} undecided"
    if gate.failures:
        title += f", {len(gate.failures)} failed"
    notes: list[str] = []
    unknown_count = sum(_place_of(row) is None for row in slower_rows)
    if unknown_count:
        notes.append(
            f"For {unknown_count} of {counted(slower_count, 'slower benchmark')}, the line of the "
            "definition is not known."
        )
    if len(annotations) < slower_count - unknown_count:
        notes.append(f"Only the first {len(annotations)} have an annotation.")
    candidate = gate.candidate
    if annotations and candidate.commit != head:
        notes.append(
            f"Lines are those of {candidate.label}, which was measured; the head of the pull "
            "request may have other lines."
        )
    return Check(conclusion, title, "\n\n".join(map(line, notes)), annotations)


def annotations_of(gate: GateResult) -> Iterator[Annotation]:
    """Yield an annotation for each slower benchmark whose place is known."""
    count = 0
    for row in gate.rows:
        place = _place_of(row)
        if row.outcome == "slower" and place is not None and count < _MAX_ANNOTATIONS:
            count += 1
            yield Annotation(
                place,
                _plain(f"slower: {row.benchmark}", MAX_NAME_LETTERS),
                _plain(row.summary, MAX_LINE_LETTERS),
                f"{row.benchmark} {row.metric}",
            )


def code_quality_report(document: GateDocument) -> bytes:
    """Return the annotations as a Code Quality report of GitLab, in JSON."""
    gate = document.gate
    return msgspec.json.format(
        msgspec.json.encode(
            [
                {
                    "description": annotation.message,
                    "check_name": "equipoise-gate",
                    "fingerprint": _fingerprint(annotation),
                    "severity": "major",
                    "location": {
                        "path": annotation.place.path,
                        "lines": {"begin": annotation.place.line},
                    },
                }
                for annotation in ([] if gate is None else annotations_of(gate))
            ]
        )
    )


def _place_of(row: GateRow) -> SourcePlace | None:
    """Return the place of a benchmark's definition if it can be in the repository."""
    place = row.place
    if place is None:
        return None
    path = PurePosixPath(place.path)
    is_valid = (
        0 < len(place.path) <= _MAX_PATH_LETTERS
        and place.path.isprintable()
        and str(path) == place.path
        and not path.is_absolute()
        and ".." not in path.parts
        and 1 <= place.line <= _MAX_LINE
    )
    return place if is_valid else None


def _fingerprint(annotation: Annotation) -> str:
    """Return the same text for the same benchmark, also if its line changes."""
    text = f"{annotation.place.path}\0{annotation.key}"
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _plain(text: str, max_letters: int) -> str:
    """Return a short line of plain text without a link."""
    return short_line(_LINK_BEGINNING.sub(lambda match: f"{match[0]} ", text), max_letters)
