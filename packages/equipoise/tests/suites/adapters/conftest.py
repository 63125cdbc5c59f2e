"""Fixtures of the tests of benchmark tools: the command line of a gate."""

from __future__ import annotations

from packages.equipoise.tests.cli.conftest import gate, scratch

__all__ = ["gate", "scratch"]
