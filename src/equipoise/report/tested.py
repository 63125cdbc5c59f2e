"""What interventions closed of a gap: on the screen, and as words for the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.model.result import Comparison, ResultDocument
from equipoise.model.why import Tested
from equipoise.report.safe_text import visible
from equipoise.stats.intervention import NARROW, describe_fraction

COLUMNS = ("changed", "closes", "by candidate + baseline", "in seconds", "blocks", "outcome")
NOTE = (
    "closes: the share of the ratio that is gone with it, with an interval that holds however long "
    "one looks, all together at the campaign's alpha; by whose coming nearer to the other "
    "(docs/why.md)"
)
UNKNOWN = "unknown"
STAYS_OPEN = "No intervention that was tried closes the gap: what causes it stays open."
TOO_FEW_BLOCKS = (
    "Nothing that was tried is decided yet: more blocks would tell (equipoise resume, docs/why.md)."
)
STYLE = {"confirmed": "bold green", "refuted": "dim", "open": ""}


@dataclass(frozen=True, slots=True)
class InterventionsView:
    """The section of a page."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    summary: str
    unknown: tuple[str, ...]
    """Why there is no share, of those without one."""
    advice: tuple[str, ...]
    """Lines with which a user keeps what was confirmed."""
    note: str


def interventions_view(document: ResultDocument) -> InterventionsView | None:
    """What the page says of interventions; ``None`` if none was tried."""
    found = list(_each_once(document))
    if not found:
        return None
    return InterventionsView(
        title=_title(document),
        columns=COLUMNS,
        rows=tuple(_cells(one) for one in found),
        summary=_summary(found),
        unknown=tuple(
            f"{one.summary}: {one.unknown_because}" for one in found if one.unknown_because
        ),
        advice=tuple(f"to keep it ({one.summary}): {one.advice}" for one in found if one.advice),
        note=NOTE,
    )


def print_tested(console: Console, document: ResultDocument) -> None:
    """Print what each intervention closed; nothing if none was tried."""
    view = interventions_view(document)
    if view is None:
        return
    console.print()
    console.print(Text(visible(view.title), style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in view.columns:
        table.add_column(heading, justify="right" if heading == "blocks" else "left")
    for row in view.rows:
        table.add_row(*(Text(visible(cell)) for cell in row[:-1]), Text(row[-1], STYLE[row[-1]]))
    console.print(table)
    if view.summary:
        console.print(view.summary)
    for line in view.unknown:
        console.print(Text(visible(line)))
    for line in view.advice:
        console.print(Text(visible(line), style="bold"))
    console.print(view.note, style="dim", highlight=False)


def _summary(found: list[Tested]) -> str:
    """What is to be said where nothing is confirmed."""
    if any(one.outcome == "confirmed" for one in found):
        return ""
    return TOO_FEW_BLOCKS if any(map(_may_yet_be_confirmed, found)) else STAYS_OPEN


def _may_yet_be_confirmed(one: Tested) -> bool:
    if one.outcome != "open" or one.unknown_because is not None:
        return False
    low, high = one.share_ci
    return low is None or high is None or high - low > NARROW


def _each_once(document: ResultDocument) -> Iterator[Tested]:
    """Every intervention, whichever causes it tests; what was tried first."""
    found = {test.intervention: test for cause in document.why for test in cause.tested}
    yield from sorted(found.values(), key=lambda one: one.blocks == 0)


def _title(document: ResultDocument) -> str:
    gap = _gap(document)
    if gap is None or gap.ratio is None:
        return "What was changed on both conditions, and what that closes of the gap"
    low, high = gap.ratio_ci
    interval = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    return (
        f"{gap.candidate} takes {gap.ratio:.2f}{interval} times as long as {gap.baseline}. "
        "What was changed on both:"
    )


def _gap(document: ResultDocument) -> Comparison | None:
    """The comparison that is explained."""
    of_time = [one for one in document.comparisons if one.metric == "wall_s"]
    extra = document.extra_time
    if extra is not None:
        of_time = [
            one
            for one in of_time
            if (one.baseline, one.candidate) == (extra.baseline, extra.candidate)
        ]
    return of_time[0] if of_time else None


def _cells(one: Tested) -> tuple[str, ...]:
    return (
        one.summary,
        describe_fraction(one.share, one.share_ci),
        _parts(one),
        describe_fraction(one.share_of_seconds, one.share_of_seconds_ci),
        str(one.blocks),
        one.outcome,
    )


def _parts(one: Tested) -> str:
    """What of it comes from either condition: ``96 % + 1 %``; medians, they need not add up."""
    if one.share is None or one.from_candidate is None or one.from_baseline is None:
        return UNKNOWN
    return f"{round(100 * one.from_candidate)} % + {round(100 * one.from_baseline)} %"
