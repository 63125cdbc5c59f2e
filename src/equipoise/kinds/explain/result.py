"""The result document of a campaign that tests causes."""

from __future__ import annotations

from equipoise.model.result import ResultDocument


class ExplainDocument(ResultDocument, frozen=True, kw_only=True, tag="explain"):
    """The result document of a test of causes: its causes are in ``why``, as everywhere."""
