"""`import equipoise as eq`: the same campaign from Python."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

import equipoise as eq
from equipoise.design.limits import CampaignLimits
from equipoise.measure.measurement_lock import lock_host
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from packages.equipoise.tests.schema import validated


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_compare_returns_a_typed_result(ledger: Path) -> None:
    result = eq.compare(["sleep", "0.002"], "sleep 0.05", ledger=ledger, names=["a", "b"])
    assert result.verdict == "slower"
    assert result.ratio is not None
    interval: Interval = result.interval
    assert interval[0] is not None
    assert interval[0] > 1.0
    sentence, shown = str(result).splitlines()
    assert sentence.startswith("b is slower than a")
    assert re.fullmatch(r"  95 % interval (\S+ to \S+|\S+ % to \S+ %)", shown)


def test_the_result_is_the_ledgers(ledger: Path) -> None:
    result = eq.compare("true", "true", ledger=ledger, blocks=3, seed=5)
    assert eq.show(ledger=ledger) == result
    validated(result.document)
    assert result.document.run.seed == 5


STUDY = """
[study]
name = "sleeps"
[workload]
command = ["sleep", "{seconds}"]
[factors.seconds]
levels = [0.001, 0.03, 0.06]
"""


def test_a_study_runs_as_on_the_command_line(ledger: Path, tmp_path: Path) -> None:
    study = tmp_path / "sleeps.toml"
    study.write_text(STUDY, encoding="utf-8")
    result = eq.run(study, factors={"seconds": [0.001, 0.03]}, blocks=12, seed=5, ledger=ledger)
    validated(result.document)
    assert [condition.name for condition in result.document.conditions] == [
        "seconds=0.001",
        "seconds=0.03",
    ]
    assert (result.document.run.study, result.document.run.seed) == ("sleeps", 5)
    assert result.verdict == "slower"
    assert eq.show(ledger=ledger) == result
    with pytest.raises(eq.EquipoiseError, match="no factor 'hours'"):
        eq.run(study, factors={"hours": "1"}, ledger=ledger)
    with pytest.raises(eq.EquipoiseError, match="'sleps' is neither a file nor a built-in study"):
        eq.run("sleps", ledger=ledger)


def test_a_built_in_study_runs_by_its_name_and_has_its_findings(ledger: Path) -> None:
    result = eq.run("tratt2019", factors={"words": 1000}, blocks=5, budget=5, ledger=ledger)
    assert result.document.run.study == "tratt2019"
    assert result.document.findings is not None
    assert eq.show(ledger=ledger) == result


def test_a_comparison_over_layouts_has_both_scopes(ledger: Path) -> None:
    result = eq.compare("true", "true", ledger=ledger, blocks=4, layouts=2, aslr="on")
    validated(result.document)
    assert len(result.document.run.layouts) == 2
    found = result.comparison.by_level
    assert found is not None
    assert (found.within_scope, found.across_scope) == ("these 2 layouts", "across layouts")
    assert [component.level for component in found.components] == ["layout", "trial"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_trials_come_as_a_frame(ledger: Path, library: Any) -> None:
    result = eq.compare("true", "true", ledger=ledger, blocks=3)
    frame = result.to_frame(library)
    assert type(frame).__module__.startswith(library)
    assert len(frame) == 8
    assert {"wall_s", "condition", "analysed"} <= set(frame.columns)


def test_a_result_can_be_plotted(ledger: Path) -> None:
    chart = eq.compare("true", "true", ledger=ledger, blocks=3).plot()
    assert chart.to_dict()["layer"]


@pytest.mark.parametrize("name", ["\x01", "\x1b[31m", "\ufffe"])
def test_a_plot_of_a_name_that_no_picture_can_hold_is_drawn_all_the_same(
    ledger: Path, tmp_path: Path, name: str
) -> None:
    # In a process of its own: what draws it ends the process where it cannot.
    script = (
        "import sys, equipoise as eq\n"
        "ledger, picture, name = sys.argv[1:]\n"
        "result = eq.compare('true', 'true', names=['a', name], ledger=ledger, blocks=3)\n"
        "result.plot().save(picture)\n"
    )
    picture = tmp_path / "plot.svg"
    given = [str(ledger), str(picture), name]
    subprocess.run([sys.executable, "-c", script, *given], check=True, timeout=600)
    assert repr(name)[1:-1] in picture.read_text()


def test_environments_are_given_by_position(ledger: Path) -> None:
    result = eq.compare(
        ["sh", "-c", "test -z $A"],
        ["sh", "-c", "test $A = 1"],
        environments={2: {"A": "1"}},
        ledger=ledger,
        blocks=2,
    )
    assert result.document.run.blocks == 2


def test_a_failing_command_raises_what_the_command_line_says(ledger: Path) -> None:
    with pytest.raises(eq.EquipoiseError, match="false failed: exit status 1"):
        eq.compare("true", "false", ledger=ledger)


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": float("nan")},
        {"min_effect": -1.0},
        {"blocks": 0},
        {"budget": 0.0},
        {"timeout": -1.0},
    ],
)
def test_a_number_out_of_range_is_named(ledger: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(eq.EquipoiseError, match=next(iter(wrong))):
        eq.compare("true", "true", ledger=ledger, **wrong)
    assert not ledger.exists()


@pytest.mark.parametrize("measure", [eq.compare, eq.compare_code, eq.run])
def test_every_limit_of_a_campaign_is_an_argument(measure: Any) -> None:
    limits = {field.name for field in fields(CampaignLimits)}
    assert limits <= inspect.signature(measure).parameters.keys()


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import equipoise, sys; print({'numpy', 'rich', 'msgspec'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "given",
    [
        (["sort words", "sort -n words"],),
        ([["sort", "words"], ["sort", "-n", "words"]],),
        (["true", "false"],),
    ],
)
def test_a_list_of_commands_gets_the_right_call_as_a_hint(ledger: Path, given: Any) -> None:
    with pytest.raises(UnusableInput) as refused:
        eq.compare(*given, ledger=ledger)
    assert "give each command separately: equipoise.compare(*commands)" in str(refused.value.hint)
    assert not ledger.exists()


@pytest.mark.parametrize(("ranking", "rankings"), [("on", 1), ("off", 0), (True, 1), (False, 0)])
def test_a_ranking_has_the_words_of_the_command_line(
    ledger: Path, ranking: Any, rankings: int
) -> None:
    result = eq.compare("true", "true 1", "true 2", ranking=ranking, blocks=1, ledger=ledger)
    assert len(result.document.ranking) == rankings
    if rankings:
        assert str(result).startswith(result.document.ranking[0].summary)


def test_a_ranking_of_an_unknown_word_is_refused(ledger: Path) -> None:
    unknown: Any = "no"
    with pytest.raises(UnusableInput, match="'no' is not a value of ranking"):
        eq.compare("true", "true 1", "true 2", ranking=unknown, ledger=ledger)
    with pytest.raises(UnusableInput, match="'no' is not a value of ranking"):
        eq.compare_code("1", "2", "3", ranking=unknown, ledger=ledger)


def test_errors_and_hints_name_arguments_not_options(ledger: Path) -> None:
    with pytest.raises(eq.EquipoiseError) as refused:
        eq.compare("true", "true", min_blocks=9, blocks=3, ledger=ledger)
    assert refused.value.hint == "lower min_blocks or raise blocks"
    assert "--" not in str(refused.value)
    with pytest.raises(eq.EquipoiseError) as failed:
        eq.compare("true", "false --budget", ledger=ledger)
    assert "false --budget failed" in failed.value.what
    assert "ignore_failure=True" in str(failed.value.hint)
    with pytest.raises(eq.EquipoiseError) as ranked:
        eq.compare("true", "false", "true", ranking=True, layouts=2, ledger=ledger)
    assert "--" not in str(ranked.value)


def test_warnings_of_a_result_name_arguments_not_options(ledger: Path) -> None:
    result = eq.compare("true", ["sleep", "0.01"], ledger=ledger, blocks=12)
    hints = [warning.hint for warning in result.document.warnings]
    for hint in hints:
        assert "--" not in re.sub(r"equipoise [a-z]+ [^;:,]*", "", hint)
    validated(result.document)


@pytest.mark.parametrize(
    "measure",
    ["eq.compare('true', blocks=1)", "eq.compare(len, setup=list, blocks=1, min_seconds=0)"],
)
def test_a_user_who_waits_for_another_campaign_gets_a_message(measure: str, tmp_path: Path) -> None:
    name = f"equipoise-test-{uuid.uuid4().hex}"
    script = tmp_path / "mine.py"
    script.write_text(
        "import equipoise as eq\n"
        "from equipoise.measure import measurement_lock as lock\n"
        f"lock.lock_host.__kwdefaults__['name'] = {name!r}\n"
        f"{measure}\n"
    )
    environment = os.environ | {"EQUIPOISE_LEDGER": str(tmp_path / "ledger.db")}
    # An orphan: whoever measures inside of another campaign is refused instead.
    orphan = ["setsid", "--fork", sys.executable, str(script)]
    with (
        lock_host(lambda _: None, name=name) as lock,
        subprocess.Popen(orphan, stderr=subprocess.PIPE, env=environment, text=True) as waiting,
    ):
        assert waiting.stderr is not None
        said = waiting.stderr.readline()
        lock.close()
        waiting.stderr.read()
    assert said.startswith(
        f"waiting for the end of another campaign on this host (process {os.getpid()} of"
    )
    assert "allow_concurrent=True" in said
