"""Fixtures of the tests of kinds: the command line, and a browser for pages."""

from __future__ import annotations

from packages.equipoise.tests.cli.conftest import (
    equipoise,
    equipoise_process,
    gate,
    run_in,
    scratch,
    script,
)
from packages.equipoise.tests.report.conftest import browser

__all__ = ["browser", "equipoise", "equipoise_process", "gate", "run_in", "scratch", "script"]
