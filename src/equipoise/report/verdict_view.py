"""What stands first on a page: verdicts, or what an imported run has instead."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.interval import Interval
from equipoise.model.result import ResultDocument
from equipoise.report.strip import Strip
from equipoise.report.units import percent_change

NO_VERDICT = "imported"


@dataclass(frozen=True, slots=True)
class VerdictView:
    """One comparison on the primary metric."""

    verdict: str
    words: str
    candidate: str
    baseline: str
    change: str
    interval: str
    coverage: str
    strip: Strip | None
    facts: tuple[tuple[str, str], ...]
    because: str = ""
    """What causes it, as far as that was looked for."""


def imported_views(document: ResultDocument) -> tuple[VerdictView, ...]:
    """The comparisons of an imported run, in the place of verdicts: they are none."""
    imported = document.imported
    if imported is None:
        return ()
    return tuple(
        VerdictView(
            verdict=NO_VERDICT,
            words=one.summary,
            candidate=one.candidate,
            baseline=one.baseline,
            change="unknown" if one.ratio is None else percent_change(one.ratio),
            interval="unknown" if one.unknown else ratio_interval(one.ratio_ci),
            coverage=f"ordinary {100 * (1 - one.level):g} %",
            strip=None,
            facts=(
                ("What this is", imported.summary),
                ("Estimand", f"{one.estimand} ({one.method})"),
                ("Trials", f"{one.baseline_trials} against {one.candidate_trials}"),
                ("Holds for", one.scope),
            ),
        )
        for one in imported.comparisons
    )


def ratio_interval(interval: Interval) -> str:
    """An interval of ratios as changes; an open end is unlimited."""
    low, high = interval
    if low is None and high is None:
        return "still unlimited"
    lower = "unlimited" if low is None else percent_change(low)
    return f"{lower} to {'unlimited' if high is None else percent_change(high)}"
