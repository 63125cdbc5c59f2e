"""Lines that build levels: what stands in them for a path is a path and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from equipoise.measure.builds import build_levels
from equipoise.model.errors import UnusableInput
from tests.payloads import LONG, PAYLOADS

ENVIRONMENT = {"PATH": os.environ["PATH"]}
AS_A_FOLDER = [name for name in PAYLOADS if "/" not in name and name not in (".", "..")]


def test_a_folder_that_a_shell_would_obey_is_in_no_line(tmp_path: Path) -> None:
    tried = 0
    for name in AS_A_FOLDER:
        home = tmp_path / name
        try:
            builds = build_levels({"a": ": {build}"}, home, ENVIRONMENT, str(tmp_path))
        except UnusableInput as refusal:
            assert "{build} stands for" in refusal.what
            assert "$EQUIPOISE_BUILD" in (refusal.hint or "")
            tried += 1
        else:
            assert builds["a"].startswith(f"{home}/")
    assert tried > len(AS_A_FOLDER) / 2
    assert not list(tmp_path.rglob("made"))


def test_in_such_a_folder_the_variable_still_names_it(tmp_path: Path) -> None:
    home = tmp_path / "$(touch made)"
    line = 'touch "$EQUIPOISE_BUILD/program"'
    builds = build_levels({"a": line}, home, ENVIRONMENT, str(tmp_path))
    assert (Path(builds["a"]) / "program").is_file()
    assert not list(tmp_path.rglob("made"))


@pytest.mark.parametrize("level", ["../../a b", LONG, "größer" * 60, "-n", "\x1b[31m"])
def test_any_name_of_a_level_has_a_folder_of_its_own(level: str, tmp_path: Path) -> None:
    builds = build_levels({level: "true"}, tmp_path, ENVIRONMENT, str(tmp_path))
    assert Path(builds[level]).parent == tmp_path
