"""Draw a bisection: the pairs of commits that ran, and the excluded commits, over the trials."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from equipoise.figures.building import count_axis
from equipoise.figures.gallery import ConfidenceSequences, Figure, KindFigures
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
_WHOLE_GAP, _INNER_PAIR, _OWN_PAIR = (
    "both ends of the search",
    "a pair between",
    "a commit against its parent",
)
"""Kinds of pairs, as the legend names them."""
_TRIALS_PER_BLOCK = 2
_BASE_HEIGHT, _COMMIT_HEIGHT, _MAX_HEIGHT = 140, 6, 420
"""Height of a chart without commits, additional height for each commit, and limit, in pixels."""
_LABEL_SHARE = 0.2
"""Extra length of the axis of trials, for the labels of culprits: a fraction of the axis."""


def bisection_chart(result: BisectResult) -> alt.LayerChart:
    """Draw the search for the commits that made a difference."""
    title = f"The search: {result.benchmark}" if result.benchmark else "The search"
    return _search_chart(result, title, "from the good (0) to the bad one")


def branch_chart(result: BisectBranch) -> alt.LayerChart:
    """Draw the search of a merge's branch; the search has at least one block."""
    title = f"The search of the branch of {short_name(result.merge)}"
    return _search_chart(result, title, "from where it began (0) to the merge's parent")


def _search_chart(
    result: BisectResult | BisectBranch, title: str, axis_ends: str
) -> alt.LayerChart:
    """Draw a search: grey areas for excluded commits, a line for each block, and the culprits."""
    commit_count = len(result.searched_commits)
    drawn_blocks = _without_unconfirmed_searches(result.course)
    # Number of trials up to the end of each block, by the number of the block.
    trials_after = {
        block.block: _TRIALS_PER_BLOCK * count for count, block in enumerate(drawn_blocks, start=1)
    }
    last_trial = max([_TRIALS_PER_BLOCK, *trials_after.values()])
    areas = list(_excluded_areas(result.searched_commits, trials_after, last_trial))
    # The first block of each search runs both ends of the stretch.
    search_ends = {block.search: (block.earlier, block.later) for block in reversed(drawn_blocks)}
    block_rows = [
        _block_row(result, block, search_ends[block.search], trials_after) for block in drawn_blocks
    ]
    culprit_rows = [
        {
            "number": number,
            "until": last_trial,
            "name": short_name(commit.commit),
            "subject": commit.subject,
            "author": commit.author,
        }
        for number, commit in enumerate(result.searched_commits, start=1)
        if commit.status == "culprit"
    ]
    x = count_axis("trials", 0, last_trial * (1.0 + _LABEL_SHARE), "trials")
    y = alt.Y(
        "number:Q",
        title=f"commit, {axis_ends}",
        scale=alt.Scale(domain=[-0.5, commit_count + 0.5], nice=False, zero=False, reverse=True),
        axis=alt.Axis(tickMinStep=1, format="d", grid=False),
    )
    legend = alt.Color(
        "kind:N",
        scale=alt.Scale(
            domain=[_WHOLE_GAP, _INNER_PAIR, _OWN_PAIR],
            range=[color_of(5), color_of(0), color_of(1)],
        ),
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
            block_rows,
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
            culprit_rows,
            point(90, shape="diamond", color=color_of(1)),
            x=alt.X("until:Q", scale=plain_scale(0, last_trial * (1.0 + _LABEL_SHARE))),
            y=y,
            tooltip=tooltips(("name:N", "culprit"), ("subject:N",), ("author:N",)),
        ),
        *labels(culprit_rows, "name:N", x="until:Q", y=y, mark={"align": "left", "dx": 9}),
    ]
    drawn_trials = _TRIALS_PER_BLOCK * len(drawn_blocks)
    later_trials = _TRIALS_PER_BLOCK * (len(result.course) - len(drawn_blocks))
    exclusion_trials = [
        trials_after[commit.excluded_at]
        for commit in result.searched_commits
        if commit.excluded_at in trials_after
    ]
    summary = (
        f"{len(exclusion_trials)} of {commit_count} commits are excluded after "
        f"{max(exclusion_trials, default=drawn_trials)} trials."
    )
    notes = [summary]
    if later_trials:
        notes.append(
            f"Then {later_trials} trials searched the rest of the gap, without a certain result."
        )
    return frame(
        layers,
        title=title,
        notes=notes,
        description=f"A search among {commit_count} commits over {drawn_trials} trials: {summary}",
        height=min(_MAX_HEIGHT, _BASE_HEIGHT + _COMMIT_HEIGHT * commit_count),
    )


