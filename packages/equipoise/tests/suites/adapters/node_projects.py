"""Projects of Node for live tests: packages of npm that `scripts/test_tools.sh` installed."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.suites.adapters.example_projects import TEST_TOOLS

OLDEST_NODE = (20, 0)
NEWER_NODE = f"node-linux-{'arm64' if platform.machine() == 'aarch64' else 'x64'}"


def packages_of(tool: str, version: str) -> Path:
    """Folder ``node_modules`` with a version of a tool."""
    (found, *_) = [*TEST_TOOLS.glob(f"{tool}-{version}/node_modules"), None]
    if found is None:
        pytest.skip(f"misses {tool} {version}: scripts/test_tools.sh {tool}")
    if node_version({}) < OLDEST_NODE:
        pytest.skip("misses Node 20 or later: see https://nodejs.org")
    return found


def variables_with_newer_node() -> Mapping[str, str]:
    """Variables with which programs find the Node of `scripts/test_tools.sh`, not the host's."""
    program = packages_of(NEWER_NODE, "*") / NEWER_NODE / "bin"
    return {"PATH": f"{program}:{os.environ['PATH']}"}


def node_version(variables: Mapping[str, str]) -> tuple[int, ...]:
    done = finished(["node", "--version"], env={**os.environ, **variables})
    return tuple(map(int, done.stdout.strip().removeprefix("v").split(".")))[:2]
