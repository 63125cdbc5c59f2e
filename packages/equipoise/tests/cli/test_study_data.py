"""A study's `data`: the real rows where their package is, a stand-in with a warning elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from packages.equipoise.tests.cli.conftest import Answer, Equipoise

STUDY = """
[study]
name = "rows"
[workload]
command = ["sh", "-c", "wc -l < $0 || exit 0", "{data}"]
data = "lalonde"
[factors.way]
one = {}
other = { args = ["x"] }
"""
SMALL = ("--blocks", "1", "--warmup", "0", "--json", "-")
QUICK_2006 = (
    *("run", "sekhon2006", "--quick", "--factor", "algorithm=fast", "--factor", "rows=445"),
    *("--factor", "allocator=glibc,glibc_15k"),
)


@pytest.fixture
def study(tmp_path: Path) -> str:
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return str(path)


@pytest.fixture
def without_causaldata(tmp_path: Path) -> dict[str, str]:
    """An environment in which the package that has the rows cannot be imported."""
    folder = tmp_path / "shadow"
    folder.mkdir()
    (folder / "causaldata.py").write_text("raise ImportError('hidden by a test')\n")
    return {"PYTHONPATH": str(folder)}


def document(answer: Answer) -> Any:
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def word_behind_data(found: Any) -> set[str]:
    commands = [condition["command"] for condition in found["conditions"]]
    return {command[command.index("--data") + 1] for command in commands}


def test_the_study_of_2006_runs_on_the_rows_of_the_article(equipoise: Equipoise) -> None:
    pytest.importorskip("causaldata", reason="causaldata is not installed")
    result = document(equipoise(*QUICK_2006, *SMALL))
    (word,) = word_behind_data(result)
    file = Path(word)
    assert file.parent == equipoise.folder / ".equipoise" / "data"
    header, *rows = file.read_text().splitlines()
    treated = [row for row in rows if row.startswith("1,")]
    assert header.startswith("treat,")
    assert (len(rows), len(treated)) == (445, 185)
    assert [condition["failures"] for condition in result["conditions"]] == [0, 0]
    assert "data_missing" not in [warning["code"] for warning in result["warnings"]]


def test_without_the_package_it_says_so_and_runs_on_made_up_rows(
    equipoise_process: Equipoise, without_causaldata: dict[str, str]
) -> None:
    result = document(equipoise_process(*QUICK_2006, *SMALL, environment=without_causaldata))
    assert word_behind_data(result) == {"made-up"}
    assert [condition["failures"] for condition in result["conditions"]] == [0, 0]
    (warning,) = [warning for warning in result["warnings"] if warning["code"] == "data_missing"]
    assert "causaldata" in warning["summary"] and "made-up rows" in warning["summary"]
    assert warning["hint"] == "pip install 'equipoise-matching[datasets]'"


def test_a_study_without_a_use_for_the_rows_neither_writes_nor_warns(
    equipoise_process: Equipoise, study: str, tmp_path: Path, without_causaldata: dict[str, str]
) -> None:
    answer = equipoise_process(
        "run", study, "--command", "true", *SMALL, environment=without_causaldata
    )
    assert "data_missing" not in [warning["code"] for warning in document(answer)["warnings"]]
    assert not (tmp_path / ".equipoise" / "data").exists()


def test_a_resumed_study_needs_its_first_rows_and_not_their_package(
    equipoise: Equipoise,
    equipoise_process: Equipoise,
    study: str,
    without_causaldata: dict[str, str],
) -> None:
    pytest.importorskip("causaldata", reason="causaldata is not installed")
    document(equipoise("run", study, *SMALL))
    more = ("resume", "last", "--blocks", "2", "--json", "-")
    result = document(equipoise_process(*more, environment=without_causaldata))
    assert [condition["trials"] for condition in result["conditions"]] == [2, 2]
    (file,) = (equipoise.folder / ".equipoise" / "data").iterdir()
    file.unlink()
    answer = equipoise("resume", "last", "--blocks", "3")
    assert answer.status == 2
    assert f"does not exist any more: {file}" in answer.err
    assert "hint: restore the file" in answer.err
    assert equipoise("show", "last").status == 0