def _without_unconfirmed_searches(course: Sequence[BisectBlock]) -> Sequence[BisectBlock]:
    """Return the blocks without the last searches that confirmed no gap."""
    searches = [list(group) for _, group in itertools.groupby(course, lambda block: block.search)]
    while len(searches) > 1 and len({(block.earlier, block.later) for block in searches[-1]}) == 1:
        searches.pop()
    return list(itertools.chain.from_iterable(searches))


def _block_row(
    result: BisectResult | BisectBranch,
    block: BisectBlock,
    ends: tuple[int, int],
    trials_after: dict[int, int],
) -> dict[str, Any]:
    kind = _OWN_PAIR if block.later - block.earlier == 1 else _INNER_PAIR
    if (block.earlier, block.later) == ends:
        kind = _WHOLE_GAP
    return {
        "block": block.block,
        "trials": trials_after[block.block],
        "number": block.earlier,
        "later_number": block.later,
        "earlier": _commit_name(result, block.earlier),
        "later": _commit_name(result, block.later),
        "kind": kind,
    }


def _commit_name(result: BisectResult | BisectBranch, index: int) -> str:
    if index == 0:
        return short_name(result.gap.earlier_hash)
    return short_name(result.searched_commits[index - 1].commit)


def _excluded_areas(
    commits: Sequence[BisectCommit], trials_after: dict[int, int], last_trial: int
) -> Iterator[dict[str, Any]]:
    """Yield an area for each range of successive commits that one block excluded."""
    numbered_commits = enumerate(commits, start=1)
    for block, group in itertools.groupby(numbered_commits, key=lambda item: item[1].excluded_at):
        members = list(group)
        if block is None or block not in trials_after:
            continue
        (first_number, first_commit), (last_number, last_commit) = members[0], members[-1]
        is_single = first_number == last_number
        names = f"{short_name(first_commit.commit)} to {short_name(last_commit.commit)}"
        yield {
            "block": block,
            "trials": trials_after[block],
            "until": last_trial,
            "number": first_number - 0.5,
            "until_number": last_number + 0.5,
            "commits": short_name(first_commit.commit)
            if is_single
            else f"{len(members)} commits, {names}",
            "subject": first_commit.subject if is_single else "",
            "author": first_commit.author if is_single else "",
        }


class BisectFigures(KindFigures):
    """The charts of a bisection; charts of single commits would hide the search."""

    def gallery(self, document: BisectDocument, sequences: ConfidenceSequences) -> Iterator[Figure]:
        """Draw the search of each benchmark, and of each searched branch."""
        for number, search in enumerate(document.results, start=1):
            name = f"bisection_{number}" if search.benchmark else "bisection"
            # A benchmark without a confirmed gap has no search to draw.
            if search.margin is not None or not search.benchmark:
                yield Figure(name, HOW_TO_READ, bisection_chart(search))
            for branch_number, branch in enumerate(search.branches, start=1):
                if branch.course:
                    yield Figure(
                        f"{name}_branch_{branch_number}", HOW_TO_READ, branch_chart(branch)
                    )

    def chart(self, document: BisectDocument) -> alt.LayerChart | None:
        """Draw the search of the first benchmark."""
        return bisection_chart(document.results[0]) if document.results else None
