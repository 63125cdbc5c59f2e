"""Shipped files are known by content, stay inside of their folder, and are what trials run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.cluster import files, tasks
from equipoise.cluster.equality import files_of, shipment_of
from equipoise.cluster.folders import CampaignFolder
from equipoise.cluster.messages import (
    File,
    Inventory,
    Received,
    Shipment,
    from_bytes,
    to_bytes,
)
from equipoise.files.state import private_folder
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.cluster.hosts import begun, host, order_for, plan_for, status_at_end

__all__ = ["host"]

CONTENT = b"#!/bin/sh\nexec cat ./words\n"
PROGRAM = File("bin/tool", files.digest_of(CONTENT), 0o755, is_program=True)


def test_a_host_says_which_files_it_has(host: Path) -> None:
    (host / "words").write_bytes(b"one")
    wanted = (
        File("words", None),
        File("missing", "0" * 32),
        File("/etc", None),
        PROGRAM,
        File("a\0b", None),
    )
    answer = from_bytes(tasks.examine(to_bytes(Inventory(wanted))), Inventory)
    digests = [file.digest for file in answer.files]
    assert digests == [files.digest_of(b"one"), None, None, None, None]
    assert [file.path for file in answer.files] == [file.path for file in wanted]


def test_a_program_of_the_system_is_found_where_it_lies_here(host: Path) -> None:
    found = files.file_here(File("/nowhere/bin/sh", None, is_program=True), str(host))
    assert found.digest == files.digest_of_file("/bin/sh")
    assert files.file_here(File("/nowhere/bin/sh", None), str(host)).digest is None


def test_a_shipped_file_is_kept_once_by_its_content(host: Path) -> None:
    receive = to_bytes(Shipment(PROGRAM, CONTENT))
    assert from_bytes(tasks.receive(receive), Received).digest == PROGRAM.digest
    kept = private_folder(files.SHIPPED) / str(PROGRAM.digest)
    before = kept.stat()
    tasks.receive(receive)
    assert kept.stat().st_ino == before.st_ino
    # A damaged one is replaced.
    kept.write_bytes(b"cut")
    tasks.receive(receive)
    assert kept.read_bytes() == CONTENT


def test_what_is_not_the_content_of_its_digest_is_refused(host: Path) -> None:
    with pytest.raises(UnusableInput, match="another content than was sent"):
        from_bytes(tasks.receive(to_bytes(Shipment(PROGRAM, CONTENT + b"#"))), Received)
    assert list(private_folder(files.SHIPPED).iterdir()) == []


def test_a_file_that_is_too_large_is_named(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_SHIPPED_BYTES", len(CONTENT) - 1)
    with pytest.raises(UnusableInput, match="bin/tool is too large to be shipped") as refusal:
        from_bytes(tasks.receive(to_bytes(Shipment(PROGRAM, CONTENT))), Received)
    assert "copy it to every host" in str(refusal.value.hint)


def test_shipped_files_take_a_bounded_room(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_KEPT_BYTES", 25)
    contents = [bytes([65 + number]) * 10 for number in range(4)]
    for content in contents:
        file = File("data", files.digest_of(content))
        tasks.receive(to_bytes(Shipment(file, content)))
    kept = {one.read_bytes() for one in private_folder(files.SHIPPED).iterdir()}
    assert kept == set(contents[2:])


@pytest.mark.parametrize("path", ["../tool", "/tmp/tool", "a/../../tool", "", ".", "a\0b"])
def test_a_path_out_of_the_folder_is_refused_by_every_task(host: Path, path: str) -> None:
    hostile = replace(PROGRAM, path=path)
    with pytest.raises(UnusableInput, match="outside of the working folder"):
        from_bytes(tasks.receive(to_bytes(Shipment(hostile, CONTENT))), Received)
    tasks.receive(to_bytes(Shipment(PROGRAM, CONTENT)))
    order = replace(order_for(plan_for()), shipped=(hostile,))
    with pytest.raises(UnusableInput, match="outside of the working folder"):
        begun(order)
    assert not CampaignFolder.of(order.fleet, 0).working_folder.exists()


@pytest.mark.parametrize("digest", [None, "", "../../x", "A" * 32])
def test_a_digest_that_is_none_is_refused(host: Path, digest: str | None) -> None:
    with pytest.raises(UnusableInput, match="is no digest"):
        from_bytes(
            tasks.receive(to_bytes(Shipment(replace(PROGRAM, digest=digest), CONTENT))), Received
        )


def test_a_link_among_the_kept_files_is_not_followed(host: Path) -> None:
    elsewhere = host / "elsewhere"
    elsewhere.write_bytes(CONTENT)
    (private_folder(files.SHIPPED) / str(PROGRAM.digest)).symlink_to(elsewhere)
    with pytest.raises(UnusableInput, match="cannot start the campaign"):
        begun(replace(order_for(plan_for()), shipped=(PROGRAM,)))


def test_a_file_that_was_not_shipped_is_named(host: Path) -> None:
    with pytest.raises(UnusableInput, match="does not have bin/tool any more"):
        begun(replace(order_for(plan_for()), shipped=(PROGRAM,)))


def test_a_campaign_runs_what_was_shipped_in_a_folder_of_its_own(
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
    work = CampaignFolder.of(order.fleet, 0).working_folder
    assert record.plan.measure.working_folder == str(work)
    assert record.plan.conditions[0].command == (str(work / "bin" / "tool"),)
    assert [trial.failure for trial in record.trials] == [None, None]
    assert (work / "bin" / "tool").stat().st_mode & 0o777 == 0o755
