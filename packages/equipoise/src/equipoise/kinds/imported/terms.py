"""The terms of an imported run: the files that another tool wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG, Terms

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

    def what_runs(self, runs: Sequence[Any]) -> Any:
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
