"""`equipoise run compilers` and `run warmup`, as small as they can be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Equipoise


@pytest.mark.live("gcc")
@pytest.mark.live("ld.lld", package="lld")
def test_compilers_builds_layouts_and_answers_over_them(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    said = equipoise(
        *("run", "compilers", "--factor", "program=gcc_O2,gcc_O3", "--factor", "kernel=nbody"),
        *("--factor", "layout=1,2,3", "--blocks", "4", "--allow-concurrent"),
    )
    assert said.status == 0, said.err
    assert "gcc: -O3 over -O2" in said.out
    assert "What layout adds" in said.out


def test_warmup_classes_what_runs_here(equipoise: Equipoise, tmp_path: Path) -> None:
    said = equipoise(
        *("run", "warmup", "--factor", "runtime=cpython", "--factor", "kernel=nbody"),
        *("--factor", "iterations=40", "--blocks", "2", "--allow-concurrent"),
        *("--json", "found.json"),
    )
    assert said.status == 0, said.err
    assert "Warm-up, by runtime and kernel" in said.out
    trials = json.loads((tmp_path / "found.json").read_text())["trials"]
    assert [len(trial["iterations"]["iteration_s"]) for trial in trials] == [40, 40]
    said = equipoise("report", "found.json", "--figures", "figures")
    assert said.status == 0, said.err
    assert list((tmp_path / "figures").rglob("*iterations*.svg"))
