"""The terms of a comparison of Python functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG, Terms
from equipoise.model.plan import Plan

if TYPE_CHECKING:
    from equipoise.model.record import RunRecord

STUDY = "functions"


class FunctionsPlan(Struct, Terms, frozen=True, tag_field=TAG, tag="functions"):
    """Terms of a campaign of Python functions: each block is one process that runs all of them."""

    noun: ClassVar[str] = "comparison of Python functions"
    checks_carry_over: ClassVar[bool] = False
    not_adjustable_because: ClassVar[str | None] = "all functions of a block share one process"
    failure_hint: ClassVar[str | None] = (
        "correct the function, or give setup=, a function that makes the data again"
    )
    batch_calls: tuple[int, ...]
    """Number of calls in a batch of each function."""
    rounds: int
    """Number of analysed batches of each function in a process."""
    fresh_data: bool
    """Whether fresh data is made, untimed, before each call, not only once in each process."""
    setup: str | None
    """Code of the setup, or the name of its function; ``None`` without a setup."""
    digests: tuple[str, ...]
    """Digests of the functions with their data: equal for equal functions with equal data."""
    python_version: str
    """Implementation and version of Python: ``CPython 3.12.1``."""
    python_line: str
    """Code that repeats the comparison with the same seed; empty for a lambda."""

    @property
    def shares_processes(self) -> bool:
        """Whether the functions run in one process; always true."""
        return True

    @property
    def command_line(self) -> str:
        """Code that repeats the comparison with the same seed."""
        return self.python_line

    def workloads_for_digest(self, workloads: Sequence[Any]) -> Any:
        """Return the digests of the functions, which ``workloads`` does not distinguish."""
        return {"functions": self.digests}

    def hint_to_measure_longer(self, min_s: float | None) -> str:
        """Return the hint to compare again, because no command can resume the campaign."""
        if min_s is None:
            return "compare again with a larger budget="
        return f"compare again with min_seconds={min_s:g} and larger limits"

    def check_resumable(self, run: str) -> None:
        """Raise `UnusableInput`, because the ledger does not contain the functions."""
        raise UnusableInput(
            f"run {run} compares Python functions and cannot be resumed",
            hint=f"compare the functions again: {self.python_line or 'eq.compare(f, g)'}",
        )

    def check_explainable(self, record: RunRecord) -> None:
        """Raise `UnusableInput`, because there is no program to observe."""
        raise UnusableInput(
            f"run {record.id} compares Python functions, and no command runs one of them alone",
            hint="write a program for each, run equipoise compare on them, and explain that run",
        )


def functions_of(plan: Plan) -> FunctionsPlan:
    """Return the terms of a comparison of functions."""
    assert isinstance(plan.terms, FunctionsPlan), "the plan compares functions"
    return plan.terms
