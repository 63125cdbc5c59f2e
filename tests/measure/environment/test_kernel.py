"""Whether addresses are drawn here, and whether a process may hold them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from equipoise.measure.environment.host import Host
from equipoise.measure.environment.system import addresses_are_random, addresses_can_be_held

MAPS = "print(next(line for line in open('/proc/self/maps') if '[stack]' in line).split()[0])"


def places() -> set[bytes]:
    """Where the stacks of eight processes lie."""
    return {
        subprocess.run([sys.executable, "-S", "-c", MAPS], capture_output=True, check=True).stdout
        for _ in range(8)
    }


def test_asking_whether_addresses_can_be_held_changes_nothing_of_us() -> None:
    before = Path("/proc/self/personality").read_text()
    addresses_can_be_held()
    assert Path("/proc/self/personality").read_text() == before


def test_what_is_said_of_this_host_is_what_its_processes_show() -> None:
    assert addresses_are_random(Host()) == (len(places()) > 1)


def test_a_host_that_cannot_be_read_counts_as_random(tmp_path: Path) -> None:
    assert addresses_are_random(Host(tmp_path / "nowhere"))
