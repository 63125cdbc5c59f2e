"""A host runs one campaign at a time: the second one waits, or an error names the first."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from equipoise.measure.measurement_lock import LockOwner, lock_host
from equipoise.model.errors import EquipoiseError, UnusableInput
from packages.equipoise.tests.programs import finished

HOLD = """
import sys
from equipoise.measure.measurement_lock import lock_host
with lock_host(lambda owner: print("waits for", owner.pid, flush=True), name=sys.argv[1]):
    print("has it", flush=True)
    sys.stdin.read()
print("gave it back", flush=True)
"""
Campaign = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def name() -> str:
    return f"equipoise-test-{uuid.uuid4().hex}"


@pytest.fixture
def campaign(name: str) -> Iterator[Campaign]:
    """Start processes that take the lock and keep it until their input ends."""
    started = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, name], stdin=-1, stdout=-1, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def nobody_waits(owner: LockOwner) -> None:
    raise AssertionError(f"waited for {owner}")


def test_a_free_lock_is_taken_at_once_and_can_be_taken_again(name: str) -> None:
    for _ in range(3):
        with lock_host(nobody_waits, name=name):
            pass


def test_the_second_campaign_is_refused_with_a_clear_line_if_it_does_not_wait(
    name: str, campaign: Campaign
) -> None:
    first = campaign()
    assert line_of(first) == "has it"
    waited: list[LockOwner] = []
    with pytest.raises(UnusableInput) as caught:
        lock_host(waited.append, 0, name=name)
    assert waited == [LockOwner(first.pid, os.getuid())]
    assert f"process {first.pid} of user {os.getuid()}" in caught.value.what
    assert "allow_concurrent=True" in str(caught.value.hint)


def test_the_second_waits_until_the_first_has_ended(name: str, campaign: Campaign) -> None:
    first, second = campaign(), None
    assert line_of(first) == "has it"
    second = campaign()
    assert line_of(second) == f"waits for {first.pid}"
    assert first.stdin is not None
    first.stdin.close()
    assert line_of(first) == "gave it back"
    assert line_of(second) == "has it"


def test_the_lock_of_a_killed_owner_is_free(name: str, campaign: Campaign) -> None:
    first = campaign()
    assert line_of(first) == "has it"
    second = campaign()
    assert line_of(second) == f"waits for {first.pid}"
    first.send_signal(signal.SIGKILL)
    assert line_of(second) == "has it"


def test_waiting_campaigns_run_one_after_the_other(name: str, campaign: Campaign) -> None:
    first = campaign()
    assert line_of(first) == "has it"
    waiting = [campaign() for _ in range(3)]
    for process in waiting:
        assert line_of(process) == f"waits for {first.pid}"
    assert first.stdin is not None
    first.stdin.close()
    assert first.wait(600) == 0
    while waiting:
        owner = owner_of(name)
        (process,) = [process for process in waiting if process.pid == owner.pid]
        waiting.remove(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(600) == 0
        assert process.stdout is not None
        assert process.stdout.read().splitlines()[-2:] == ["has it", "gave it back"]
    with lock_host(nobody_waits, name=name):
        pass


def owner_of(name: str) -> LockOwner:
    """Wait until a process has the lock, and return the owner."""
    owners: list[LockOwner] = []
    while not owners:
        with contextlib.suppress(UnusableInput):
            lock_host(owners.append, 0, name=name).close()
    return owners[0]


def test_waiting_ends_after_its_limit(name: str, campaign: Campaign) -> None:
    first = campaign()
    assert line_of(first) == "has it"
    with pytest.raises(UnusableInput, match="another campaign is running on this host"):
        lock_host(lambda _: None, 0.05, name=name)


def test_programs_that_the_owner_starts_do_not_inherit_it(name: str) -> None:
    with lock_host(nobody_waits, name=name):
        child = subprocess.Popen(["sleep", "1000"], close_fds=False)
    try:
        with lock_host(nobody_waits, name=name):
            pass
    finally:
        child.kill()
        child.wait()


def test_a_campaign_inside_another_one_is_refused_without_endless_wait(name: str) -> None:
    inner = (
        "import sys\n"
        "from equipoise.measure.measurement_lock import lock_host\n"
        "from equipoise.model.errors import UnusableInput\n"
        "try:\n"
        "    lock_host(lambda _: None, name=sys.argv[1])\n"
        "except UnusableInput as error:\n"
        "    print(error)\n"
    )
    with lock_host(nobody_waits, name=name):
        done = finished(
            ["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", inner, name], check=True
        )
    assert "inside another campaign" in done.stdout
    assert "allow_concurrent=True" in done.stdout


def test_two_threads_of_one_process_take_turns(name: str) -> None:
    lock = lock_host(nobody_waits, name=name)
    called = threading.Event()
    had_it = threading.Event()

    def second() -> None:
        with lock_host(lambda _: called.set(), name=name):
            had_it.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert called.wait(600)
    assert not had_it.is_set()
    lock.close()
    thread.join(30)
    assert had_it.is_set()


def test_another_user_sees_it_and_can_take_it(name: str) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with lock_host(nobody_waits, name=name):
        assert as_nobody(name) == "refused"
    assert as_nobody(name) == "took it"


def as_nobody(name: str) -> str:
    """Return "took it" or "refused", the result of the lock for a process of another user."""
    # A fork, because another user may not be allowed to read the interpreter.
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b"failed"
        try:
            os.setuid(65534)
            lock_host(lambda _: None, 0, name=name)
            answer = b"took it"
        except UnusableInput:
            answer = b"refused"
        finally:
            os.write(writing, answer)
            os._exit(0)
    os.close(writing)
    try:
        return os.read(reading, 100).decode()
    finally:
        os.close(reading)
        os.waitpid(child, 0)


def test_without_permission_for_such_a_socket_the_error_has_a_hint() -> None:
    # A name too long for the system fails like a forbidden socket.
    with pytest.raises(EquipoiseError) as caught:
        lock_host(nobody_waits, name="x" * 200)
    assert "cannot check whether another campaign runs" in caught.value.what
    assert "None" not in caught.value.what
    assert "allow_concurrent=True" in str(caught.value.hint)
