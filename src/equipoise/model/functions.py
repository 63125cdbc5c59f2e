"""A campaign of Python functions: what its processes do."""

from __future__ import annotations

from msgspec import Struct

STUDY = "functions"
"""The study of every campaign of functions."""
CALL_METRIC = "call_s"
"""Seconds of one call: the metric that decides in such a campaign."""


class FunctionsPlan(Struct, frozen=True):
    """Terms of a campaign of Python functions: each block is one process that runs all of them."""

    calls: tuple[int, ...]
    """Number of calls in a batch of each function."""
    rounds: int
    """Number of analysed batches of each function in a process."""
    fresh_calls: bool
    """Whether what a call works on is made anew, untimed, before each call; else once in each
    process."""
    setup: str | None
    """Code of the setup, or the name of its function; ``None`` without one."""
    digests: tuple[str, ...]
    """Names of what runs: equal for equal functions with equal data."""
    python: str
    """Implementation and version of Python: ``CPython 3.12.1``."""
    again: str
    """Line of Python that asks the same question with the same coin; empty where a function has no
    name that Python could read, as a lambda."""
