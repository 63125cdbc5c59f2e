"""A host draws its identity at the first request, and keeps it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.files.state import private_folder, this_host
from equipoise.model.errors import UnusableInput

ASK = "from equipoise.files.state import this_host; print(this_host().identity)"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("EQUIPOISE_HOST", raising=False)
    return tmp_path / "equipoise" / "hosts"


def test_processes_that_ask_at_once_get_one_identity(state: Path) -> None:
    asking = [
        subprocess.Popen([sys.executable, "-c", ASK], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = {process.communicate()[0].strip() for process in asking}
    known = this_host()
    assert known is not None
    assert answers == {known.identity}
    (file,) = state.iterdir()
    assert file.read_text() == known.identity
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_name_is_the_users_or_the_machines(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name(given: str | None = None) -> str:
        known = this_host(given)
        assert known is not None
        return known.name

    assert name() == os.uname().nodename
    monkeypatch.setenv("EQUIPOISE_HOST", "lab-\udcff")
    assert name() == r"lab-\udcff"
    assert name("bench") == "bench"
    assert len(name("x" * 999)) == 200


def test_machines_that_share_a_home_have_different_identities(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identities = set()
    for machine in ("one", "two", "one"):
        monkeypatch.setattr("equipoise.files.state._MACHINE_ID", tmp_path / machine)
        (tmp_path / machine).write_text(f"{machine}\n")
        known = this_host()
        assert known is not None
        identities.add(known.identity)
    assert len(identities) == len(list(state.iterdir())) == 2


@pytest.mark.parametrize("content", ["", "0" * 31, "x" * 32, "0" * 33])
def test_an_invalid_identity_is_unknown(state: Path, content: str) -> None:
    assert this_host() is not None
    (file,) = state.iterdir()
    file.write_text(content)
    assert this_host() is None
    file.unlink()
    file.symlink_to("/etc/hostname")
    assert this_host() is None


def test_a_state_folder_that_others_can_write_keeps_no_identity(state: Path) -> None:
    state.parent.mkdir(mode=0o777)
    state.parent.chmod(0o777)
    with pytest.raises(UnusableInput, match="other users"):
        private_folder(state.name)
    assert this_host() is None
