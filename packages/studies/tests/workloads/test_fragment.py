"""`equipoise-workload fragment` leaves holes, and says what they cost."""

from __future__ import annotations

import pytest

from .conftest import LAG_OF_THE_PEAK, Measured

MIB = 1024 * 1024
LIVE = ("--live", str(16 * MIB))


def test_blocks_kept_from_the_last_round_are_live(measured: Measured) -> None:
    found = measured("fragment", *LIVE, "--keep", "25").metrics
    assert found["live_bytes"] == pytest.approx(0.25 * 16 * MIB, rel=0.2)
    assert found["ns_per_call"] > 0


def test_holes_keep_unused_memory(measured: Measured) -> None:
    found = measured("fragment", *LIVE).metrics
    assert found["held_bytes"] > 2 * found["live_bytes"]
    assert found["peak_bytes"] > found["held_bytes"] - LAG_OF_THE_PEAK


def test_blocks_from_the_kernel_leave_no_holes(measured: Measured) -> None:
    options = (*LIVE, "--smallest", "32768", "--largest", "65536")
    tunables = "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
    found = measured("fragment", *options, GLIBC_TUNABLES=tunables).metrics
    # A block costs a page at most beyond what its owner uses.
    assert found["held_bytes"] < 1.2 * found["live_bytes"]
    assert found["retained_bytes"] < MIB


def test_peak_of_a_round_is_the_memory_of_its_blocks(measured: Measured) -> None:
    found = measured("fragment", *LIVE, "--rounds", "1", "--keep", "0").metrics
    assert found["live_bytes"] == 0
    assert found["peak_bytes"] > 16 * MIB - LAG_OF_THE_PEAK
