"""Chart of a bisection: the pairs that ran, and the commits that are excluded, over the trials."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from equipoise.figures.building import count_axis
from equipoise.figures.gallery import Figure, FiguresKind, Sequences
from equipoise.kinds.bisect.terms import (
    BisectBlock,
    BisectBranch,
    BisectCommit,
    BisectDocument,
    BisectResult,
)
from equipoise.model.revisions import short_name
from equipoise.shared.chart_parts import (
    frame,
    labels,
    layer,
    plain_scale,
    point,
    rule,
    tooltips,
    top_legend,
)
from equipoise.shared.theme import color_of

HOW_TO_READ = (
    "Each vertical line is a block: the two commits at its ends ran in random order. A commit "
    "turns grey where it is excluded: it did not make the whole difference. Commits that are not "
    "grey at the right end may have made it. The diamond marks a culprit."
)
_KINDS = ("both ends of the search", "a pair between", "a commit against its parent")
_TRIALS_OF_A_BLOCK = 2
_NAME_MARGIN = 0.2
"""Fraction of the axis of trials that is kept free for the names of culprits."""


def bisection(result: BisectResult) -> alt.LayerChart:
    """Draw the search for the commits that made a difference."""
    title = f"The search: {result.benchmark}" if result.benchmark else "The search"
    return _search_chart(result, title, "from the good (0) to the bad one")


def branch(result: BisectBranch) -> alt.LayerChart:
    """Draw the search of the branch of a merge, which has at least one block."""
    title = f"The search of the branch of {short_name(result.merge)}"
    return _search_chart(result, title, "from where it began (0) to the merge's parent")


def _search_chart(
    result: BisectResult | BisectBranch, title: str, ends_of_axis: str
) -> alt.LayerChart:
    count = len(result.candidates)
    course = _with_exclusions(result.course)
    trials = {block.block: _TRIALS_OF_A_BLOCK * (place + 1) for place, block in enumerate(course)}
    last = max([_TRIALS_OF_A_BLOCK, *trials.values()])
    areas = list(_excluded_areas(result.candidates, trials, last))
    ends = {block.search: (block.earlier, block.later) for block in reversed(course)}
    blocks = [_block(result, block, ends[block.search], trials[block.block]) for block in course]
    culprits = [
        {
            "number": number,
            "until": last,
            "name": short_name(candidate.commit),
            "subject": candidate.subject,
            "author": candidate.author,
        }
        for number, candidate in enumerate(result.candidates, start=1)
        if candidate.status == "culprit"
    ]
    x = count_axis("trials", 0, last * (1.0 + _NAME_MARGIN), "trials")
    y = alt.Y(
        "number:Q",
        title=f"commit, {ends_of_axis}",
        scale=alt.Scale(domain=[-0.5, count + 0.5], nice=False, zero=False, reverse=True),
        axis=alt.Axis(tickMinStep=1, format="d", grid=False),
    )
    legend = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=list(_KINDS), range=[color_of(5), color_of(0), color_of(1)]),
        legend=top_legend(labelLimit=300),
    )
    layers = [
        layer(
            areas,
            alt.MarkDef("rect", style="negligible"),
            x=x,
            x2="until:Q",
            y=y,
            y2="until_number:Q",
            tooltip=tooltips(
                ("commits:N", "excluded"),
                ("subject:N",),
                ("author:N",),
                ("block:Q", "after block", "d"),
            ),
        ),
        layer(
            blocks,
            rule(1.5),
            x=x,
            y=y,
            y2="later_number:Q",
            color=legend,
            tooltip=tooltips(
                ("block:Q", "block", "d"), ("earlier:N",), ("later:N",), ("kind:N", "which")
            ),
        ),
        layer(
            culprits,
            point(90, shape="diamond", color=color_of(1)),
            x=alt.X("until:Q", scale=plain_scale(0, last * (1.0 + _NAME_MARGIN))),
            y=y,
            tooltip=tooltips(("name:N", "culprit"), ("subject:N",), ("author:N",)),
        ),
        *labels(culprits, "name:N", x="until:Q", y=y, mark={"align": "left", "dx": 9}),
    ]
    drawn_trials = _TRIALS_OF_A_BLOCK * len(course)
    later_trials = _TRIALS_OF_A_BLOCK * (len(result.course) - len(course))
    exclusion_trials = [
        trials[candidate.excluded_at]
        for candidate in result.candidates
        if candidate.excluded_at in trials
    ]
    exclusions = (
        f"{len(exclusion_trials)} of {count} commits are excluded after "
        f"{max(exclusion_trials, default=drawn_trials)} trials."
    )
    notes = [exclusions]
    if later_trials:
        notes.append(
            f"Then {later_trials} trials searched the rest of the gap, without a certain result."
        )
    return frame(
        layers,
        title=title,
        notes=notes,
        description=(f"A search among {count} commits over {drawn_trials} trials: {exclusions}"),
        height=min(420, 140 + 6 * count),
    )


def _with_exclusions(course: Sequence[BisectBlock]) -> Sequence[BisectBlock]:
    """Return the course without its last searches if these found no gap to search."""
    searches = [list(group) for _, group in itertools.groupby(course, lambda block: block.search)]
    while len(searches) > 1 and len({(block.earlier, block.later) for block in searches[-1]}) == 1:
        searches.pop()
    return list(itertools.chain.from_iterable(searches))


def _block(
    result: BisectResult | BisectBranch, block: BisectBlock, ends: tuple[int, int], trials: int
) -> dict[str, Any]:
    if (block.earlier, block.later) == ends:
        kind = _KINDS[0]
    else:
        kind = _KINDS[2] if block.later - block.earlier == 1 else _KINDS[1]
    return {
        "block": block.block,
        "trials": trials,
        "number": block.earlier,
        "later_number": block.later,
        "earlier": _name(result, block.earlier),
        "later": _name(result, block.later),
        "kind": kind,
    }


def _name(result: BisectResult | BisectBranch, place: int) -> str:
    if place == 0:
        return short_name(result.gap.after)
    return short_name(result.candidates[place - 1].commit)


def _excluded_areas(
    candidates: Sequence[BisectCommit], trials: dict[int, int], last: int
) -> Iterator[dict[str, Any]]:
    """Yield an area for each range of neighbours that the same block excluded."""
    numbered = enumerate(candidates, start=1)
    for block, group in itertools.groupby(numbered, key=lambda pair: pair[1].excluded_at):
        members = list(group)
        if block is None or block not in trials:
            continue
        (first, begin), (until, end) = members[0], members[-1]
        is_single = first == until
        yield {
            "block": block,
            "trials": trials[block],
            "until": last,
            "number": first - 0.5,
            "until_number": until + 0.5,
            "commits": short_name(begin.commit)
            if is_single
            else f"{len(members)} commits, {short_name(begin.commit)} to {short_name(end.commit)}",
            "subject": begin.subject if is_single else "",
            "author": begin.author if is_single else "",
        }


class BisectFigures(FiguresKind):
    """The figures of a bisection; charts of single commits would hide the search."""

    def gallery(self, document: BisectDocument, sequences: Sequences) -> Iterator[Figure]:
        """Draw the search of each benchmark, and those of the branches of named merges."""
        for number, search in enumerate(document.searches, start=1):
            name = f"bisection_{number}" if search.benchmark else "bisection"
            # One of several benchmarks may have no confirmed gap, and thus no search.
            if search.margin is not None or not search.benchmark:
                yield Figure(name, HOW_TO_READ, bisection(search))
            for branch_number, searched_branch in enumerate(search.branches, start=1):
                if searched_branch.course:
                    yield Figure(
                        f"{name}_branch_{branch_number}", HOW_TO_READ, branch(searched_branch)
                    )

    def chart(self, document: BisectDocument) -> alt.LayerChart | None:
        """Draw the search of the first benchmark."""
        return bisection(document.searches[0]) if document.searches else None
