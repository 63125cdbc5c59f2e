"""The terms of an imported run (the files of other tools), and its result document.

`equipoise.model.kinds.Terms` explains the class variables of the terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG, Terms
from equipoise.model.result import ResultDocument, SampleComparison

if TYPE_CHECKING:
    from equipoise.model.record import RunRecord

Order = Literal["in blocks", "one after the other", "mixed"]
"""Order in time of the trials of different conditions, as far as the files show it."""


class ImportSource(Struct, Terms, frozen=True, tag_field=TAG, tag="imported"):
    """Terms of an imported run: the files of other tools."""

    noun: ClassVar[str] = "run of another tool"
    can_rank: ClassVar[bool] = False
    describes_single_condition: ClassVar[bool] = False
    has_random_order: ClassVar[bool] = False
    format: str
    """Name of the format in `equipoise.interop.formats`."""
    tool: str | None
    """The tool and its version, such as ``hyperfine 2.0.0``; ``None`` if no file names it."""
    files: tuple[str, ...]
    """Names of the files, as on the command line."""
    order: Order
    """Order in time of the trials of different conditions."""
    metrics_without_time_order: tuple[str, ...] = ()
    """Metrics whose iterations are not in the order of time, so they cannot show a warm-up."""

    def workloads_for_digest(self, workloads: Sequence[Any]) -> Any:
        """Return the workloads of another tool, which never equal commands of Equipoise."""
        return {"imported": workloads}

    def check_resumable(self, run: str) -> None:
        """Raise `UnusableInput`, because another tool ran the trials."""
        raise UnusableInput(
            f"run {run} was imported and cannot be resumed",
            hint="measure the commands with equipoise compare",
        )

    def check_explainable(self, record: RunRecord) -> None:
        """Raise `UnusableInput`, because Equipoise does not have the commands."""
        raise UnusableInput(
            f"run {record.id} was imported, so Equipoise cannot run its commands",
            hint="measure the commands with equipoise compare, and explain that run",
        )


IN_BLOCKS: Literal["in blocks"] = "in blocks"
"""Order of trials that the files group into blocks."""


class ImportedResult(Struct, frozen=True):
    """The result of an imported run: comparisons of its trials."""

    source: ImportSource
    metric: str
    comparisons: tuple[SampleComparison, ...]
    summary: str
    """Sentence about the meaning of the intervals."""


class ImportedDocument(ResultDocument, frozen=True, kw_only=True, tag="imported"):
    """The result document of an imported run. Its comparisons are in ``samples``."""

    has_random_order: ClassVar[bool] = False
    imported: ImportedResult

    @property
    def has_blocks(self) -> bool:
        """Whether the files group the trials into blocks."""
        return self.imported.source.order == IN_BLOCKS

    @property
    def samples(self) -> tuple[SampleComparison, ...]:
        """Comparisons of the trials of two conditions."""
        return self.imported.comparisons

    @property
    def samples_summary(self) -> str:
        """Sentence about the meaning of the intervals."""
        return self.imported.summary

    @property
    def kind_metric(self) -> str:
        """The metric that the files measured."""
        return self.imported.metric
