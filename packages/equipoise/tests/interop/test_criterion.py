"""Folders that criterion.rs itself wrote are read with every sample, each measurement once."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest

from equipoise.interop.formats import criterion
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.imports import SAMPLES, imported, reading_of
from packages.equipoise.tests.tools import decoded, printed_by, ran

WRITTEN = SAMPLES / "criterion_0.5"
CRATE = Path(__file__).parent / "criterion_crate"
COMPILED = Path(__file__).parents[4] / "target" / "criterion_crate"
"""Compiled once; the test costs little from then on."""
FOLDERS = {"group/sum/10": "group/sum/10", "plain sum/with slash": "plain sum_with slash"}
"""Where criterion keeps a benchmark, by its name."""


def runs_with_every_sample(folder: Path) -> set[tuple[str, str]]:
    """Hold what was read against the files; return the benchmark and the name of each run."""
    form, reading = reading_of(folder)
    assert form == "criterion"
    for process in reading.processes:
        saved = folder / FOLDERS[process.benchmark] / process.levels["saved"]
        theirs = decoded(saved / "sample.json")
        assert list(process.iterations["iterations_of_sample"]) == theirs["iters"]
        assert list(process.iterations["time_s"]) == pytest.approx(
            [
                1e-9 * total / count
                for total, count in zip(*(theirs[key] for key in ("times", "iters")), strict=True)
            ]
        )
    return {(process.benchmark, process.levels["saved"]) for process in reading.processes}


@pytest.mark.parametrize(("folder", "names"), [("plain", {"new"}), ("baseline", {"mine", "new"})])
def test_every_sample_is_read(folder: str, names: set[str]) -> None:
    read = runs_with_every_sample(WRITTEN / folder)
    assert {(benchmark, name) for benchmark in FOLDERS for name in names} <= read


def test_every_sample_of_the_current_cargo_bench(tmp_path: Path) -> None:
    folder = tmp_path / "criterion"
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(COMPILED),
        "CRITERION_HOME": str(folder),
    }
    target = f"{platform.machine()}-unknown-linux-gnu"
    fetch = ("cargo", "fetch", "--locked", "--target", target)
    fetched = ran(*fetch, folder=CRATE, environment=environment)
    if fetched.returncode != 0:
        pytest.skip(f"misses criterion, which cargo could not fetch: {fetched.stderr[-200:]}")
    command = ("cargo", "bench", "--offline", "--locked", "--quiet", "--")
    short = ("--warm-up-time", "0.05", "--measurement-time", "0.1")
    few = ("--sample-size", "10", "--nresamples", "1001")
    for saved in (("--save-baseline", "mine"), ("--baseline", "mine")):
        printed_by(*command, *short, *few, *saved, folder=CRATE, environment=environment)
    assert runs_with_every_sample(folder) == {
        (benchmark, name) for benchmark in FOLDERS for name in ("mine", "new")
    }


def test_a_plain_run_is_not_compared_with_its_own_copy() -> None:
    _, reading = reading_of(WRITTEN / "plain")
    assert [process.levels["saved"] for process in reading.processes] == ["new", "new"]
    assert reading.notes == ("2 saved runs, each a copy of another run",)
    assert imported(WRITTEN / "plain").plan.chosen_contrasts == ()


def test_a_saved_baseline_comes_first_and_the_latest_run_is_compared_with_it() -> None:
    _, reading = reading_of(WRITTEN / "baseline")
    of_one = [
        process.levels["saved"]
        for process in reading.processes
        if process.benchmark == "group/sum/10"
    ]
    assert of_one == ["mine", "base", "new"]


def test_saved_name_stays_if_the_latest_run_is_the_saved_one(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "criterion"
    shutil.copytree(WRITTEN / "baseline", folder)
    for benchmark in ("group/sum/10", "plain sum_with slash"):
        shutil.copytree(folder / benchmark / "mine", folder / benchmark / "new", dirs_exist_ok=True)
    _, reading = reading_of(folder)
    assert {process.levels["saved"] for process in reading.processes} == {"mine", "base"}


def test_a_folder_of_too_many_samples_is_refused_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(criterion, "MAX_BYTES", 100)
    with pytest.raises(UnusableInput, match="the samples in this folder are larger than 0 MiB"):
        reading_of(WRITTEN / "plain")
