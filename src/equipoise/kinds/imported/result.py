"""The comparisons of an imported run, in its result document."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from equipoise.kinds.imported.terms import ImportSource
from equipoise.model.result import ResultDocument, SampleComparison

IN_BLOCKS = "in blocks"


class ImportedResult(Struct, frozen=True):
    """Comparisons of trials that another tool ran."""

    source: ImportSource
    metric: str
    comparisons: tuple[SampleComparison, ...]
    summary: str
    """Sentence on what these comparisons are worth."""


class ImportedDocument(ResultDocument, frozen=True, kw_only=True, tag="imported"):
    """The result document of an imported run: its ``comparisons`` are empty."""

    has_random_order: ClassVar[bool] = False
    imported: ImportedResult

    @property
    def has_blocks(self) -> bool:
        """Whether the files tell which trials belong together."""
        return self.imported.source.order == IN_BLOCKS

    @property
    def samples(self) -> tuple[SampleComparison, ...]:
        """Comparisons of its trials."""
        return self.imported.comparisons

    @property
    def samples_summary(self) -> str:
        """Sentence on what its comparisons are worth."""
        return self.imported.summary

    @property
    def own_metric(self) -> str:
        """The metric that the files measured."""
        return self.imported.metric
