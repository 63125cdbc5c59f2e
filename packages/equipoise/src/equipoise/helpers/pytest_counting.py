"""Counts the allocations of benchmarks of pytest, in place of their seconds.

A gate of ``allocations`` runs pytest with the preloaded recorder. A fixture then calls its function
a few times, and reports the allocations of one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from equipoise.helpers.allocation_counts import CountsMissing, counts_of_a_call
from equipoise.helpers.equipoise_metrics import report


def report_counts(name: str, call: Callable[[], object]) -> None:
    """Report the allocations of one call as the metrics of a benchmark."""
    try:
        counts = counts_of_a_call(call)
    except CountsMissing as reason:
        pytest.exit(f"allocations of {name} are not known: {reason}", pytest.ExitCode.USAGE_ERROR)
    report(f"{name} allocations", counts.allocations)
    report(f"{name} allocated_bytes", counts.allocated_bytes, unit="B")


class CountingFixture:
    """The fixture of pytest-benchmark or pytest-codspeed, which counts instead."""

    def __init__(self, fixture: Callable[..., Any], name: str) -> None:
        object.__setattr__(self, "_fixture", fixture)
        object.__setattr__(self, "_name", name)

    def __call__(self, function: Callable[..., Any], *args: object, **kwargs: object) -> object:
        """Call the function, and count its allocations; return the result of the first call."""
        result = function(*args, **kwargs)
        report_counts(self._name, lambda: function(*args, **kwargs))
        return result

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Any = (),
        kwargs: Any = None,
        setup: Callable[[], Any] | None = None,
        **_: object,
    ) -> object:
        """Call the function as the method of the fixture with the same name does.

        A function with ``setup`` is counted together with it.
        """

        def call() -> object:
            prepared = None if setup is None else setup()
            chosen_args, chosen_kwargs = prepared or (args, kwargs or {})
            return target(*chosen_args, **chosen_kwargs)

        result = call()
        report_counts(self._name, call)
        return result

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the fixture."""
        return getattr(self._fixture, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute of the fixture, such as ``group``."""
        setattr(self._fixture, name, value)
