"""Which hosts may be compared: the same Equipoise, programs and inputs; all else is a property."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.campaign.plans import compare_plan
from equipoise.cluster.equality import compare_hosts, files_of, shipment_of
from equipoise.cluster.files import digest_of, digest_of_file, portable_builds
from equipoise.cluster.messages import File, FileInventory, Introduction
from equipoise.design.commands import CompareOptions
from equipoise.model.errors import UnusableInput
from equipoise.model.host import HostReference
from equipoise.model.plan import Plan, Server

TOOL = File("tool", digest_of(b"tool"), 0o755, is_program=True)
WORDS = File("words", digest_of(b"words"))
SYSTEM = File("/usr/bin/gzip", digest_of(b"gzip"), 0o755, is_program=True)
FILES = (TOOL, WORDS, SYSTEM)


def introduction(name: str) -> Introduction:
    """A host of our version."""
    host = HostReference(f"{len(name):032x}", name)
    return Introduction(host, version("equipoise"), f"/srv/{name}")


def test_equal_hosts_are_compared_and_ship_nothing() -> None:
    hosts = [introduction("ash"), introduction("birch")]
    found = compare_hosts(FILES, hosts, [FileInventory(FILES)] * 2, ship=True)
    assert found.comparable == {host.host: () for host in hosts}
    assert found.refusals == ()


def test_another_version_is_refused_by_name() -> None:
    old = replace(introduction("ash"), equipoise_version="1.0")
    found = compare_hosts(
        FILES, [old, introduction("birch")], [None, FileInventory(FILES)], ship=True
    )
    (refused,) = found.refusals
    own = version("equipoise")
    assert refused.what == f"ash has Equipoise 1.0, this machine has {own}"
    assert refused.hint == f"install Equipoise {own} on ash"
    assert [host.name for host in found.comparable] == ["birch"]


@pytest.mark.parametrize(
    ("there", "complaint"),
    [
        (replace(WORDS, digest=None), "words is missing"),
        (replace(WORDS, digest="0" * 32), "words differs from the file of this machine"),
    ],
)
def test_a_file_that_differs_is_named_or_shipped(there: File, complaint: str) -> None:
    answer = FileInventory((TOOL, there, SYSTEM))
    found = compare_hosts(FILES, [introduction("ash")], [answer], ship=False)
    assert not found.comparable
    assert found.refusals[0].what == f"ash: {complaint}"
    assert found.refusals[0].hint == "add --ship, or copy the files into /srv/ash on ash"
    found = compare_hosts(FILES, [introduction("ash")], [answer], ship=True)
    # Its campaign gets a folder of its own: what is equal has to lie there as well.
    assert list(found.comparable.values()) == [(TOOL, WORDS)]


def test_a_program_of_the_system_is_never_shipped() -> None:
    answer = FileInventory((TOOL, WORDS, replace(SYSTEM, digest="0" * 32)))
    for ship in (True, False):
        found = compare_hosts(FILES, [introduction("ash")], [answer], ship=ship)
        assert not found.comparable
        assert found.refusals[0].what == "ash: /usr/bin/gzip differs from the file of this machine"
        assert str(found.refusals[0].hint).startswith("install the same files on ash")


def test_a_program_that_cannot_be_executed_is_named() -> None:
    answer = FileInventory((replace(TOOL, mode=0o644), WORDS, SYSTEM))
    found = compare_hosts(FILES, [introduction("ash")], [answer], ship=False)
    assert found.refusals[0].what == "ash: tool cannot be executed"


def test_of_many_differences_the_first_are_named() -> None:
    many = tuple(File(f"f{number}", "1" * 32) for number in range(9))
    missing = FileInventory(tuple(replace(file, digest=None) for file in many))
    found = compare_hosts(many, [introduction("ash")], [missing], ship=False)
    expected = "ash: f0 is missing; f1 is missing; f2 is missing; and 6 more"
    assert found.refusals[0].what == expected


def test_answer_without_the_requested_files_is_refused() -> None:
    found = compare_hosts(FILES, [introduction("ash")], [FileInventory((TOOL,))], ship=True)
    assert "did not report its files" in found.refusals[0].what


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script, data and an input."""
    (tmp_path / "run.py").write_text("#!/usr/bin/env sh\n")
    (tmp_path / "run.py").chmod(0o755)
    for name in ("data", "input", "option", "prepared", "preloaded"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(*commands: str, **options: object) -> Plan:
    """The plan of a comparison."""
    return compare_plan(CompareOptions(commands=commands, **options))[0]  # type: ignore[arg-type]


def test_programs_scripts_arguments_and_inputs_are_the_files_of_a_plan(project: Path) -> None:
    plan = planned(
        "./run.py data folder --file=option absent",
        "sh run.py /dev/null -x",
        input="input",
        prepare=("cp prepared /tmp/x",),
        environments=(f"1:LD_PRELOAD=/nowhere.so:{project}/preloaded",),
    )
    found = {file.path: file for file in files_of(plan)}
    sh = os.path.realpath("/bin/sh")
    named = {"run.py", "data", "option", "input", "prepared", "preloaded"}
    assert named <= set(found)
    assert {os.path.realpath(path) for path in set(found) - named} == {
        sh,
        os.path.realpath("/usr/bin/cp"),
    }
    assert found["run.py"].is_program
    assert found["run.py"].mode == 0o755
    assert found["data"].digest == digest_of_file(project / "data")
    assert not found["data"].is_program


def test_a_hook_for_a_shell_is_not_read(project: Path) -> None:
    plan = planned("true", "false", prepare=("cat prepared > /tmp/x",))
    assert "prepared" not in {file.path for file in files_of(plan)}


def test_the_programs_of_a_server_are_files_of_a_plan(project: Path) -> None:
    plan = planned("true", "true")
    server = Server(start=("sh", "run.py", "{port}"), ready=("cat", "data"))
    conditions = tuple(replace(condition, server=server) for condition in plan.conditions)
    paths = {file.path for file in files_of(replace(plan, conditions=conditions))}
    assert {"run.py", "data"} <= paths
    assert "cat" in {os.path.basename(path) for path in paths}


def test_program_of_the_package_is_from_each_host(project: Path) -> None:
    plan = planned("equipoise-workload sort", "true")
    assert "{equipoise:package:equipoise-studies}/_bin/equipoise-workload" in {
        file.path for file in files_of(plan)
    }


def test_the_programs_of_all_layouts_are_files_of_a_plan(project: Path) -> None:
    for layout in (1, 2):
        (project / f"run-{layout}").symlink_to(project / "run.py")
    plan = planned("./run-{layout} data", "./run-{layout} option", layouts=2)
    found = {file.path: file for file in files_of(plan)}
    assert {"run-1", "run-2", "data", "option"} <= set(found)
    assert found["run-2"].is_program


def test_a_build_of_the_hosts_is_not_compared(project: Path) -> None:
    build = project / "builds" / "fast-1"
    build.mkdir(parents=True)
    (build / "run").write_text("#!/bin/sh\n")
    (build / "run").chmod(0o755)
    plan = planned(f"{build}/run data", "true")
    line = f"cc -O2 '{project}/option' -o {{build}}/run && strip /etc/passwd <input"
    (portable,) = portable_builds({"fast": line}, str(project))
    assert str(project) not in portable.line
    paths = {file.path for file in files_of(plan, [str(build)], [portable.line])}
    # What it is built from is compared.
    assert {"data", "option", "input"} <= paths
    assert "/etc/passwd" not in paths
    assert not any("run" in path for path in paths)


def test_a_file_that_changes_while_it_is_shipped_is_refused(project: Path) -> None:
    (file,) = (file for file in files_of(planned("cat data", "true")) if file.path == "data")
    assert shipment_of(file, str(project)).content == b"data"
    (project / "data").write_text("other")
    with pytest.raises(UnusableInput, match="changed while it was shipped"):
        shipment_of(file, str(project))
