"""`equipoise-workload genmatch2006`: three algorithms, one search, the memory of each.

What an allocator does to an algorithm is seen in page faults, which depend on no clock.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.design.libraries import BLAS_LIBRARIES
from equipoise_matching import match
from equipoise_matching.matching.datasets import lalonde
from packages.equipoise.tests.programs import finished

from .conftest import Measured

ROWS = 445
COVARIATES = ["age", "educ", "black", "hisp", "married", "nodegr", "u74", "u75", "re75", "re74"]
TO_THE_KERNEL = "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
NEVER = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"
ONE = ("--candidates", "1", "--repeat", "1")
TEMPORARY = ROWS * 10 * 8


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real data as a file."""
    pytest.importorskip("causaldata", reason="misses causaldata: pip install causaldata")
    file = tmp_path_factory.mktemp("data") / "lalonde.csv"
    lalonde().to_csv(file, index=False)
    return file


@pytest.mark.live
def test_all_three_find_the_same_matches_by_every_blas(measured: Measured, table: Path) -> None:
    options = ("genmatch2006", "--data", str(table), "--candidates", "2", "--repeat", "1")
    expected = measured(*options, "--algorithm", "fast").facts
    assert measured(*options, "--algorithm", "scythe").facts == expected
    installed = [blas for blas in BLAS_LIBRARIES if blas.is_installed()]
    if not installed:
        pytest.skip("misses libblas.so.3: apt-get install libblas3")
    for blas in installed:
        folder = str(blas.folder)
        facts = measured(*options, "--algorithm", "blas", LD_LIBRARY_PATH=folder).facts
        assert Path(facts.pop("blas")).is_relative_to(blas.folder.resolve())
        assert facts == expected


def test_matches_of_given_weights_equal_the_public_matching(
    measured: Measured, table: Path
) -> None:
    weights = [float(3 + 7 * column) for column in range(len(COVARIATES))]
    words = ",".join(map(str, weights))
    frame = lalonde()
    expected = match(
        None, frame["treat"], frame[COVARIATES], estimand="ATE", metric=np.diag(weights)
    )
    for algorithm in ("scythe", "fast"):
        found = measured(
            *("genmatch2006", "--algorithm", algorithm, "--weights", words),
            *("--repeat", "1", "--data", str(table)),
        )
        assert int(found.facts["pairs"]) == len(expected.weights)


def test_the_balance_of_the_saved_run_of_2006s_example_is_found_again(
    measured: Measured, table: Path
) -> None:
    # GenMatch.Rout.save of the package Matching: the weights that it found, how many pairs, and
    # the smallest p-value ; earnings are rounded in our source of the data.
    weights = (
        "580.84914,356.15752,312.13349,343.83427,954.89910,591.73436,106.19145,56.99953,"
        "209.22764,735.57074"
    )
    found = measured(
        *("genmatch2006", "--algorithm", "fast", "--weights", weights),
        *("--repeat", "1", "--data", str(table)),
    )
    assert found.facts["pairs"] == "605"
    assert found.metrics["smallest_p"] == pytest.approx(0.2998530, abs=1e-4)


def test_a_search_is_an_iteration_and_the_best_of_them_is_reported(measured: Measured) -> None:
    found = measured("genmatch2006", "--algorithm", "fast", "--repeat", "3")
    times = found.iterations["search_s"]
    assert len(times) == 3
    assert found.metrics["best_search_s"] == min(times)
    assert found.metrics["search_s"] == pytest.approx(sum(times) / 3)


def test_the_old_algorithm_pays_for_temporaries_that_come_from_the_kernel(
    measured: Measured,
) -> None:
    options = ("genmatch2006", "--algorithm", "scythe", *ONE)
    kernel = measured(*options, GLIBC_TUNABLES=TO_THE_KERNEL).metrics["faults_per_search"]
    kept = measured(*options, GLIBC_TUNABLES=NEVER).metrics["faults_per_search"]
    # 26 blocks of 9 pages for each unit; some fit into what is free at the top of the heap.
    assert kernel > 0.5 * ROWS * 26 * 9
    assert kept < 0.01 * kernel


def test_temporaries_are_free_with_doug_leas_malloc(
    measured: Measured, native_folder: Path
) -> None:
    library = str(native_folder / "libequipoise_dlmalloc.so")
    found = measured("genmatch2006", "--algorithm", "scythe", *ONE, LD_PRELOAD=library)
    assert found.metrics["faults_per_search"] < ROWS


def test_the_fast_algorithm_hardly_allocates_whatever_the_allocator_does(
    measured: Measured,
) -> None:
    options = ("genmatch2006", "--algorithm", "fast", *ONE)
    found = measured(*options, GLIBC_TUNABLES=TO_THE_KERNEL).metrics
    assert found["faults_per_search"] < ROWS


def test_reported_memory_excludes_the_memory_of_the_program(measured: Measured) -> None:
    found = measured("genmatch2006", "--algorithm", "scythe", *ONE).metrics
    assert 2 * TEMPORARY < found["peak_bytes"] < 100 * TEMPORARY
    assert found["retained_bytes"] <= found["peak_bytes"] + 4096


def test_made_up_rows_and_stacks_of_them_need_no_file(measured: Measured) -> None:
    options = ("genmatch2006", "--algorithm", "fast", *ONE)
    once, twice = (measured(*options, "--rows", rows) for rows in ("445", "890"))
    # Each of the pairs is there for both copies of both units.
    assert int(twice.facts["pairs"]) == 4 * int(once.facts["pairs"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        ("age,educ\n1,2\n", "it has no column `treat`"),
        (f"treat,{','.join(COVARIATES)}\n1{',x' * 10}\n", "line 2: `age` is not a number"),
        (f"treat,{','.join(COVARIATES)}\n1{',1' * 10}\n", "all these rows are of one arm"),
    ],
)
def test_data_that_cannot_be_used_get_one_line(
    native_folder: Path, tmp_path: Path, text: str | None, words: str
) -> None:
    file = tmp_path / "data.csv"
    if text is not None:
        file.write_text(text)
    done = finished([native_folder / "equipoise-workload", "genmatch2006", "--data", str(file)])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
