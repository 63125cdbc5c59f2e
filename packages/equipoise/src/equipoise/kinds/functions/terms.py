"""The terms of a comparison of Python functions: each block is one process that runs them all."""

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
"""The study of every campaign of functions."""


class FunctionsPlan(Struct, Terms, frozen=True, tag_field=TAG, tag="functions"):
    """Terms of a campaign of Python functions: each block is one process that runs all of them."""

    noun: ClassVar[str] = "comparison of Python functions"
    shares_processes: ClassVar[bool] = True
    checks_carry_over: ClassVar[bool] = False
    not_adjustable_because: ClassVar[str | None] = "all functions of a block share one process"
    failure_hint: ClassVar[str | None] = (
        "correct the function, or give setup=, which makes its data again"
    )
    calls: tuple[int, ...]
    """Number of calls in a batch of each function."""
    rounds: int
    """Number of analysed batches of each function in a process."""
    fresh_calls: bool
    """Whether the data of a call is made again, untimed, before each call, and not only once in
    each process."""
    setup: str | None
    """Code of the setup, or the name of its function; ``None`` without one."""
    digests: tuple[str, ...]
    """Digests of the functions with their data: equal for equal functions with equal data."""
    python: str
    """Implementation and version of Python: ``CPython 3.12.1``."""
    again: str
    """Line of Python that repeats the comparison with the same seed; empty if a function has no
    name that Python can read, such as a lambda."""

    @property
    def command_line(self) -> str:
        """Line of Python that repeats the comparison with the same seed."""
        return self.again

    def shared_part(self, runs: Sequence[Any]) -> Any:
        """Return the digests of the functions, which all run in one program."""
        return {"functions": self.digests}

    def longer_hint(self, min_s: float | None) -> str:
        """Return the hint to measure longer: compare again, because no command can resume."""
        if min_s is None:
            return "compare again with a larger budget="
        return f"compare again with min_seconds={min_s:g} and larger limits"

    def check_resumable(self, run: str) -> None:
        """Refuse to continue: the ledger does not contain the functions."""
        raise UnusableInput(
            f"{run} compares Python functions, which the ledger does not contain",
            hint=f"compare them again: {self.again or 'eq.compare(f, g)'}",
        )

    def check_explainable(self, record: RunRecord) -> None:
        """Refuse to explain: there is no program to observe."""
        raise UnusableInput(
            f"run {record.id} compares Python functions: no command runs one of them alone",
            hint="write a program for each, compare these with equipoise compare, and explain that",
        )


def functions_of(plan: Plan) -> FunctionsPlan:
    """Return the terms of a comparison of functions."""
    assert isinstance(plan.terms, FunctionsPlan), "the plan compares functions"
    return plan.terms
