"""`equipoise-workload dgemm` and `invert` use the library that the environment chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.design.libraries import BLAS_LIBRARIES, Blas
from packages.equipoise.tests.programs import finished

from .conftest import Measured


@pytest.fixture(params=BLAS_LIBRARIES, ids=lambda blas: blas.name)
def blas(request: pytest.FixtureRequest) -> Blas:
    found: Blas = request.param
    if not found.is_installed():
        pytest.skip(f"misses {found.folder}: apt-get install {found.package}")
    return found


@pytest.mark.live
@pytest.mark.parametrize("workload", ["dgemm", "invert"])
def test_library_of_the_level_is_used(measured: Measured, blas: Blas, workload: str) -> None:
    found = measured(workload, "--size", "60", "--repeat", "2", LD_LIBRARY_PATH=str(blas.folder))
    assert Path(found.facts["blas"]).is_relative_to(blas.folder.resolve())
    assert len(found.iterations["call_s"]) == 2
    assert found.metrics["call_s"] > 0


@pytest.mark.live
def test_a_library_can_be_named(measured: Measured, blas: Blas) -> None:
    library = str(blas.folder / "libblas.so.3")
    found = measured("dgemm", "--size", "40", "--library", library)
    assert Path(found.facts["blas"]).is_relative_to(blas.folder.resolve())
    assert found.metrics["gflop_per_s"] > 0


@pytest.mark.live
def test_a_core_type_that_the_level_names_is_taken(measured: Measured, blas: Blas) -> None:
    if blas.core_variable is None or "avx2" not in Path("/proc/cpuinfo").read_text():
        return
    chosen = {blas.core_variable: blas.core_types["haswell"].value}
    measured("dgemm", "--size", "60", LD_LIBRARY_PATH=str(blas.folder), **chosen)


@pytest.mark.parametrize("workload", ["dgemm", "invert"])
def test_a_library_that_is_missing_is_named_with_its_packages(
    native_folder: Path, workload: str
) -> None:
    done = finished(
        [native_folder / "equipoise-workload", workload, "--library", "/nowhere/lib.so"]
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "/nowhere/lib.so" in done.stderr
    assert "libopenblas0-pthread" in done.stderr


def test_a_library_without_the_function_is_refused(native_folder: Path) -> None:
    done = finished([native_folder / "equipoise-workload", "dgemm", "--library", "libc.so.6"])
    assert done.returncode == 1
    assert done.stderr == "equipoise-workload: dgemm: libc.so.6 has no function dgemm_\n"
