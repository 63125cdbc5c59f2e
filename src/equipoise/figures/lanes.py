"""Named marks above a curve over commits, in rows, so that no name meets another or a line."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import altair as alt

from equipoise.figures.building import Rows, labels

HEIGHT = 260
"""Pixels of a chart with such names."""
END = alt.value(HEIGHT)
"""Lower edge of such a chart."""
LETTERS = 7
"""Letters of a commit's name beside its mark, as ``git log --oneline`` has them."""
_LANE = 18
"""Pixels of a row of names."""
_MOST_LANES = 4
_ROOM_FOR_A_NAME = 0.28
"""Part of the axis of commits that a name takes, on a phone."""
_GAP = 7
"""Pixels between the centre of a mark and its line."""


def lanes_of(places: Sequence[float], length: float) -> list[int]:
    """Return the row of each name above the curve, 0 for the topmost.

    A name stands to the right of its mark, and a line goes down from the mark. So a name that
    another one reaches stands one row below it, where its own line begins. Beyond the last row
    there is room for the mark alone, without its name.

    Parameters
    ----------
    places
        Places of the marks on the axis, in ascending order.
    length
        Length of the axis.
    """
    width = _ROOM_FOR_A_NAME * length / (1.0 - _ROOM_FOR_A_NAME)
    rows: list[int] = []
    for place in places:
        reached = [
            row
            for before, row in zip(places, rows, strict=False)
            if place - before < width and row < _MOST_LANES
        ]
        rows.append(min(1 + max(reached, default=-1), _MOST_LANES))
    return rows


def has_name(mark: dict[str, Any]) -> bool:
    """Return whether there is room for the name of a mark."""
    return bool(mark["lane"] < _MOST_LANES)


def end_of_axis(marks: Rows, last: float) -> float:
    """Return where an axis ends, so that the names of its marks have room.

    Parameters
    ----------
    last
        Largest value on the axis.
    """
    named = [float(mark["place"]) for mark in marks if has_name(mark)]
    return max([last, *(place / (1.0 - _ROOM_FOR_A_NAME) for place in named)])


def stretch_for(marks: Rows) -> float:
    """Return by how much to stretch the vertical axis, so that the rows stand above the curve."""
    lanes = 1 + max((mark["lane"] for mark in marks), default=-1)
    return HEIGHT / (HEIGHT - _LANE * lanes)


def lines(marks: Rows, draw: Callable[[Rows, Any], alt.Chart]) -> Iterator[alt.Chart]:
    """Draw what goes down from each mark to ``END``; ``draw`` gets marks of one row and its top."""
    for lane, members in _by_lane(marks):
        yield draw(members, alt.value(_LANE * (lane + 0.5) + _GAP))


def names(marks: Rows, x: alt.X, draw: Callable[[Rows, Any], alt.Chart]) -> Iterator[alt.Chart]:
    """Draw each mark in its row and the field ``label`` beside it; draw them above all lines."""
    for lane, members in _by_lane(marks):
        place = alt.value(_LANE * (lane + 0.5))
        yield draw(members, place)
        if lane < _MOST_LANES:
            yield from labels(members, "label:N", x=x, y=place, mark={"align": "left", "dx": 9})


def _by_lane(marks: Rows) -> Iterator[tuple[int, Rows]]:
    ordered = sorted(marks, key=lambda mark: mark["lane"])
    for lane, members in itertools.groupby(ordered, key=lambda mark: mark["lane"]):
        yield lane, list(members)
