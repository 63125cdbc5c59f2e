"""Another BLAS, or one that is told what it runs on."""

from __future__ import annotations

from pathlib import Path

import msgspec.structs
import pytest

from equipoise.design import libraries as design
from equipoise.model.plan import Condition
from equipoise.why.interventions import blas
from equipoise.why.interventions.intervention import Case, Intervention
from packages.equipoise.tests.why.interventions.cases import BASELINE, CANDIDATE, case_of, site

AVX512 = frozenset({"avx2", "fma", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})
FOLDER = {library.name: str(library.folder) for library in design.BLAS_LIBRARIES}


def using(name: str, **environment: str) -> Condition:
    return Condition(
        name,
        ("/bin/b",),
        environment={"LD_LIBRARY_PATH": FOLDER[name], **environment},
        mapped_from=(FOLDER[name],),
    )


def interventions_by_name(case: Case) -> dict[str, Intervention]:
    return {intervention.name: intervention for intervention in blas.blas_interventions(case)}


@pytest.mark.parametrize(
    ("instructions", "names"),
    [
        (AVX512, {"openblas_skylakex", "blis_skylakex"}),
        (frozenset({"avx2", "fma"}), {"openblas_haswell", "blis_haswell"}),
        (frozenset({"sse2"}), set()),
    ],
)
def test_each_library_is_set_to_the_best_core_type_of_this_cpu(
    instructions: frozenset[str], names: set[str]
) -> None:
    interventions = interventions_by_name(case_of(at=site(instructions=instructions)))
    assert interventions.keys() == names | {"openblas", "blis"}


def test_a_core_type_is_set_and_the_library_must_report_it() -> None:
    intervention = interventions_by_name(case_of(at=site(instructions=AVX512)))["openblas_skylakex"]
    altered = intervention.alter(using("openblas", OPENBLAS_CORETYPE="Haswell"))
    assert altered.environment["OPENBLAS_CORETYPE"] == "SkylakeX"
    assert altered.tuned_for == ("SkylakeX",)
    assert intervention.advice == "OPENBLAS_CORETYPE=SkylakeX {command}"


def test_core_type_does_not_change_other_libraries() -> None:
    intervention = interventions_by_name(case_of(at=site(instructions=AVX512)))["blis_skylakex"]
    assert intervention.alter(using("openblas")) == using("openblas")
    assert intervention.alter(BASELINE).tuned_for == ("skx",)


def test_another_library_replaces_a_library_and_its_settings() -> None:
    candidate = msgspec.structs.replace(
        using("openblas", OPENBLAS_CORETYPE="Haswell"),
        tuned_for=("Haswell",),
        mapped_from=("/opt/other", FOLDER["openblas"]),
    )
    altered = interventions_by_name(case_of())["blis"].alter(candidate)
    assert altered.environment == {"LD_LIBRARY_PATH": FOLDER["blis"]}
    assert altered.mapped_from == ("/opt/other", FOLDER["blis"])
    assert altered.tuned_for == ()


def test_folders_without_a_blas_stay_on_the_path() -> None:
    case = case_of(at=site(environment={"LD_LIBRARY_PATH": f"/opt/lib:{FOLDER['atlas']}"}))
    altered = interventions_by_name(case)["openblas"].alter(CANDIDATE)
    assert altered.environment["LD_LIBRARY_PATH"] == f"{FOLDER['openblas']}:/opt/lib"


def test_library_already_used_changes_nothing() -> None:
    assert interventions_by_name(case_of())["blis"].alter(using("blis")) == using("blis")


def test_a_library_that_is_not_installed_says_which_package_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    absent = msgspec.structs.replace(design.BLAS_LIBRARIES[2], folder=tmp_path)
    monkeypatch.setattr(blas, "BLAS_LIBRARIES", (absent,))
    (swap,) = blas.blas_interventions(case_of())
    assert swap.impossible_because == (
        "libopenblas0-pthread is not installed: apt install libopenblas0-pthread"
    )
