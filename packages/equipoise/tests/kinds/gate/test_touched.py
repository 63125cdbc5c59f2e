"""`equipoise gate --touched`: benchmarks that run no changed file come last."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.schedule.run import SimulatedSuite, scheduled_gate
from benchmarks.schedule.touched import untouched_of
from equipoise.kinds.gate.report import gate_document, shortage_sentences
from equipoise.kinds.gate.schedule import OpenBenchmark, choose
from equipoise.kinds.gate.terms import GatePlan, TouchedOrder
from equipoise.ledger import open_for_reading
from equipoise.model.plan import Plan
from equipoise.report.renderers.markdown import to_markdown
from packages.equipoise.tests.cli.conftest import Answer, Gate
from packages.equipoise.tests.kinds.gate.test_schedule import document_of, stage_of, suite
from packages.equipoise.tests.repositories import MadeRepository, repository

PARSE, RENDER = (f"--bench={name}={sys.executable} {name}.py" for name in ("parse", "render"))


@pytest.fixture
def project(tmp_path: Path) -> MadeRepository:
    """A repository with two benchmarks; its later commit changes a function of one of them."""
    project = repository(tmp_path / "project")
    project.write("functions.py", "def parse():\n    return 1\n")
    project.write("shapes.py", "def render():\n    return 1\n")
    project.write("parse.py", "import functions, shapes\nfunctions.parse()\n")
    project.write("render.py", "import functions, shapes\nshapes.render()\n")
    project.write(".gitignore", "__pycache__\n")
    project.commit()
    project.write("functions.py", "def parse():\n    return 2\n")
    project.commit()
    return project


def gated(gate: Gate, project: MadeRepository, *words: str) -> Answer:
    options = ("--touched", "--budget", "0.5", "--warmup", "0", "--json", "../gate.json")
    answer = gate(project, "--ledger", "../ledger.db", *options, *words)
    assert answer.status in (0, 1), answer.err
    return answer


def line_of(answer: Answer) -> str:
    (line,) = (line for line in answer.err.splitlines() if line.startswith("equipoise: --touched"))
    return line.removeprefix("equipoise: ")


def test_benchmarks_that_run_no_changed_file_wait_and_their_evidence_is_kept(
    gate: Gate, project: MadeRepository, tmp_path: Path
) -> None:
    answer = gated(gate, project, "--baseline", "HEAD~1", RENDER, PARSE)
    expected = "--touched: 1 of 2 benchmarks may run a changed file, 1 is measured last"
    assert line_of(answer) == expected
    trials = json.loads((tmp_path / "gate.json").read_text())["trials"]
    first_block = [trial for trial in trials if trial["block"] == trials[0]["block"]]
    assert {trial["condition"].partition(":")[0] for trial in first_block} == {"parse"}
    answer = gated(gate, project, "--baseline", "HEAD~1", RENDER, PARSE)
    assert line_of(answer).startswith(f"{expected}, 2 observed up to ")
    # A benchmark is observed again once a function that it ran differs in the baseline.
    project.write("shapes.py", "def render():\n    return 3\n")
    project.commit()
    answer = gated(gate, project, "--baseline", "HEAD~1", RENDER, PARSE)
    assert line_of(answer).startswith(f"{expected}, 1 observed up to ")
    with open_for_reading(tmp_path / "ledger.db") as ledger:
        terms = ledger.read_run().plan.terms
    assert isinstance(terms, GatePlan)
    assert terms.touched is not None
    assert terms.touched.untouched == (1,)
    assert [path for path, _ in terms.touched.files] == [
        "functions.py",
        "parse.py",
        "render.py",
        "shapes.py",
    ]


def test_a_build_may_make_a_benchmark_from_any_changed_file(
    gate: Gate, project: MadeRepository
) -> None:
    project.write("table.txt", "1\n")
    project.commit()
    answer = gated(gate, project, "--baseline", "HEAD~1", "--build", "true", RENDER, PARSE)
    assert line_of(answer) == (
        "--touched: 0 of 2 benchmarks may run a changed file, 2 are unknown and may, too "
        "(render: the build may read table.txt, which differs), 0 are measured last"
    )


def test_without_a_schedule_the_option_says_why_it_changes_nothing(
    gate: Gate, project: MadeRepository
) -> None:
    words = ("--baseline", "HEAD~1", "--blocks", "1", RENDER, PARSE)
    assert line_of(gated(gate, project, *words)) == (
        "--touched changes nothing: every block runs all undecided benchmarks"
    )


def with_untouched(plan: Plan, *untouched: int) -> Plan:
    assert isinstance(plan.terms, GatePlan)
    return replace(plan, terms=replace(plan.terms, touched=TouchedOrder(untouched, (), ())))


def test_a_benchmark_without_a_block_is_undecided_and_not_timed_out(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    stage.start(with_untouched(suite(0.2), 0, 1))
    document = document_of(stage)
    gate = document.gate
    assert gate is not None
    assert [row.blocks > 0 for row in gate.rows] == [False, False, True, True]
    assert gate.rows[0].outcome == "undecided"
    assert gate.rows[0].summary.startswith("0 was not measured: ")
    assert document.comparisons[0].ratio is None
    sentences = shortage_sentences(gate)
    assert "and 2 of them were not measured" in sentences[0]
    table = to_markdown(gate_document(document))
    assert "| 0 | – | – | – |" in table


def test_untouched_benchmarks_get_the_time_that_the_others_leave(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    stage.start(with_untouched(suite(3.0), 0, 3))
    gate = document_of(stage).gate
    assert gate is not None
    assert [row.outcome for row in gate.rows] == ["passes", "undecided", "passes", "passes"]


def test_untouched_benchmarks_wait_for_decided_or_hopeless_ones() -> None:
    touched = OpenBenchmark(0, 10, 1.0, 40.0)
    hopeless = OpenBenchmark(1, 10, 1.0, 500.0)
    untouched = OpenBenchmark(2, 0, 1.0, 20.0, is_untouched=True)
    assert choose([touched, hopeless, untouched], 50.0, 5) == (0,)
    # A block of 5 % of 20 s has one benchmark of 1 s.
    assert choose([touched, hopeless, untouched], 20.0, 5) == (2,)
    assert choose([hopeless], 20.0, 5) == (1,)


def test_evidence_that_is_wrong_hides_no_slowdown_if_budget_is_left() -> None:
    simulated = SimulatedSuite("normal", 1, 20, 4)
    slower, untouched = untouched_of(simulated, 16)
    budget_s = 0.1 * 250 * 2.0 * float(simulated.seconds.sum())
    gate = scheduled_gate(simulated, 1, budget_s, untouched=untouched)
    assert slower in gate.slower
