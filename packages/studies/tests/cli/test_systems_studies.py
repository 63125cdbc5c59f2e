"""`equipoise run compilers` and `run warmup`, as small as they can be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Equipoise


@pytest.mark.live("gcc")
@pytest.mark.live("ld.lld", package="lld")
def test_compilers_builds_layouts_and_answers_over_them(equipoise: Equipoise) -> None:
    answer = equipoise(
        *("run", "compilers", "--factor", "program=gcc_O2,gcc_O3", "--factor", "kernel=nbody"),
        *("--factor", "layout=1,2,3", "--blocks", "4", "--allow-concurrent"),
    )
    assert answer.status == 0, answer.err
    assert "gcc: -O3 over -O2" in answer.out
    assert "Variance that layout adds" in answer.out


def test_warmup_classifies_the_runtimes_of_this_host(equipoise: Equipoise, tmp_path: Path) -> None:
    answer = equipoise(
        *("run", "warmup", "--factor", "runtime=cpython", "--factor", "kernel=nbody"),
        *("--factor", "iterations=40", "--blocks", "2", "--allow-concurrent"),
        *("--json", "found.json"),
    )
    assert answer.status == 0, answer.err
    assert "Warm-up, by runtime and kernel" in answer.out
    trials = json.loads((tmp_path / "found.json").read_text())["trials"]
    assert [len(trial["iterations"]["iteration_s"]) for trial in trials] == [40, 40]
    answer = equipoise("report", "found.json", "--figures", "figures")
    assert answer.status == 0, answer.err
    assert list((tmp_path / "figures").rglob("*iterations*.svg"))
