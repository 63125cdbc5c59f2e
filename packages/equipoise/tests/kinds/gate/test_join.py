"""`equipoise gate --slice` and `--join`: from the gates of several runners to one exit status."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from equipoise.kinds.gate.comment import read_gate, summary_of
from equipoise.kinds.gate.terms import GatePlan
from equipoise.model.revisions import BENCHMARK
from packages.equipoise.tests.cli.conftest import Answer, Equipoise, Gate
from packages.equipoise.tests.kinds.gate.slice_files import (
    SLOWER,
    SOURCE,
    THREE,
    ScriptedSlice,
    write_slice,
    write_slices,
)
from packages.equipoise.tests.kinds.gate.test_analysis import NEW, gate_of
from packages.equipoise.tests.report.forms import breakable
from packages.equipoise.tests.repositories import repository
from packages.equipoise.tests.schema import valid_result


def joined(equipoise: Equipoise, files: tuple[str, ...], *options: str) -> Any:
    """The document of a join, held against the schema."""
    return valid_result(equipoise("gate", "--join", "--json", "-", *options, *files).out)


def refusal(answer: Answer) -> str:
    """The line of an answer that refuses a join, which has a hint."""
    assert answer.status == 2, answer
    problem, _, hint = answer.err.partition("\n  hint: ")
    assert hint
    assert "Traceback" not in answer.err
    return problem


def test_a_slowdown_on_all_runners_fails_with_one_table_for_every_output(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    files = write_slices(tmp_path, SLOWER)
    step = tmp_path / "step.md"
    outputs = ("--markdown", "gate.md", "--report", "page.md", "--json", "gate.json")
    answer = equipoise(
        "gate", "--join", *outputs, *files, environment={"GITHUB_STEP_SUMMARY": str(step)}
    )
    assert answer.status == 1, answer
    assert answer.out.startswith("## Equipoise gate: ❌ fails\n")
    assert re.search(
        r"0 is slower by more than 2 % on each of these 3 runners \(by at least [\d.]+ %\)",
        breakable(answer.out),
    )
    lines = [line for line in answer.out.splitlines() if line.endswith("|")]
    names = [line.split(" | ")[:2] for line in lines[2:]]
    assert [name for _, name in names] == ["any of 3", "mean of 3", "ada", "bea", "cleo"]
    assert all(line.endswith("| ❌ slower |") for line in lines[2:])
    assert step.read_text() == answer.out
    assert (tmp_path / "gate.md").read_text().startswith(answer.out)
    assert summary_of(read_gate(tmp_path / "gate.json")).startswith(answer.out)
    assert "mean of 3" in (tmp_path / "page.md").read_text()
    shown = equipoise("show", "last")
    assert "The gate fails" in shown.out
    assert "the mean, ada, bea and cleo" in shown.out


def test_the_document_has_each_runner_and_the_ledger_reproduces_it(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    plan = gate_of(blocks=30)
    plan = replace(plan, stopping=replace(plan.stopping, min_blocks=30))
    slices = (*THREE[:2], replace(THREE[2], ratio=1.2))
    files = tuple(str(write_slice(tmp_path, each, plan)) for each in slices)
    document = joined(equipoise, files)
    gate = document["gate"]
    assert (gate["passed"], gate["runners"]) == (False, ["ada", "bea", "cleo"])
    (row,) = gate["rows"]
    assert (row["outcome"], row["mean_outcome"]) == ("slower", "slower")
    assert [host["outcome"] for host in row["hosts"]] == ["passes", "passes", "slower"]
    assert [host["differs"] for host in row["hosts"]][2] == "slower"
    assert row["hosts"][2]["equivalence_ci"][0] > 1.02
    assert re.search(
        r"slower by more than 2 % on cleo \(by at least .* %\); on the mean", row["summary"]
    )
    assert "environment" in row["hosts"][0]
    assert {trial["host"] for trial in document["trials"]} == {"ada", "bea", "cleo"}
    slice_run = row["hosts"][0]["run"]
    assert valid_result(equipoise("show", slice_run, "--json", "-").out)["gate"]["passed"]
    # Joining again adds nothing, and a slice or a join can move to another ledger.
    assert joined(equipoise, files) == document
    shown = valid_result(equipoise("show", "last", "--json", "-").out)
    assert shown["gate"] == gate
    assert equipoise("export", "--ledger-slice", "-o", "join.db").status == 0
    moved = valid_result(equipoise("show", "--json", "-", "--ledger", "join.db").out)
    assert moved["gate"] == gate


def test_equal_revisions_pass_on_every_runner(equipoise: Equipoise, tmp_path: Path) -> None:
    answer = equipoise("gate", "--join", *write_slices(tmp_path, THREE))
    assert answer.status == 0
    assert answer.out.startswith("## Equipoise gate: ✅ passes\n")
    assert "0 is not slower by more than 2 % on any of these 3 runners" in breakable(answer.out)
    assert answer.err == ""


def test_an_undecided_join_fails_only_if_the_user_asks(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    files = write_slices(tmp_path, tuple(replace(one, blocks=2) for one in SLOWER))
    answer = equipoise("gate", "--join", *files)
    assert answer.status == 0
    assert answer.out.startswith("## Equipoise gate: ❔ undecided\n")
    assert "1 of 1 benchmark is undecided" in answer.err
    assert equipoise("gate", "--join", "--fail-undecided", *files).status == 1


def test_a_benchmark_that_only_some_slices_have_is_named(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    more = gate_of(benchmarks=2, blocks=60)
    files = [
        write_slice(tmp_path, one, plan)
        for one, plan in zip(THREE, (more, more, None), strict=True)
    ]
    document = joined(equipoise, tuple(map(str, files)))
    hosts = {row["benchmark"]: len(row["hosts"]) for row in document["gate"]["rows"]}
    assert hosts == {"0": 3, "1": 2}
    (warning,) = document["warnings"]
    assert warning["code"] == "not_on_every_runner"
    assert warning["summary"].startswith("1 ran only on ada and bea")


def test_slices_of_different_builds_or_inputs_are_refused(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        ({"trees": ("a" * 40, "d" * 40)}, "the files of the candidate"),
        ({"build": "make -j2"}, "the build line: make and make -j2"),
        ({"toolchain": {"cc": "cc 13.1.0"}}, "the version of cc: cc 12.2.0 and cc 13.1.0"),
        ({"inputs": {"/data/words": "e" * 64}}, "the input /data/words"),
        ({"programs": {"./bench": ("./bench",)}}, "the command of ./bench"),
        ({"tool": "go"}, "the benchmark tool"),
        ({"folder": "sub"}, "the folder of the repository"),
    ]
    first = str(write_slice(tmp_path, replace(THREE[0], blocks=1)))
    for change, problem in changes:
        source = replace(SOURCE, **change)
        other = str(write_slice(tmp_path, ScriptedSlice(problem, blocks=1, source=source)))
        message = refusal(equipoise("gate", "--join", first, other))
        assert f"{first} and {other} differ in {problem}" in message


def test_slices_of_different_questions_are_refused(equipoise: Equipoise, tmp_path: Path) -> None:
    plan = gate_of(blocks=1)
    first = str(write_slice(tmp_path, THREE[0], plan))
    judgement, terms = plan.judgement, plan.terms
    assert isinstance(terms, GatePlan)
    for name, changed in (
        ("--min-effect", replace(plan, judgement=replace(judgement, min_effect=5.0))),
        ("--alpha", replace(plan, judgement=replace(judgement, alpha=0.01))),
        ("the metrics", gate_of("user_s", blocks=1)),
        ("the candidate", replace(plan, terms=replace(terms, candidate=replace(NEW, commit="3")))),
    ):
        other = str(write_slice(tmp_path, ScriptedSlice(name), changed))
        assert f"differ in {name}" in refusal(equipoise("gate", "--join", first, other))
    assert not (tmp_path / ".equipoise").exists(), "a refused join leaves no run"


def test_slices_of_one_coin_are_refused(equipoise: Equipoise, tmp_path: Path) -> None:
    first, second = write_slices(
        tmp_path, tuple(replace(one, blocks=1, seed=7) for one in THREE[:2])
    )
    assert "the same seed 7" in refusal(equipoise("gate", "--join", first, second))
    message = refusal(equipoise("gate", "--join", first, first))
    assert "are the same slice, run " in message


def test_a_file_that_is_no_slice_is_refused_with_its_name(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    good = write_slice(tmp_path, replace(THREE[0], blocks=30))
    content = good.read_bytes()
    file = tmp_path / "bad.db"
    for number, bad in enumerate(
        [
            b"",
            b"{}",
            content[:100],
            content[: len(content) // 2],
            content[: len(content) - 4096],
            content.replace(b"CREATE TABLE run", b"CREATE TABLE ruN"),
        ]
    ):
        file.write_bytes(bad)
        message = refusal(equipoise("gate", "--join", str(good), str(file)))
        assert "bad.db" in message, number
    with sqlite3.connect(good) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "newer Equipoise" in refusal(equipoise("gate", "--join", str(good)))
    assert "missing.db cannot be joined" in refusal(equipoise("gate", "--join", "missing.db"))
    assert "needs the files" in refusal(equipoise("gate", "--join"))


def test_names_of_hostile_slices_stay_text(equipoise: Equipoise, tmp_path: Path) -> None:
    name = "</td>|`<script>alert(1)</script>@everyone\x1b[31m"
    hostile = replace(SOURCE, toolchain={name: "1"})
    other = replace(SOURCE, toolchain={name: f"2 {name}"})
    files = write_slices(
        tmp_path,
        (
            ScriptedSlice("one", blocks=1, source=hostile),
            ScriptedSlice("two", blocks=1, source=other),
        ),
    )
    assert "\x1b" not in refusal(equipoise("gate", "--join", *files))
    plan = gate_of(blocks=1)
    conditions = [replace(each, levels={BENCHMARK: name}) for each in plan.conditions]
    file = write_slice(
        tmp_path, ScriptedSlice(name, blocks=1), replace(plan, conditions=tuple(conditions))
    )
    answer = equipoise("gate", "--join", str(file))
    assert "\x1b" not in answer.out + answer.err
    assert "<script>" not in answer.out


def test_a_join_takes_no_option_of_measuring(equipoise: Equipoise) -> None:
    message = refusal(equipoise("gate", "--join", "--budget", "60", "a.db"))
    assert "cannot be combined with --budget" in message


def test_a_slice_succeeds_also_if_its_own_gate_fails(gate: Gate, tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    project.write("bench", "#!/bin/sh\nexit 0\n", executable=True)
    project.write(".gitignore", ".equipoise\n")
    project.commit()
    project.write("note", "")
    project.commit()
    one_block = ("--baseline", "HEAD~1", "--blocks", "1", "--warmup", "0", "--fail-undecided")
    file = tmp_path / "slice.db"
    answer = gate(project, *one_block, "--slice", str(file), "--", "./bench")
    assert answer.status == 0, answer
    assert f"{file} has the gate of this runner alone, which fails" in answer.err
    answer = gate(project, "--join", "--json", str(tmp_path / "join.json"), str(file))
    assert answer.status == 0, answer
    written = json.loads((tmp_path / "join.json").read_text())
    assert written["gate"]["rows"][0]["blocks"] == 1
    assert gate(project, "--join", "--fail-undecided", str(file)).status == 1
