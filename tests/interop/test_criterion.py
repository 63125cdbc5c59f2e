"""Folders that criterion.rs itself wrote are read with every sample, each measurement once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from equipoise.interop.formats import criterion
from equipoise.model.errors import UnusableInput
from tests.imports import SAMPLES, imported, reading_of

WRITTEN = SAMPLES / "criterion_0.5"


@pytest.mark.parametrize("folder", ["plain", "baseline"])
def test_every_sample_is_there(folder: str) -> None:
    form, reading = reading_of(WRITTEN / folder)
    assert form == "criterion"
    for process in reading.processes:
        names = {"group/sum/10": "group/sum/10", "plain sum/with slash": "plain sum_with slash"}
        saved = WRITTEN / folder / names[process.benchmark] / process.levels["saved"]
        theirs = json.loads((saved / "sample.json").read_text())
        assert list(process.iterations["iterations_of_sample"]) == theirs["iters"]
        assert list(process.iterations["time_s"]) == pytest.approx(
            [
                1e-9 * total / count
                for total, count in zip(*(theirs[key] for key in ("times", "iters")), strict=True)
            ]
        )


def test_a_plain_run_is_not_compared_with_its_own_copy() -> None:
    _, reading = reading_of(WRITTEN / "plain")
    assert [one.levels["saved"] for one in reading.processes] == ["new", "new"]
    assert reading.notes == ("2 saved runs, each a copy of another one",)
    assert imported(WRITTEN / "plain").plan.chosen_contrasts == ()


def test_a_saved_baseline_comes_first_and_the_latest_run_is_compared_with_it() -> None:
    _, reading = reading_of(WRITTEN / "baseline")
    of_one = [one.levels["saved"] for one in reading.processes if one.benchmark == "group/sum/10"]
    assert of_one == ["mine", "base", "new"]


def test_the_name_that_was_given_stays_where_the_latest_run_is_the_saved_one(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "criterion"
    shutil.copytree(WRITTEN / "baseline", folder)
    for benchmark in ("group/sum/10", "plain sum_with slash"):
        shutil.copytree(folder / benchmark / "mine", folder / benchmark / "new", dirs_exist_ok=True)
    _, reading = reading_of(folder)
    assert {one.levels["saved"] for one in reading.processes} == {"mine", "base"}


def test_a_folder_of_too_many_samples_is_refused_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(criterion, "MOST_BYTES", 100)
    with pytest.raises(UnusableInput, match="its samples are larger than 0 MiB"):
        reading_of(WRITTEN / "plain")
