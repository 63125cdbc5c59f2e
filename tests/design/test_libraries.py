"""BLAS libraries by name."""

from __future__ import annotations

import pytest

from equipoise.design.libraries import BLAS_LIBRARIES, Blas
from equipoise.model.errors import UnusableInput


def named(name: str) -> Blas:
    return next(blas for blas in BLAS_LIBRARIES if blas.name == name)


def test_each_library_has_a_folder_of_its_own() -> None:
    assert len({blas.folder for blas in BLAS_LIBRARIES}) == len(BLAS_LIBRARIES) == 4
    for blas in BLAS_LIBRARIES:
        assert blas.environment() == {"LD_LIBRARY_PATH": str(blas.folder)}


def test_threads_and_core_type_are_the_librarys_own_variables() -> None:
    assert named("openblas").environment(threads=2, core_type="skylakex") == {
        "LD_LIBRARY_PATH": str(named("openblas").folder),
        "OPENBLAS_NUM_THREADS": "2",
        "OPENBLAS_CORETYPE": "SkylakeX",
    }
    assert named("blis").environment(core_type="haswell")["BLIS_ARCH_TYPE"] == "3"


def test_a_library_without_threads_has_no_variable_for_them() -> None:
    assert named("reference").environment(threads=1) == named("reference").environment()


@pytest.mark.parametrize(("name", "known"), [("openblas", "skylakex"), ("atlas", "none at all")])
def test_a_core_type_that_a_library_does_not_know_is_refused(name: str, known: str) -> None:
    with pytest.raises(UnusableInput, match="no core type 'z80'") as caught:
        named(name).environment(core_type="z80")
    assert known in str(caught.value.hint)
