"""``eq.compare(f, g)`` and ``eq.compare_code``: live campaigns, kept in the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.campaign.progress import CampaignProgress, ProgressListener
from equipoise.kinds.functions.result import FunctionsDocument
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.cli.conftest import Equipoise, equipoise
from packages.equipoise.tests.schema import validated

__all__ = ["equipoise"]

FEW: dict[str, Any] = {"blocks": 6, "min_seconds": 0, "budget": 20}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def short() -> int:
    return sum(range(200))


def long() -> int:
    return sum(range(2000))


def test_the_slower_of_two_functions_is_named(ledger: Path) -> None:
    result = eq.compare(short, long, ledger=ledger, budget=20, min_seconds=0)
    validated(result.document)
    assert result.verdict == "slower"
    assert str(result).startswith("long is slower than short: it takes ")
    assert result.comparison.metric == "call_s"
    assert result.ratio is not None
    assert result.ratio > 2.0


def test_the_campaign_is_in_the_ledger_like_every_other(ledger: Path) -> None:
    result = eq.compare(short, long, ledger=ledger, seed=7, **FEW)
    assert eq.show(ledger=ledger) == result
    assert result.document.run.seed == 7
    assert isinstance(result.document, FunctionsDocument)
    functions = result.document.functions
    assert functions is not None
    assert functions.python_line == (
        "eq.compare(short, long, blocks=6, min_seconds=0, budget=20, seed=7)"
    )
    frame = result.to_frame()
    assert set(frame["condition"]) == {"short", "long"}
    assert "of a call" in result._repr_html_()
    assert "Again:" in result._repr_html_()


def test_code_that_changes_its_data_gets_new_data_for_every_call(ledger: Path) -> None:
    result = eq.compare_code(
        "assert x == [3, 1, 2]; sorted(x)",
        "assert x == [3, 1, 2]; x.sort()",
        setup="x = [3, 1, 2]",
        ledger=ledger,
        **FEW,
    )
    assert isinstance(result.document, FunctionsDocument)
    functions = result.document.functions
    assert functions is not None
    assert (functions.fresh_data, functions.setup) == (True, "x = [3, 1, 2]")
    assert "fresh_data" in [warning.code for warning in result.document.warnings]


def test_a_warning_names_a_function_that_changes_its_data(ledger: Path) -> None:
    words = ["b", "a"]

    def sort() -> None:
        words.sort()

    result = eq.compare(lambda: sorted(words), sort, ledger=ledger, **FEW)
    (warning,) = (
        warning for warning in result.document.warnings if warning.code == "changes_its_input"
    )
    assert warning.summary.startswith("sort changes its data")
    # A lambda has no name that Python could read.
    assert isinstance(result.document, FunctionsDocument)
    assert result.document.functions.python_line == ""
    assert "Again:" not in result._repr_html_()


def test_several_functions_are_ranked(ledger: Path) -> None:
    def longer() -> int:
        return sum(range(800))

    result = eq.compare(long, longer, short, ledger=ledger, **FEW)
    assert [comparison.candidate for comparison in result.document.comparisons] == [
        "test_several_functions_are_ranked.<locals>.longer".rpartition(".")[2],
        "short",
    ]
    assert len(result.document.trials) == 3 * (1 + 6)


def test_the_command_line_shows_it_and_refuses_the_rest(ledger: Path, equipoise: Equipoise) -> None:
    result = eq.compare_code("1 + 1", "2 + 2", ledger=ledger, seed=7, **FEW)
    run, where = result.document.run.id, ["--ledger", str(ledger)]
    shown = equipoise("show", run, *where)
    assert (shown.status, "2 + 2" in shown.out) == (0, True)
    resumed = equipoise("resume", run, *where)
    assert resumed.status == 2
    line = "eq.compare_code('1 + 1', '2 + 2', blocks=6, min_seconds=0, budget=20, seed=7)"
    assert line in resumed.err
    explained = equipoise("why", run, *where)
    assert (explained.status, "Python functions" in explained.err) == (2, True)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"layouts": 4}, "layouts= is for commands"),
        ({"metrics": ["user_s"]}, "metrics= is for commands"),
        ({"control": True}, "control= is for commands"),
        ({"names": ["a"]}, "names= has 1 name for 2"),
        ({"alpha": 0.0}, "alpha"),
    ],
)
def test_an_option_that_does_not_fit_is_named(
    ledger: Path, given: dict[str, Any], what: str
) -> None:
    with pytest.raises(eq.EquipoiseError, match=what):
        eq.compare(short, long, ledger=ledger, **given)
    assert not ledger.exists()


def test_functions_and_commands_are_not_mixed(ledger: Path) -> None:
    with pytest.raises(eq.EquipoiseError, match="commands and functions are mixed"):
        eq.compare(short, "true", ledger=ledger)
    with pytest.raises(eq.EquipoiseError, match="setup= is only for functions"):
        eq.compare("true", "false", setup=list, ledger=ledger)
    with pytest.raises(eq.EquipoiseError, match="there is no code"):
        eq.compare_code(ledger=ledger)


def test_one_function_is_described(ledger: Path) -> None:
    result = eq.compare(short, ledger=ledger, **FEW)
    validated(result.document)
    typical = result.document.typical
    assert typical is not None
    assert (typical.condition, typical.metric, typical.trials) == ("short", "call_s", 6)
    assert str(result).startswith("short takes ")


class InterruptingListener(ProgressListener):
    """Listener that raises Ctrl-C after the second block."""

    def block_ended(self, progress: CampaignProgress) -> None:
        if progress.blocks == 2:
            raise KeyboardInterrupt


def test_trials_before_an_interruption_are_kept(ledger: Path) -> None:
    with pytest.raises(KeyboardInterrupt, match="are kept as run"):
        eq.compare(short, long, ledger=ledger, progress=InterruptingListener())
    run = eq.show(ledger=ledger).document.run
    assert (run.blocks, run.stopped_because) == (2, "interrupted")


def test_a_function_that_fails_later_ends_the_campaign_and_is_in_the_ledger(
    ledger: Path, tmp_path: Path
) -> None:
    processes, was_here = tmp_path / "processes", list[bool]()

    def fails_later() -> None:
        if not was_here:
            was_here.append(True)
            with open(processes, "a") as stream:
                stream.write("x")
        if processes.stat().st_size > 8:
            raise ValueError("too many processes")

    with pytest.raises(eq.EquipoiseError, match="fails_later failed: call: ValueError: too many"):
        eq.compare(short, fails_later, ledger=ledger, blocks=1000, min_blocks=1000)
    assert any(trial.failure for trial in eq.show(ledger=ledger).document.trials)


def test_a_ranking_of_one_function_is_refused_before_anything_runs(ledger: Path) -> None:
    with pytest.raises(UnusableInput, match="there is nothing to rank") as refusal:
        eq.compare(short, ranking=True, ledger=ledger)
    assert refusal.value.hint
    assert not ledger.exists()
