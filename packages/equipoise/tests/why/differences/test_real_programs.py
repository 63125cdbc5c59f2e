"""Known differences of small programs, through the sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from equipoise.why.differences.changes import Difference
from equipoise.why.differences.compare import difference_between
from equipoise.why.differences.wording import extra_time_clauses
from equipoise.why.evidence.observer import Process
from equipoise.why.evidence.sources import SOURCES, EvidenceSet, Runs
from packages.equipoise.tests.why.differences.example_evidence import CONDITIONS, trial
from packages.equipoise.tests.why.evidence.programs import ENVIRONMENT, compiled, run
from packages.equipoise.tests.why.evidence.test_sampled import needs_kernel

ROUNDS = 3000
PAGES = 9
SOURCE = f"""
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void churn(void) {{
    char *block = malloc(35600);
    memset(block, 1, 35600);
    free(block);
}}
int main(void) {{
    for (int round = 0; round < {ROUNDS}; round++) churn();
    return 0;
}}
"""
RETURNED_AT_ONCE = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Difference:
    """A block of 35,600 bytes over and over: kept, and returned to the kernel at each free."""
    program = compiled(tmp_path_factory.mktemp("program"), SOURCE, "-fno-optimize-sibling-calls")

    def observed(name: str, environment: Mapping[str, str]) -> Any:
        folder = tmp_path_factory.mktemp("evidence")
        source = SOURCES[name]
        run(source.wrap(Process((str(program),), {**ENVIRONMENT, **environment}), folder))
        return source.read(folder)

    def both(name: str) -> Runs[Any]:
        return Runs(
            tuple(observed(name, {}) for _ in range(2)),
            tuple(observed(name, RETURNED_AT_ONCE) for _ in range(2)),
        )

    evidence = EvidenceSet(
        system_calls=both("system_calls"),
        profile=both("profile"),
        page_faults=both("page_faults"),
        allocations=both("allocations"),
    )
    # The order of magnitude that they have; nothing here is about times.
    own = Runs(
        tuple(trial(block, 0, 0.002, user_s=0.001, sys_s=0.0) for block in range(1, 4)),
        tuple(
            trial(block, 1, 0.06 + 1e-4 * block, user_s=0.002, sys_s=0.057 + 1e-4 * block)
            for block in range(1, 4)
        ),
    )
    return difference_between(own, evidence, CONDITIONS)


@needs_kernel
def test_the_calls_that_return_memory_rise_by_one_a_round(found: Difference) -> None:
    for name in ("mmap", "munmap"):
        assert found.calls[name].count.extra_ci == (ROUNDS, ROUNDS)
    assert found.calls["mmap"].typical_bytes == (PAGES * 4096)


@needs_kernel
def test_the_faults_rise_by_the_pages_of_each_block(found: Difference) -> None:
    assert found.faults is not None
    assert found.faults.count.extra == pytest.approx(PAGES * ROUNDS, rel=0.01)


@needs_kernel
def test_the_time_goes_to_these_entries_below_the_function_that_asks(
    found: Difference,
) -> None:
    entry_points = {"mmap", "munmap", "page_fault"}
    in_kernel = sum(
        found.entry_points[entry_point].extra
        for entry_point in entry_points & found.entry_points.keys()
    )
    assert found.on_processor is not None
    assert in_kernel > 0.5 * found.on_processor.extra > 0
    reached_s = sum(
        change.extra for function, change in found.inclusive.items() if function.name == "churn"
    )
    assert reached_s > 0.5 * found.on_processor.extra


@needs_kernel
def test_equal_allocations_are_still_described(found: Difference) -> None:
    assert found.allocations is not None
    assert found.allocations.count.extra == 0
    assert found.allocations.classes[0].typical_bytes == 35_600
    assert next(iter(found.allocations.by_function)).name == "churn"
    words = extra_time_clauses(found)
    assert "of the extra time is system time" in words
    assert f"to {ROUNDS + found.calls['munmap'].count.baseline:,.0f} calls" in words
    assert "of the allocations are of 35,600 bytes" in words
