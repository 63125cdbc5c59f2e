"""Fixtures of the command line, as a user has it."""

from __future__ import annotations

from packages.equipoise.tests.cli.conftest import equipoise, equipoise_process, scratch

__all__ = ["equipoise", "equipoise_process", "scratch"]
