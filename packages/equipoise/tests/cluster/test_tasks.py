"""Answers of a host: bounded slices, and refusals as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.cluster import tasks
from equipoise.cluster.folders import CampaignFolder, StoredProgress
from equipoise.cluster.messages import (
    FileInventory,
    FollowRequest,
    Introduction,
    Status,
    from_bytes,
    to_bytes,
)
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.cluster.hosts import followed, host, order_for, plan_for

__all__ = ["host"]


class LargeTrials:
    """A run of fifty trials of so many bytes each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.asked: list[int] = []

    def slice(self, max_trials: int) -> tuple[bytes, bool]:
        """The first trials, at most so many."""
        self.asked.append(max_trials)
        count = min(max_trials, 50)
        return bytes(self.size * count), count < 50


@pytest.mark.parametrize(
    ("size", "number_of_reads"), [(10, 1), (20_000, 1), (100_000, 3), (3 << 20, 3)]
)
def test_a_slice_is_bounded_in_bytes(size: int, number_of_reads: int) -> None:
    ledger = LargeTrials(size)
    content, has_more = tasks.bounded_slice(ledger.slice)
    # A single trial goes out, whatever its size.
    assert 0 < len(content) <= max(tasks.MAX_SLICE_BYTES, size)
    assert has_more == (len(content) < 50 * size)
    assert len(ledger.asked) <= number_of_reads


def test_refusal_of_a_host_raises_when_it_is_read(host: Path) -> None:
    answer = tasks.follow(to_bytes(FollowRequest("none", 0, "none", b"")))
    with pytest.raises(UnusableInput, match="'none' is not the identity of a run") as refusal:
        from_bytes(answer, Status)
    assert refusal.value.hint == "install the same version of Equipoise on every host"


@pytest.mark.parametrize(
    "content", [b"", b"\xc1", b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0", b"\x91" * 100_000]
)
def test_malformed_or_deeply_nested_message_is_refused(content: bytes) -> None:
    with pytest.raises(UnusableInput, match="cannot read a message of the cluster"):
        from_bytes(content, Status)


def test_a_request_of_another_version_is_refused(host: Path) -> None:
    with pytest.raises(UnusableInput, match="cannot read a message"):
        from_bytes(tasks.begin(to_bytes(FileInventory(()))), Status)
    with pytest.raises(UnusableInput, match="cannot read a message"):
        from_bytes(tasks.examine(b"no message"), FileInventory)


def test_an_order_that_another_version_stored_is_named(host: Path) -> None:
    order = order_for(plan_for())
    folder = CampaignFolder.of(order.fleet_identity, order.host_index)
    folder.path.mkdir()
    (folder.path / "order").write_bytes(b"\x80")
    with pytest.raises(UnusableInput, match="another version of Equipoise began the campaign"):
        followed(order)


def test_worker_reports_its_missing_folder(host: Path) -> None:
    host.rmdir()
    with pytest.raises(UnusableInput, match="No such file or directory") as refusal:
        from_bytes(tasks.introduce(b""), Introduction)
    assert "start the worker again" in str(refusal.value.hint)


def test_campaign_without_an_order_is_absent(host: Path) -> None:
    answer = followed(order_for(plan_for()))
    assert (answer.status.state, answer.slice, answer.has_more) == ("absent", b"", False)


def test_final_progress_fits_the_reserved_file_size(host: Path) -> None:
    folder = CampaignFolder(host)
    folder.write_progress(StoredProgress("waiting", segment=1))
    size = (host / "state").stat().st_size
    long = StoredProgress(
        "failed",
        segment=1,
        failure="\U0001f525\x1b\n" * 9999,
        hint="\udcff" * 9999,
        run_id="r" * 99,
    )
    folder.write_progress(long)
    assert (host / "state").stat().st_size == size
    read = folder.read_progress()
    assert read is not None
    assert read.failure is not None
    assert read.failure.startswith("\U0001f525\\x1b \U0001f525")
    assert read.failure.endswith("…")


def test_damaged_state_is_ignored(host: Path) -> None:
    folder = CampaignFolder(host)
    folder.write_progress(StoredProgress("running", segment=1, process_id=123))
    content = (host / "state").read_bytes()
    (host / "state").write_bytes(content.replace(b"123", b"456"))
    assert folder.read_progress() is None
    (host / "state").write_bytes(b"")
    assert folder.read_progress() is None
