"""`equipoise-workload malloc` does what it counts, with the allocator that it is given.

What it does is seen in page faults, which depend on no clock: a glibc that goes to the kernel
for every block (docs/evidence/workloads.md#malloc-35-kb) must provide each touched page again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished

from .conftest import Measured

TO_THE_KERNEL = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0",
}
PAIRS = 500
PAGES = 9
"""Pages of a block of 35,840 bytes."""
SPARE = 400
"""Page faults of the program itself, generously."""

Faults = Callable[..., int]


@pytest.fixture
def faults(native_folder: Path, tmp_path: Path) -> Faults:
    """Runs the workload and gives back its minor page faults."""

    def run(*options: str, **environment: str) -> int:
        program = str(native_folder / "equipoise-workload")
        metrics = {"EQUIPOISE_METRICS": str(tmp_path / "metrics")}
        arguments = [program, "malloc", "--count", str(PAIRS), *options]
        child = os.posix_spawn(program, arguments, os.environ | metrics | environment)
        _, status, usage = os.wait4(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        return usage.ru_minflt

    return run


def test_blocks_freed_at_once_are_used_again(faults: Faults) -> None:
    assert faults() < SPARE


def test_each_page_is_touched_of_each_block(faults: Faults) -> None:
    assert faults(**TO_THE_KERNEL) >= PAIRS * PAGES
    assert faults("--touch", "all", **TO_THE_KERNEL) >= PAIRS * PAGES


def test_untouched_blocks_cost_only_the_page_of_their_header(faults: Faults) -> None:
    assert PAIRS <= faults("--touch", "none", **TO_THE_KERNEL) < PAIRS + SPARE


def test_blocks_that_live_longer_are_not_used_again_before_they_are_freed(faults: Faults) -> None:
    assert faults("--pattern", f"fifo:{PAIRS}") >= PAIRS * (PAGES - 1)


def test_random_lifetimes_are_the_same_in_every_run(faults: Faults) -> None:
    first, second = (faults("--pattern", "random:50", **TO_THE_KERNEL) for _ in range(2))
    assert abs(first - second) < SPARE
    assert first >= PAIRS * PAGES


def test_every_thread_does_all_pairs(faults: Faults) -> None:
    assert faults("--threads", "3", **TO_THE_KERNEL) >= 3 * PAIRS * PAGES


def test_preloaded_allocator_is_used(faults: Faults, native_folder: Path) -> None:
    library = str(native_folder / "libequipoise_dlmalloc.so")
    assert faults(LD_PRELOAD=library, **TO_THE_KERNEL) < SPARE


def test_failed_allocation_exits_with_status_1(native_folder: Path) -> None:
    program = native_folder / "equipoise-workload"
    command = f"ulimit -v 200000 && exec '{program}' malloc --size 1000000000"
    done = finished(["sh", "-c", command])
    assert done.returncode == 1
    assert done.stderr == "equipoise-workload: malloc: no memory for 1000000000 bytes\n"


def test_cost_of_a_pair_is_reported(measured: Measured) -> None:
    from_lists = measured("malloc", "--count", str(PAIRS)).metrics
    assert set(from_lists) == {
        "ns_per_pair",
        "work_s",
        "faults_per_pair",
        "peak_bytes",
        "retained_bytes",
    }
    assert from_lists["work_s"] == pytest.approx(from_lists["ns_per_pair"] * 1e-9)
    assert from_lists["ns_per_pair"] > 0
    assert from_lists["faults_per_pair"] < 1
    from_kernel = measured("malloc", "--count", str(PAIRS), **TO_THE_KERNEL).metrics
    assert from_kernel["faults_per_pair"] == pytest.approx(PAGES, abs=0.1)


def test_peak_is_the_live_memory_and_kernel_blocks_are_returned(
    measured: Measured,
) -> None:
    options = ("malloc", "--count", str(PAIRS), "--pattern", f"fifo:{PAIRS}")
    found = measured(*options, **TO_THE_KERNEL).metrics
    assert found["peak_bytes"] == pytest.approx(PAIRS * PAGES * 4096, rel=0.05)
    assert found["retained_bytes"] < 0.05 * found["peak_bytes"]
    never = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"
    kept = measured(*options, GLIBC_TUNABLES=never).metrics
    assert kept["retained_bytes"] == pytest.approx(kept["peak_bytes"], rel=0.05)


@pytest.mark.parametrize(("size", "pages"), [(35_840, 0), (262_143, 0), (262_144, 64)])
def test_doug_leas_malloc_goes_to_the_kernel_from_256_kib_on(
    measured: Measured, native_folder: Path, size: int, pages: int
) -> None:
    library = str(native_folder / "libequipoise_dlmalloc.so")
    found = measured("malloc", "--size", str(size), "--count", str(PAIRS), LD_PRELOAD=library)
    assert found.metrics["faults_per_pair"] == pytest.approx(pages, abs=0.3)


def test_system_calls_are_counted_for_each_pair(measured: Measured) -> None:
    options = ("malloc", "--count", "10", "--trace", "20")
    assert measured(*options).metrics["calls_per_pair"] == 0
    # One mmap and one munmap.
    assert measured(*options, **TO_THE_KERNEL).metrics["calls_per_pair"] == 2


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 128 * 1024),
        (TO_THE_KERNEL, 15 * 1024),
        ({"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1000000"}, 1_000_000),
        ({"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0"}, None),
    ],
)
def test_the_size_that_goes_to_the_kernel_is_found_within_a_page(
    measured: Measured, environment: dict[str, str], expected: int | None
) -> None:
    most = 8 << 20
    found = measured("malloc", "--count", "1", "--search", str(most), **environment).metrics
    assert found["searched_to_bytes"] == most
    if expected is None:
        assert "kernel_from_bytes" not in found
    else:
        assert abs(found["kernel_from_bytes"] - expected) < 4096


def test_doug_leas_malloc_goes_to_the_kernel_from_256_kb(
    measured: Measured, native_folder: Path
) -> None:
    library = str(native_folder / "libequipoise_dlmalloc.so")
    options = ("malloc", "--count", "1", "--search", str(1 << 20))
    found = measured(*options, LD_PRELOAD=library).metrics["kernel_from_bytes"]
    assert abs(found - 256 * 1024) < 4096


def test_a_volume_bounds_the_number_of_blocks(faults: Faults) -> None:
    volume = str(100 * 35_840)
    bounded = faults("--volume", volume, **TO_THE_KERNEL)
    assert 100 * PAGES <= bounded < 100 * PAGES + SPARE
