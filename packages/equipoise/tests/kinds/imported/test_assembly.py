"""Files become a run in which a process is a trial, without invented values."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.kinds.imported import assembly
from equipoise.kinds.imported.terms import ImportSource
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast
from packages.equipoise.tests.imports import SAMPLES, imported, written


def test_iterations_are_kept_and_are_never_trials() -> None:
    run = imported(SAMPLES / "go.txt")
    assert len(run.trials) == len(run.plan.conditions) == 3
    small = run.trials[0]
    iterations = [
        sample.value
        for sample in small.samples
        if sample.metric == "time_s" and sample.iteration is not None
    ]
    assert iterations == pytest.approx([200.8e-9, 170.8e-9], rel=1e-15)
    (cost,) = [s.value for s in small.samples if s.metric == "time_s" and s.iteration is None]
    assert cost == pytest.approx(185.8e-9)


def test_fields_that_a_file_lacks_are_unknown_for_this_reason() -> None:
    accounting = imported(SAMPLES / "go.txt").trials[0].accounting
    assert accounting.wall_s is None
    assert accounting.unknown["wall_s"] == "the imported file does not have it"
    measured = imported(SAMPLES / "hyperfine_2.json").trials[0].accounting
    assert (measured.wall_s, measured.user_s, measured.max_rss_bytes) == (0.125, 0.1, 21000192)
    assert "wall_s" not in measured.unknown
    assert "minor_faults" in measured.unknown


def test_a_plan_has_the_source_of_its_trials() -> None:
    source = imported(SAMPLES / "hyperfine_2.json").plan.terms
    assert isinstance(source, ImportSource)
    assert (source.format, source.tool) == ("hyperfine", "hyperfine 2.0.0")
    assert source.files == (str(SAMPLES / "hyperfine_2.json"),)
    assert source.order == "one after the other"


def test_files_without_names_give_more_trials_of_the_same_conditions() -> None:
    run = imported(SAMPLES / "go.txt", SAMPLES / "go.txt")
    assert len(run.plan.conditions) == 3
    assert len(run.trials) == 6
    assert [draw.order for draw in run.draws] == [(0, 1, 2), (0, 1, 2)]
    assert not any(warning.code == "one_process" for warning in run.warnings)


def test_files_with_names_are_compared_benchmark_by_benchmark() -> None:
    run = imported(SAMPLES / "go.txt", SAMPLES / "go.txt", labels=("old", "new"))
    names = [condition.name for condition in run.plan.conditions]
    assert names[0] == "BenchmarkSort/small, old"
    assert names[3] == "BenchmarkSort/small, new"
    first, *_ = run.plan.contrasts
    assert (first.baseline, first.candidate, first.factor) == (0, 3, "file")
    assert first.stratum["benchmark"] == "BenchmarkSort/small"
    assert len(run.plan.contrasts) == 3


def test_files_with_the_same_name_are_trials_of_one_condition(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, f"{place}.csv", f"condition,value\nbench,{place + 1}\n")
        for place in range(4)
    ]
    run = imported(*paths, labels=("old", "new", "new", "old"))
    assert [condition.name for condition in run.plan.conditions] == ["old", "new"]
    assert [trial.condition for trial in run.trials] == [0, 1, 1, 0]
    assert run.plan.contrasts == (Contrast(0, 1, "file", {"benchmark": "bench"}),)


def test_benchmarks_of_one_file_are_different_things_unless_a_baseline_is_named() -> None:
    assert imported(SAMPLES / "go.txt").plan.contrasts == ()
    chosen = imported(SAMPLES / "go.txt", baseline="BenchmarkSort/large").plan.contrasts
    assert chosen == (Contrast(1, 0), Contrast(1, 2))
    with pytest.raises(UnusableInput, match="no condition is named 'nothing'"):
        imported(SAMPLES / "go.txt", baseline="nothing")


def test_saved_runs_of_criterion_and_executors_of_rebench_are_compared() -> None:
    (saved,) = imported(SAMPLES / "criterion").plan.contrasts
    assert (saved.factor, saved.stratum) == ("saved", {"benchmark": "sort/small"})
    executors = imported(SAMPLES / "rebench.data").plan.contrasts
    assert [contrast.factor for contrast in executors] == ["executor"] * 2


def test_blocks_and_order_of_a_csv_are_kept(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "rows.csv",
        "condition,value,block,order\na,1,7,3\nb,2,7,2\nb,3,9,1\na,4,9,0\n",
    )
    run = imported(path)
    assert isinstance(run.plan.terms, ImportSource)
    assert run.plan.terms.order == "in blocks"
    # Condition 0 is a; the block whose trials come first by order is the first.
    assert [(draw.block, draw.order) for draw in run.draws] == [(1, (0, 1)), (2, (1, 0))]
    assert [(t.block, t.position, t.samples[0].value) for t in run.trials] == [
        (1, 0, 4.0),
        (1, 1, 3.0),
        (2, 0, 2.0),
        (2, 1, 1.0),
    ]


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        ("a,1\na,1\nb,1\nb,1\n", "one after the other"),
        ("a,1\nb,1\na,1\nb,1\n", "mixed"),
        ("a,1\nb,1\n", "one after the other"),
    ],
)
def test_the_order_of_the_trials_is_that_of_the_file(tmp_path: Path, rows: str, order: str) -> None:
    run = imported(written(tmp_path, "rows.csv", f"condition,value\n{rows}"))
    assert isinstance(run.plan.terms, ImportSource)
    assert run.plan.terms.order == order


def test_a_warning_names_conditions_on_different_hosts(tmp_path: Path) -> None:
    apart = "condition,value,host\na,1,h1\na,1,h1\nb,1,h2\nb,1,h2\n"
    together = "condition,value,host\na,1,h1\na,1,h2\nb,1,h1\nb,1,h2\n"
    run = imported(written(tmp_path, "apart.csv", apart))
    assert "hosts" in {warning.code for warning in run.warnings}
    assert run.environment["hosts"] == ["h1", "h2"]
    assert [trial.covariates for trial in run.trials] == [{"host": 0.0}] * 2 + [{"host": 1.0}] * 2
    run = imported(written(tmp_path, "together.csv", together))
    assert "hosts" not in {warning.code for warning in run.warnings}


def test_a_warning_names_conditions_with_one_process() -> None:
    (warning,) = imported(SAMPLES / "sysbench.txt").warnings
    assert warning.code == "one_process"
    assert "sysbench ran in only one process" in warning.summary


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "MAX_VALUES", 10)
    with pytest.raises(UnusableInput, match="3 processes with"):
        imported(SAMPLES / "go.txt")


def test_files_with_different_metrics_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "rows.csv", "condition,value\na,1\n")
    with pytest.raises(UnusableInput, match=r"metrics: time_s in .*go\.txt, value in .*rows\.csv"):
        imported(SAMPLES / "go.txt", path)


@pytest.mark.parametrize("bytes_", ["-1", "1e30", "1e999"])
def test_an_impossible_value_is_refused(tmp_path: Path, bytes_: str) -> None:
    text = (SAMPLES / "hyperfine_2.json").read_text().replace("21000192.0", bytes_)
    with pytest.raises(UnusableInput) as refusal:
        imported(written(tmp_path, "strange.json", text))
    assert refusal.value.hint
