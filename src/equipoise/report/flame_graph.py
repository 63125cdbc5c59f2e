"""The flame graph on a page: a picture, in which a browser runs no script and loads nothing."""

from __future__ import annotations

import base64
from dataclasses import dataclass

LARGEST_BYTES = 750_000
"""Larger ones are left to a file of their own: a page should be small enough to send."""


@dataclass(frozen=True, slots=True)
class FlameGraphView:
    """The picture as an address that holds it; ``None`` if it is too large for a page."""

    address: str | None


def flame_graph_view(svg: bytes | None) -> FlameGraphView | None:
    """How the page shows it; ``None`` if there is none."""
    if svg is None:
        return None
    if len(svg) > LARGEST_BYTES:
        return FlameGraphView(None)
    return FlameGraphView(f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}")
