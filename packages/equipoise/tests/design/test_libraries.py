"""BLAS libraries by name."""

from __future__ import annotations

from equipoise.design.libraries import BLAS_LIBRARIES


def test_each_library_has_its_own_folder() -> None:
    assert len({blas.folder for blas in BLAS_LIBRARIES}) == len(BLAS_LIBRARIES) == 4


def test_the_variable_and_the_values_of_a_core_type_are_the_librarys_own() -> None:
    libraries = {blas.name: blas for blas in BLAS_LIBRARIES}
    openblas, blis = libraries["openblas"], libraries["blis"]
    assert openblas.core_variable == "OPENBLAS_CORETYPE"
    assert openblas.core_types["skylakex"].value == "SkylakeX"
    assert (blis.core_variable, blis.core_types["haswell"].value) == ("BLIS_ARCH_TYPE", "3")
    assert libraries["atlas"].core_variable is None
