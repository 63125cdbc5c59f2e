"""`equipoise-workload sort` sorts with scratch areas from malloc."""

from __future__ import annotations

from .conftest import LAG_OF_THE_PEAK, Measured

COUNT = 100_000


def test_each_repetition_is_an_iteration(measured: Measured) -> None:
    found = measured("sort", "--count", str(COUNT), "--repeat", "4")
    assert len(found.iterations["sort_s"]) == 4
    mean = sum(found.iterations["sort_s"]) / 4
    assert abs(found.metrics["sort_s"] - mean) < 1e-9


def test_the_scratch_area_is_as_large_as_the_array(measured: Measured) -> None:
    count = 10 * COUNT
    found = measured("sort", "--count", str(count), "--repeat", "1").metrics
    assert found["peak_bytes"] > 2 * 8 * count - LAG_OF_THE_PEAK


def test_scratch_areas_from_the_kernel_show_in_faults(measured: Measured) -> None:
    options = ("sort", "--count", str(COUNT))
    tunables = "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
    never = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"
    kernel = measured(*options, GLIBC_TUNABLES=tunables).metrics["faults_per_sort"]
    kept = measured(*options, GLIBC_TUNABLES=never).metrics["faults_per_sort"]
    # Five levels of merges are above the threshold, each with 800 KB of areas.
    assert kernel - kept > 5 * 8 * COUNT / 4096 * 0.9
