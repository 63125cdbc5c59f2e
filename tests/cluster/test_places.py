"""Paths of one machine in a plan become those of another; everything else stays."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.cluster.files import FOLDER, Places, inside, local_plan, portable
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Hooks, Measure, Plan
from tests.plans import plan_of

HERE = Places("/home/me/project")


def made_here() -> Plan:
    """A plan with paths of this machine at every place that may have one."""
    tool = f"{HERE.package}/_bin/equipoise-workload"
    plan = plan_of(measure=Measure("/home/me/project", input="/home/me/project/words"))
    conditions = (
        Condition("/home/me/project/a", ("/home/me/project/a", "--file=/home/me/project/b")),
        Condition(
            "tool",
            (tool, "sort", "/home/me/projects"),
            environment={"LD_PRELOAD": f"/usr/lib/x.so:{HERE.package}/_bin/y.so"},
            hooks=Hooks(prepare="cp '/home/me/project/c' /tmp/home/me/project"),
        ),
    )
    return replace(plan, conditions=conditions)


def test_a_plan_comes_back_as_it_was_on_the_same_machine() -> None:
    assert local_plan(portable(made_here()), HERE) == made_here()


def test_a_plan_has_the_paths_of_the_host_that_reads_it() -> None:
    there = Places("/srv/w", package="/opt/equipoise", environment="/opt/venv")
    plan = local_plan(portable(made_here()), there)
    first, second = plan.conditions
    assert plan.measure.working_folder == "/srv/w"
    assert plan.measure.input == "/srv/w/words"
    assert first.command == ("/srv/w/a", "--file=/srv/w/b")
    assert second.command == ("/opt/equipoise/_bin/equipoise-workload", "sort", "/home/me/projects")
    assert second.environment == {"LD_PRELOAD": "/usr/lib/x.so:/opt/equipoise/_bin/y.so"}
    assert second.hooks.prepare == "cp '/srv/w/c' /tmp/home/me/project"
    # The name of a condition is the same on every host.
    assert first.name == "/home/me/project/a"


def test_a_build_of_a_level_is_that_of_the_host() -> None:
    plan = replace(
        plan_of(measure=Measure("/home/me/project")),
        conditions=(Condition("fast", ("/home/me/project/.equipoise/builds/fast-1/run",)),),
    )
    text = portable(plan, ["/home/me/project/.equipoise/builds/fast-1"])
    there = Places("/srv/w", builds=("/var/builds/fast-9",))
    assert local_plan(text, there).conditions[0].command == ("/var/builds/fast-9/run",)


def test_a_campaign_in_the_root_folder_keeps_its_paths() -> None:
    plan = plan_of("a", "b")
    assert Places("/").portable("/bin/a") == "/bin/a"
    assert local_plan(portable(plan), Places("/srv")).conditions == plan.conditions


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"conditions": 1, "measure": {}}', "[" * 9999])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(UnusableInput, match="cannot be read"):
        local_plan(text, HERE)


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "../a", "a/../../b", "/a", "a//b", "./a", "a/", "a\0b", FOLDER + "/../a"],
)
def test_a_path_that_leaves_its_folder_is_found(path: str) -> None:
    assert not inside(path)


@pytest.mark.parametrize("path", ["a", "a/b", "..a", "a/..b", ".a"])
def test_a_path_that_stays_in_its_folder_is_found(path: str) -> None:
    assert inside(path)
