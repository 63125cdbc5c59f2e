"""How a cluster is named, and which may be spoken to in the clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.cluster.address import (
    LocalWorkers,
    SchedulerAddress,
    SshHosts,
    read_address,
    read_scheduler,
    refuse_unprotected,
)
from equipoise.model.errors import UnusableInput


def test_the_four_forms_of_an_address(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("one\n")
    assert read_address("tcp://one:8786") == SchedulerAddress("tcp://one:8786", "tcp", "one", 8786)
    assert read_address("tls://[fe80::1]:1") == SchedulerAddress(
        "tls://[fe80::1]:1", "tls", "fe80::1", 1
    )
    assert read_address(f"ssh:{hosts}") == SshHosts(f"ssh:{hosts}", hosts)
    assert read_address("local:4") == LocalWorkers("local:4", 4)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("one:8786", "is not the address of a scheduler"),
        ("tcp://one", "is not the address of a scheduler"),
        ("ssh:", "is not the address of a scheduler"),
        ("ssh:nowhere.txt", "the file nowhere.txt with the hosts of"),
        ("local:", "does not end with a number of workers"),
        ("local:0", "does not end with a number of workers"),
        ("local:65", "does not end with a number of workers"),
        ("local:²", "does not end with a number of workers"),
        ("local:two", "does not end with a number of workers"),
    ],
)
def test_malformed_address_is_refused(text: str, what: str) -> None:
    with pytest.raises(UnusableInput, match=what) as caught:
        read_address(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "numbers",
    [
        ("127.0.0.1",),
        ("127.3.2.1", "::1"),
        ("10.1.2.3",),
        ("172.16.0.1", "172.31.255.255"),
        ("192.168.1.1", "fd12:3456::1"),
        ("169.254.1.1", "fe80::1%eth0"),
        ("::ffff:10.0.0.1",),
    ],
)
def test_a_private_address_may_be_in_the_clear(numbers: tuple[str, ...]) -> None:
    # Nothing is raised.
    refuse_unprotected(read_scheduler("tcp://somewhere:8786"), lambda _: numbers)


@pytest.mark.parametrize(
    "numbers",
    [
        ("8.8.8.8",),
        ("172.32.0.1",),
        ("100.64.0.1",),
        ("0.0.0.0",),
        ("2001:db8::1",),
        ("::ffff:8.8.8.8",),
        ("10.0.0.1", "8.8.8.8"),
    ],
)
def test_one_public_address_is_refused(numbers: tuple[str, ...]) -> None:
    with pytest.raises(UnusableInput, match="is unprotected") as caught:
        refuse_unprotected(read_scheduler("tcp://somewhere:8786"), lambda _: numbers)
    assert "--insecure" in str(caught.value.hint)
    # What is encrypted may go anywhere.
    refuse_unprotected(read_scheduler("tls://somewhere:8786"), lambda _: numbers)


def test_a_name_without_address_is_not_taken_for_private() -> None:
    with pytest.raises(UnusableInput, match="no address of somewhere is known"):
        refuse_unprotected(read_scheduler("tcp://somewhere:8786"), lambda _: ())
