"""Fixtures of the tests of suites: the gate."""

from __future__ import annotations

from packages.equipoise.tests.cli.conftest import gate, scratch

__all__ = ["gate", "scratch"]
