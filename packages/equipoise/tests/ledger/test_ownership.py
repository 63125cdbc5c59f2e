"""A ledger that another user owns or could replace is refused: `resume` runs its commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.ledger import Ledger, open_for_reading, open_for_writing, opening
from equipoise.ledger.opening import TRUSTED_OWNERS
from equipoise.model.errors import UnusableInput

STRANGER = 65_534
OPEN_EACH_WAY = pytest.mark.parametrize(
    "open_it",
    [open_for_reading, lambda path: open_for_writing(path, durable=False)],
    ids=["reading", "writing"],
)
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
Open = Callable[[Path], Ledger]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    file = tmp_path / "folder" / ".equipoise" / "ledger.db"
    open_for_writing(file, durable=False).close()
    return file


@AS_ROOT
@OPEN_EACH_WAY
@pytest.mark.parametrize("place", ["ledger.db", ".", "..", "ledger.db-wal"])
def test_a_ledger_of_another_user_is_not_trusted(ledger: Path, open_it: Open, place: str) -> None:
    strange = (ledger.parent / place).resolve()
    strange.touch()
    os.chown(strange, STRANGER, -1)
    with pytest.raises(UnusableInput, match=f"not trusted: {strange} belongs to") as refusal:
        open_it(ledger)
    assert f"{TRUSTED_OWNERS}={STRANGER}" in str(refusal.value.hint)


@AS_ROOT
def test_a_user_who_is_trusted_by_number_may_own_a_ledger(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(ledger, STRANGER, -1)
    monkeypatch.setenv(TRUSTED_OWNERS, f"1234,{STRANGER}")
    open_for_reading(ledger).close()


@OPEN_EACH_WAY
@pytest.mark.parametrize("place", ["ledger.db", ".", ".."])
def test_a_ledger_that_every_user_may_write_is_not_trusted(
    ledger: Path, open_it: Open, place: str
) -> None:
    strange = (ledger.parent / place).resolve()
    strange.chmod(strange.stat().st_mode | 0o002)
    with pytest.raises(UnusableInput, match=f"other users may write to {strange}"):
        open_it(ledger)


def test_a_sticky_folder_may_be_open_to_everybody(ledger: Path) -> None:
    ledger.parent.parent.chmod(0o1777)
    open_for_reading(ledger).close()


@pytest.mark.parametrize(("members", "trusted"), [(set(), True), ({STRANGER}, False)])
def test_a_group_may_write_if_nobody_else_is_in_it(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, members: set[int], trusted: bool
) -> None:
    monkeypatch.setattr(opening, "_users_in_group", lambda group: {os.geteuid(), *members})
    ledger.parent.chmod(0o770)
    if trusted:
        open_for_reading(ledger).close()
        return
    with pytest.raises(UnusableInput, match="other users may write"):
        open_for_reading(ledger)


@AS_ROOT
def test_a_link_in_a_folder_of_another_user_is_not_trusted(ledger: Path, tmp_path: Path) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    os.chown(strange, STRANGER, -1)
    (strange / "ledger.db").symlink_to(ledger)
    with pytest.raises(UnusableInput, match=f"{strange} belongs to"):
        open_for_reading(strange / "ledger.db")
