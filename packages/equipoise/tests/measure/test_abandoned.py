"""Processes of a killed campaign are found whatever they are doing at that moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.measure import abandoned
from equipoise.measure.abandoned import environment_of

PROCESS = 4711


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a process in a written /proc: it executes a program, and has nothing yet."""
    monkeypatch.setattr(abandoned, "_PROC", tmp_path)
    folder = tmp_path / str(PROCESS)
    folder.mkdir()
    (folder / "exe").symlink_to("/bin/true")
    (folder / "environ").touch()
    (folder / "cmdline").touch()
    return folder


def test_a_process_in_the_midst_of_its_exec_is_waited_for(
    process: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def goes_on(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            (process / "cmdline").write_bytes(b"true\0")
            (process / "environ").write_bytes(b"A=1\0B=2\0")

    monkeypatch.setattr("time.sleep", goes_on)
    assert environment_of(PROCESS) == b"A=1\0B=2\0"
    assert len(pauses) == 3


def test_it_is_waited_for_no_longer_than_patience_lasts(
    process: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert environment_of(PROCESS) == b""
    assert 10 < next(seconds) < 15


def test_an_empty_environment_a_thread_of_the_kernel_and_an_ended_process_are_not_waited_for(
    process: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("it waits"))
    (process / "cmdline").write_bytes(b"env\0-i\0")
    assert environment_of(PROCESS) == b""
    (process / "cmdline").write_bytes(b"")
    (process / "exe").unlink()
    assert environment_of(PROCESS) == b""
    (process / "environ").unlink()
    with pytest.raises(FileNotFoundError):
        environment_of(PROCESS)
