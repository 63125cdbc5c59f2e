"""The command that a page shows makes the very same plan again."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.cli.options.requests import read_request
from equipoise.design.command_line import command_of_plan
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.explain import command as why
from equipoise.kinds.explain.terms import STUDY, ExperimentPlan, PlannedIntervention
from equipoise.model.plan import Plan, Stopping
from equipoise_studies.primitives import command
from equipoise_studies.primitives.plan import primitives_plan
from packages.equipoise.tests.cli.conftest import plan_from


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-n", "one", "-n", "two"],
        ["--prepare", "sync; echo 'a b'", "--setup", "x", "--setup", "y", "--cleanup", "true"],
        ["--env", "2:LD_PRELOAD=lib a.so", "--env", "1:X=1=2"],
        ["--blocks", "77", "--min-blocks", "12", "--budget", "0.5", "--precision", "1.25"],
        ["--tail", "2.5"],
        ["--alpha", "0.01", "--min-effect", "0", "--timeout", "3", "--warmup", "0"],
        ["--washout", "--ignore-failure", "--output", "count"],
        ["--shell", "default", "--output", "inherit"],
        ["--output", "out.txt", "--input", "in.txt"],
        ["-L", "size", "1,2"],
        ["-L", "size", "1,2", "--control", "-n", "a b"],
        ["--metrics", "max_rss_bytes,wall_s", "--control"],
        ["--adjust"],
        ["--layouts", "3", "--aslr", "drawn"],
        ["--layouts", "6", "--blocks", "40", "--aslr", "off"],
        ["--control", "-n", "one", "-n", "two", "--env", "1:X=1"],
    ],
    ids=lambda options: " ".join(options) or "nothing",
)
def test_a_plan_comes_back_from_its_command(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("")
    commands = ["sleep {size}", "sleep 9"] if "-L" in options else ["sleep 1", "sleep '2 3'"]
    plan = plan_from([*options, "--seed", "5", *commands])
    changed, folder, joined, *words = shlex.split(str(command_of_plan(plan)))
    assert (changed, folder, joined) == ("cd", str(tmp_path), "&&")
    assert words[:2] == ["equipoise", "compare"]
    # Levels are read off parameters, which a command line that is spelled out has no more.
    conditions = tuple(replace(one, levels={}) for one in plan.conditions)
    contrasts = plan.chosen_contrasts and tuple(
        replace(one, factor=None, stratum={}) for one in plan.chosen_contrasts
    )
    again = replace(plan, conditions=conditions, chosen_contrasts=contrasts)
    assert plan_from(words[2:]) == again


def test_it_begins_in_the_folder_of_the_campaign(tmp_path: Path) -> None:
    plan = plan_from(["true", "false"])
    moved = replace(plan, measure=replace(plan.measure, working_folder="/a folder/it's"))
    assert str(command_of_plan(moved)).startswith("cd '/a folder/it'\"'\"'s' && equipoise compare ")


@pytest.mark.parametrize(
    "options",
    [
        ["--quick"],
        ["--only", "null_call,pipe", "--blocks", "9", "--min-blocks", "2", "--budget", "12.5"],
        ["--warmup", "0", "--timeout", "3", "--alpha", "0.01", "--min-effect", "2"],
    ],
    ids=" ".join,
)
def test_a_plan_of_rows_comes_back_from_its_command(options: list[str]) -> None:
    def plan(line: list[str]) -> Plan:
        parameters = command.command.make_context("os", line).params
        names = command.probe_names(parameters["only"])
        return primitives_plan(
            names, read_request(CampaignLimits, parameters), quick=parameters["quick"]
        )

    first = plan([*options, "--seed", "11"])
    repeated = shlex.split(str(command_of_plan(first)))
    assert repeated[:2] == ["equipoise", "os"]
    assert plan(repeated[2:]) == first


def test_what_the_user_had_tried_to_explain_a_gap_is_tried_again() -> None:
    """Whatever else is tried follows from the evidence, and is not named."""
    attempts = tuple(
        PlannedIntervention(name, name, (), 2, 3, 0, 1, 1.0, asked_by=asked_by)
        for name, asked_by in (
            ("jemalloc", ("--only", "jemalloc")),
            ("never_mmap", None),
            ("mine", ("--try", "mine:KEY=a value")),
            ("near", ("--try-command", "near=numactl --localalloc")),
        )
    )
    plan = replace(
        plan_from(["-n", "a b", "-n", "c", "--seed", "5", "true", "false"]),
        study=STUDY,
        stopping=Stopping(blocks=40, budget_s=60.0),
        terms=ExperimentPlan("20260301-101500-ab12", (), attempts),
    )
    program, *words = shlex.split(str(command_of_plan(plan)))
    parameters = why.command.make_context("why", words[1:]).params
    assert (program, words[0], parameters["run"]) == ("equipoise", "why", "20260301-101500-ab12")
    assert (parameters["baseline"], parameters["candidate"], parameters["again"]) == (
        "a b",
        "c",
        True,
    )
    assert (parameters["only"], parameters["tries"]) == (("jemalloc",), ("mine:KEY=a value",))
    assert parameters["try_commands"] == ("near=numactl --localalloc",)
    assert (
        parameters["blocks"],
        parameters["budget"],
        parameters["alpha"],
        parameters["seed"],
    ) == (40, 60.0, 0.05, 5)
