"""The files of another tool that a run was imported from, and the document that compares them."""

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
"""How the trials of the conditions lay in time, as far as the files tell."""


class ImportSource(Struct, Terms, frozen=True, tag_field=TAG, tag="imported"):
    """The files of other tools that a run was imported from."""

    noun: ClassVar[str] = "run of another tool"
    ranks: ClassVar[bool] = False
    describes_one: ClassVar[bool] = False
    has_random_order: ClassVar[bool] = False
    format: str
    """A name of `equipoise.interop.formats`."""
    tool: str | None
    """The tool and its version, such as ``hyperfine 2.0.0``; ``None`` if no file tells."""
    files: tuple[str, ...]
    """Names of the files, as the command line has them."""
    order: Order
    no_series: tuple[str, ...] = ()
    """Metrics whose iterations are no course in time, so that no warm-up is looked for in them."""

    def shared_part(self, runs: Sequence[Any]) -> Any:
        """Return what it has in common with imports alone.

        What another tool ran answers no question of ours, whatever its benchmarks are called.
        """
        return {"imported": runs}

    def check_resumable(self, run: str) -> None:
        """Refuse to continue: nothing was run here."""
        raise UnusableInput(
            f"{run} was imported: there is nothing to run",
            hint="measure it with equipoise compare",
        )

    def check_explainable(self, record: RunRecord) -> None:
        """Refuse to explain: nothing of it can be run here."""
        raise UnusableInput(
            f"run {record.id} was imported: nothing of it can be run here",
            hint="measure the commands with equipoise compare, and explain that",
        )


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
