"""Fixtures of the tests of sites: the command line, and a browser for pages."""

from __future__ import annotations

from packages.equipoise.tests.cli.conftest import equipoise
from packages.equipoise.tests.report.conftest import browser

__all__ = ["browser", "equipoise"]
