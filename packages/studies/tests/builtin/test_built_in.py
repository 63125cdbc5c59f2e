"""Every built-in study is valid, has its page, and survives a result that holds little."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.design.grid import Grid, build_lines, grid_of, kept_combinations
from equipoise.design.site import Site, remove_missing_levels
from equipoise.model.plan import Condition
from equipoise.model.study import Study
from equipoise.studies.catalogue import BuiltInStudy, analysis_of, built_in_studies, find_study
from equipoise.studies.preparation import quick_form
from equipoise.studies.reader.study import read_study
from packages.studies.tests.builtin.synthetic import study_document

STUDIES = built_in_studies()
OF_2006 = ("sekhon2006", "ridiculousfish2006", "threshold", "blas", "tasks", "packages")
WITH_PAGES = (
    *OF_2006,
    "tratt2019",
    "warmup",
    "compilers",
    "anandtech2005",
    "database",
    "predicts",
)


def study_name(study: BuiltInStudy) -> str:
    return study.name


def read(study: BuiltInStudy) -> Study:
    return read_study(study.file, study.name)


def grid(study: Study, native_folder: Path, build: Path) -> Grid:
    """Its conditions on a host that has every library, and has built what is built."""
    site = Site(native_folder, lambda name: f"/lib/{name}")
    present, _ = remove_missing_levels(study, site)
    for name in ("kernels", *(f"layout-{number}" for number in range(1, 13))):
        (build / name).touch(mode=0o755)
    return grid_of(present, site, dict.fromkeys(build_lines(study), str(build)))


def compares(study: Study, study_grid: Grid) -> bool:
    """Whether a study that compares has something to compare."""
    return bool(study_grid.contrasts) == (study.compared is not None) and bool(
        study_grid.conditions
    )


def test_studies_of_2006_exist() -> None:
    assert set(OF_2006) < {study.name for study in STUDIES}


@pytest.mark.parametrize("study", STUDIES, ids=study_name)
def test_built_in_study_is_valid_and_has_the_name_of_its_folder(
    study: BuiltInStudy, native_folder: Path, tmp_path: Path
) -> None:
    parsed = read(study)
    assert parsed.name == study.name
    assert parsed.summary
    assert compares(parsed, grid(parsed, native_folder, tmp_path))


@pytest.mark.parametrize("study", STUDIES, ids=study_name)
def test_its_quick_form_is_smaller_and_ends_within_two_minutes(
    study: BuiltInStudy, native_folder: Path, tmp_path: Path
) -> None:
    parsed = read(study)
    quick = quick_form(parsed)
    assert len(list(kept_combinations(quick))) <= len(list(kept_combinations(parsed)))
    assert quick.measure.budget is not None
    # What is left is for the last block, the figures and the start.
    assert quick.measure.budget <= 90
    assert compares(quick, grid(quick, native_folder, tmp_path))


@pytest.mark.parametrize("study", STUDIES, ids=study_name)
def test_compared_conditions_have_equally_many_threads(
    study: BuiltInStudy, native_folder: Path, tmp_path: Path
) -> None:
    def threads(condition: Condition) -> dict[str, str]:
        environment = condition.environment.items()
        return {name: value for name, value in environment if name.endswith("_NUM_THREADS")}

    study_grid = grid(read(study), native_folder, tmp_path)
    for contrast in study_grid.contrasts:
        baseline, candidate = (
            study_grid.conditions[side] for side in (contrast.baseline, contrast.candidate)
        )
        assert threads(baseline) == threads(candidate), f"{candidate.name} over {baseline.name}"


@pytest.mark.parametrize("name", WITH_PAGES)
def test_a_study_with_findings_has_a_page_that_shows_its_command(name: str) -> None:
    study = next(study for study in STUDIES if study.name == name)
    text = (study.folder / "page.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert f"equipoise run {name} --quick" in text


@pytest.mark.parametrize("name", WITH_PAGES)
def test_a_result_without_anything_in_it_is_no_error(name: str) -> None:
    own = analysis_of(name)
    assert own is not None
    empty = study_document(name, {"nothing": ("here",)}, lambda levels: {"wall_s": 1.0}, blocks=1)
    assert own.findings(empty).tables == ()
    assert list(own.figures(empty)) == []


def test_a_study_that_is_not_built_in_has_no_findings_of_its_own() -> None:
    assert analysis_of("mine") is None
    assert analysis_of("allocators") is None


def test_quick_sekhon2006_has_these_levels(native_folder: Path, tmp_path: Path) -> None:
    path, _ = find_study("sekhon2006")
    settings = list(kept_combinations(quick_form(read_study(path))))
    quick_levels = {factor: {levels[factor].name for levels in settings} for factor in settings[0]}
    assert quick_levels == {
        "algorithm": {"scythe", "blas", "fast"},
        "allocator": {"glibc", "glibc_15k", "glibc_never", "dlmalloc"},
        "rows": {"445", "890"},
    }
    quick = grid(quick_form(read_study(path)), native_folder, tmp_path)
    commands = [condition.command for condition in quick.conditions]
    assert all(words[words.index("--candidates") + 1] == "4" for words in commands)


def test_each_trial_of_sekhon2006_searches_three_times(native_folder: Path, tmp_path: Path) -> None:
    path, _ = find_study("sekhon2006")
    full = grid(read_study(path), native_folder, tmp_path)
    commands = [condition.command for condition in full.conditions]
    assert all(words[words.index("--repeat") + 1] == "3" for words in commands)
