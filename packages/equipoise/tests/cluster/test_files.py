"""Shipped files are known by content, stay inside of their folder, and are what trials run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.cluster import files, tasks
from equipoise.cluster.equality import files_of, shipment_of
from equipoise.cluster.files import (
    FOLDER_PLACEHOLDER,
    MachineFolders,
    is_inside,
    local_plan,
    portable_plan,
)
from equipoise.cluster.folders import CampaignFolder
from equipoise.cluster.messages import (
    File,
    FileInventory,
    Shipment,
    ShipmentReply,
    from_bytes,
    to_bytes,
)
from equipoise.files.state import private_folder
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Hooks, Measure, Plan
from packages.equipoise.tests.cluster.hosts import begun, host, order_for, plan_for, status_at_end
from packages.equipoise.tests.plans import plan_of

__all__ = ["host"]

CONTENT = b"#!/bin/sh\nexec cat ./words\n"
PROGRAM = File("bin/tool", files.digest_of(CONTENT), 0o755, is_program=True)


def test_host_reports_its_files(host: Path) -> None:
    (host / "words").write_bytes(b"one")
    wanted = (
        File("words", None),
        File("missing", "0" * 32),
        File("/etc", None),
        PROGRAM,
        File("a\0b", None),
    )
    answer = from_bytes(tasks.examine(to_bytes(FileInventory(wanted))), FileInventory)
    digests = [file.digest for file in answer.files]
    assert digests == [files.digest_of(b"one"), None, None, None, None]
    assert [file.path for file in answer.files] == [file.path for file in wanted]


def test_program_of_the_system_is_found_on_this_host(host: Path) -> None:
    found = files.local_file(File("/nowhere/bin/sh", None, is_program=True), str(host))
    assert found.digest == files.digest_of_file("/bin/sh")
    assert files.local_file(File("/nowhere/bin/sh", None), str(host)).digest is None


def test_a_shipped_file_is_kept_once_by_its_content(host: Path) -> None:
    receive = to_bytes(Shipment(PROGRAM, CONTENT))
    assert from_bytes(tasks.receive(receive), ShipmentReply).digest == PROGRAM.digest
    kept = private_folder(files.SHIPPED_FOLDER) / str(PROGRAM.digest)
    before = kept.stat()
    tasks.receive(receive)
    assert kept.stat().st_ino == before.st_ino
    # A damaged one is replaced.
    kept.write_bytes(b"cut")
    tasks.receive(receive)
    assert kept.read_bytes() == CONTENT


def test_content_with_another_digest_is_refused(host: Path) -> None:
    with pytest.raises(UnusableInput, match="arrived with different content"):
        from_bytes(tasks.receive(to_bytes(Shipment(PROGRAM, CONTENT + b"#"))), ShipmentReply)
    assert list(private_folder(files.SHIPPED_FOLDER).iterdir()) == []


def test_a_file_that_is_too_large_is_named(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_SHIPPED_BYTES", len(CONTENT) - 1)
    with pytest.raises(UnusableInput, match="bin/tool is too large to be shipped") as refusal:
        from_bytes(tasks.receive(to_bytes(Shipment(PROGRAM, CONTENT))), ShipmentReply)
    assert "copy the file into the folder of the worker" in str(refusal.value.hint)


def test_shipped_files_take_bounded_disk_space(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_KEPT_BYTES", 25)
    contents = [bytes([65 + number]) * 10 for number in range(4)]
    for content in contents:
        file = File("data", files.digest_of(content))
        tasks.receive(to_bytes(Shipment(file, content)))
    kept = {file.read_bytes() for file in private_folder(files.SHIPPED_FOLDER).iterdir()}
    assert kept == set(contents[2:])


@pytest.mark.parametrize("path", ["../tool", "/tmp/tool", "a/../../tool", "", ".", "a\0b"])
def test_a_path_out_of_the_folder_is_refused_by_every_task(host: Path, path: str) -> None:
    hostile = replace(PROGRAM, path=path)
    with pytest.raises(UnusableInput, match="outside the working folder"):
        from_bytes(tasks.receive(to_bytes(Shipment(hostile, CONTENT))), ShipmentReply)
    tasks.receive(to_bytes(Shipment(PROGRAM, CONTENT)))
    order = replace(order_for(plan_for()), shipped=(hostile,))
    with pytest.raises(UnusableInput, match="outside the working folder"):
        begun(order)
    assert not CampaignFolder.of(order.fleet_identity, 0).working_folder.exists()


@pytest.mark.parametrize("digest", [None, "", "../../x", "A" * 32])
def test_invalid_digest_is_refused(host: Path, digest: str | None) -> None:
    with pytest.raises(UnusableInput, match="is not a digest"):
        from_bytes(
            tasks.receive(to_bytes(Shipment(replace(PROGRAM, digest=digest), CONTENT))),
            ShipmentReply,
        )


def test_a_link_among_the_kept_files_is_not_followed(host: Path) -> None:
    elsewhere = host / "elsewhere"
    elsewhere.write_bytes(CONTENT)
    (private_folder(files.SHIPPED_FOLDER) / str(PROGRAM.digest)).symlink_to(elsewhere)
    with pytest.raises(UnusableInput, match="cannot start the campaign"):
        begun(replace(order_for(plan_for()), shipped=(PROGRAM,)))


def test_a_file_that_was_not_shipped_is_named(host: Path) -> None:
    with pytest.raises(UnusableInput, match="has lost the shipped file bin/tool"):
        begun(replace(order_for(plan_for()), shipped=(PROGRAM,)))


def test_campaign_runs_shipped_files_in_a_separate_folder(
    host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "coordinator"
    (machine / "bin").mkdir(parents=True)
    monkeypatch.chdir(machine)
    tool = machine / "bin" / "tool"
    tool.write_bytes(CONTENT)
    tool.chmod(0o755)
    (machine / "words").write_bytes(b"one two")
    plan = plan_for("bin/tool", "sh bin/tool words", blocks=1)
    shipped = tuple(file for file in files_of(plan) if not os.path.isabs(file.path))
    assert {file.path for file in shipped} == {"bin/tool", "words"}
    for file in shipped:
        tasks.receive(to_bytes(shipment_of(file, str(machine))))
    monkeypatch.chdir(host)
    order = replace(order_for(plan), shipped=shipped)
    # The worker's folder and the coordinator's have none of it.
    tool.unlink()
    (machine / "words").unlink()
    begun(order)
    assert status_at_end(order).state == "ended"
    with open_for_reading(tmp_path / "ledger.db") as ledger:
        record = ledger.read_run("last")
    work = CampaignFolder.of(order.fleet_identity, 0).working_folder
    assert record.plan.measure.working_folder == str(work)
    assert record.plan.conditions[0].command == (str(work / "bin" / "tool"),)
    assert [trial.failure for trial in record.trials] == [None, None]
    assert (work / "bin" / "tool").stat().st_mode & 0o777 == 0o755


HERE = MachineFolders("/home/me/project")


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


def test_plan_round_trips_on_the_same_machine() -> None:
    assert local_plan(portable_plan(made_here()), HERE) == made_here()


def test_a_plan_has_the_paths_of_the_host_that_reads_it() -> None:
    there = MachineFolders("/srv/w", package="/opt/equipoise", environment="/opt/venv")
    plan = local_plan(portable_plan(made_here()), there)
    first, second = plan.conditions
    assert plan.measure.working_folder == "/srv/w"
    assert plan.measure.input == "/srv/w/words"
    assert first.command == ("/srv/w/a", "--file=/srv/w/b")
    assert second.command == ("/opt/equipoise/_bin/equipoise-workload", "sort", "/home/me/projects")
    assert second.environment == {"LD_PRELOAD": "/usr/lib/x.so:/opt/equipoise/_bin/y.so"}
    assert second.hooks.prepare == "cp '/srv/w/c' /tmp/home/me/project"
    # The name of a condition is the same on every host.
    assert first.name == "/home/me/project/a"


def test_program_of_another_package_is_from_the_host() -> None:
    plan = plan_of(measure=Measure("/home/me/project"))
    command = (f"{HERE.other_packages['equipoise-studies']}/_bin/equipoise-workload", "sort")
    plan = replace(plan, conditions=(replace(plan.conditions[0], command=command),))
    there = MachineFolders("/srv/w", other_packages={"equipoise-studies": "/opt/studies"})
    (condition,) = local_plan(portable_plan(plan), there).conditions
    assert condition.command == ("/opt/studies/_bin/equipoise-workload", "sort")


def test_build_of_a_level_is_from_the_host() -> None:
    plan = replace(
        plan_of(measure=Measure("/home/me/project")),
        conditions=(Condition("fast", ("/home/me/project/.equipoise/builds/fast-1/run",)),),
    )
    text = portable_plan(plan, ["/home/me/project/.equipoise/builds/fast-1"])
    there = MachineFolders("/srv/w", builds=("/var/builds/fast-9",))
    assert local_plan(text, there).conditions[0].command == ("/var/builds/fast-9/run",)


def test_a_campaign_in_the_root_folder_keeps_its_paths() -> None:
    plan = plan_of("a", "b")
    assert MachineFolders("/").to_portable("/bin/a") == "/bin/a"
    assert local_plan(portable_plan(plan), MachineFolders("/srv")).conditions == plan.conditions


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"conditions": 1, "measure": {}}', "[" * 9999])
def test_malformed_plan_is_refused(text: str) -> None:
    with pytest.raises(UnusableInput, match="cannot be read"):
        local_plan(text, HERE)


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "../a",
        "a/../../b",
        "/a",
        "a//b",
        "./a",
        "a/",
        "a\0b",
        FOLDER_PLACEHOLDER + "/../a",
    ],
)
def test_a_path_that_leaves_its_folder_is_found(path: str) -> None:
    assert not is_inside(path)


@pytest.mark.parametrize("path", ["a", "a/b", "..a", "a/..b", ".a"])
def test_a_path_that_stays_in_its_folder_is_found(path: str) -> None:
    assert is_inside(path)
