"""The browser that opens the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from packages.equipoise.tests.report.chromium import Browser, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a file; mark them ``live("chromium")``."""
    with chromium() as one:
        yield one
