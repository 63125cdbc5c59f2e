"""Opening a ledger names the fault of a file, and changes only ledgers."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from equipoise.ledger import Ledger, ledger_exists, open_for_reading, open_for_writing, opening
from equipoise.model.errors import UnusableInput
from equipoise.model.record import Draw
from packages.equipoise.tests.ledger.conftest import (
    OPEN_EACH_WAY,
    make_plan,
    record_blocks,
    run_script,
)

AS_A_STRANGER = """
import os, sys
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.model.errors import UnusableInput
if os.geteuid() == 0:  # permissions do not stop root
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    if sys.argv[1] == "read":
        with open_for_reading(sys.argv[2]) as ledger:
            print("read", len(ledger.read_run("last").trials))
    else:
        open_for_writing(sys.argv[2], durable=False).close()
        print("opened")
except UnusableInput as refusal:
    print("refused:", refusal.what)
"""


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may enter; only the owner may enter those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="equipoise-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_missing_ledger_is_not_made_by_reading_it(path: Path) -> None:
    with pytest.raises(UnusableInput) as refusal:
        open_for_reading(path)
    assert refusal.value.what == f"no ledger at {path}"
    assert "equipoise compare" in str(refusal.value.hint)
    assert "ledger=" in str(refusal.value.hint)
    assert not path.parent.exists()


def test_the_folder_is_made_and_hidden_from_git(path: Path) -> None:
    open_for_writing(path, durable=False).close()
    assert (path.parent / ".gitignore").read_text() == "*\n"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_a_new_ledger_is_for_its_owner_alone(path: Path) -> None:
    """The reason is that a plan contains the values of environment variables."""
    with open_for_writing(path, durable=False) as ledger:
        ledger.begin_run(make_plan(), {}, 1.0)
        files = sorted(file.name for file in path.parent.iterdir())
        assert files == [".gitignore", "ledger.db", "ledger.db-shm", "ledger.db-wal"]
        assert {mode_of(path.with_name(file)) for file in files[1:]} == {0o600}
    assert mode_of(path) == 0o600
    assert mode_of(path.parent) == 0o700


@pytest.mark.usefixtures("usual_umask")
def test_an_existing_ledger_keeps_its_mode(path: Path) -> None:
    path.parent.mkdir()
    open_for_writing(path, durable=False).close()
    path.chmod(0o640)
    with open_for_writing(path, durable=False) as ledger:
        ledger.begin_run(make_plan(), {}, 1.0)
        assert mode_of(path.with_name("ledger.db-wal")) == 0o640
    assert mode_of(path) == 0o640
    assert mode_of(path.parent) == 0o755


def test_a_folder_that_is_there_already_gets_no_gitignore(path: Path) -> None:
    path.parent.mkdir()
    open_for_writing(path, durable=False).close()
    assert not (path.parent / ".gitignore").exists()


def test_a_folder_of_another_name_is_made_but_not_hidden(tmp_path: Path) -> None:
    path = tmp_path / "results" / "today" / "ledger.db"
    open_for_writing(path, durable=False).close()
    assert [entry.name for entry in path.parent.iterdir()] == ["ledger.db"]


def test_a_path_may_contain_special_characters_of_an_address(tmp_path: Path) -> None:
    path = tmp_path / "q?mode=ro&x#%41 é.db"
    open_for_writing(path, durable=False).close()
    assert path.is_file()
    with open_for_reading(path) as ledger:
        assert ledger.runs() == []


@OPEN_EACH_WAY
@pytest.mark.parametrize(
    "content", [b"hello\n", b"hello\n" * 4000, b"\x00" * 4096, b"SQLite format 3\x00"]
)
def test_another_file_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, open_it: Callable[[Path], Ledger]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UnusableInput, match=r"notes\.txt is not a ledger|is damaged") as refusal:
        open_it(path)
    assert "ledger=" in str(refusal.value.hint)
    assert path.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


@OPEN_EACH_WAY
def test_the_database_of_another_program_is_refused_and_left_alone(
    tmp_path: Path, open_it: Callable[[Path], Ledger]
) -> None:
    path = tmp_path / "bookmarks.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmark (address)")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(UnusableInput, match="is the SQLite database of another program"):
        open_it(path)
    assert path.read_bytes() == content


@OPEN_EACH_WAY
def test_a_folder_is_refused(tmp_path: Path, open_it: Callable[[Path], Ledger]) -> None:
    with pytest.raises(UnusableInput, match="it is a folder"):
        open_it(tmp_path)


@OPEN_EACH_WAY
def test_a_file_that_is_not_regular_is_refused(
    tmp_path: Path, open_it: Callable[[Path], Ledger]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnusableInput, match="not a regular file"):
        open_it(tmp_path / "pipe")


@OPEN_EACH_WAY
def test_a_name_that_is_too_long_is_refused(
    tmp_path: Path, open_it: Callable[[Path], Ledger]
) -> None:
    with pytest.raises(UnusableInput, match="too long"):
        open_it(tmp_path / ("a" * 300))


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableInput, match="file is a file, not a folder"):
        open_for_writing(tmp_path / "file" / "ledger.db", durable=False)


def test_an_empty_file_has_no_run_when_read_and_becomes_a_ledger_when_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "empty.db"
    path.write_bytes(b"")
    with pytest.raises(UnusableInput, match="empty.db has no run yet"):
        open_for_reading(path)
    assert not ledger_exists(path)
    with open_for_writing(path, durable=False) as ledger:
        assert ledger.runs() == []
    assert ledger_exists(path)
    assert not ledger_exists(tmp_path / "absent.db")


def test_a_ledger_without_its_tables_is_damaged(filled: Path, tmp_path: Path) -> None:
    path = tmp_path / "bare.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {0x45515053}")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    with pytest.raises(UnusableInput, match="its tables are missing"):
        open_for_reading(path)


def test_a_damaged_ledger_is_reported(filled: Path) -> None:
    content = filled.read_bytes()
    filled.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with (
        pytest.raises(UnusableInput, match="is damaged") as refusal,
        open_for_reading(filled) as ledger,
    ):
        ledger.read_run("last")
    assert str(filled) in refusal.value.what


def test_a_truncated_ledger_is_reported(filled: Path) -> None:
    content = filled.read_bytes()
    filled.write_bytes(content[: len(content) // 2])
    with pytest.raises(UnusableInput, match="is damaged"), open_for_reading(filled) as ledger:
        ledger.read_run("last")


def test_a_row_that_makes_no_sense_is_damage(filled: Path) -> None:
    connection = sqlite3.connect(filled)
    connection.execute("DROP TRIGGER run_refuses_update")
    connection.execute("UPDATE run SET plan = '{\"study\": 7}'")
    connection.commit()
    connection.close()
    with open_for_reading(filled) as ledger, pytest.raises(UnusableInput, match="is damaged"):
        ledger.read_run("last")


def test_random_damage_never_escapes_as_another_error(filled: Path) -> None:
    content = filled.read_bytes()
    generator = random.Random(20261120)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(generator.choice([1, 8, 64])):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        filled.write_bytes(damaged)
        try:
            with open_for_reading(filled) as ledger:
                ledger.runs()
                ledger.read_run("last")
        except UnusableInput:
            refused += 1
    assert refused > 0


def test_a_locked_ledger_is_reported(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_LOCK_TIMEOUT_S", 0.05)
    other = sqlite3.connect(filled, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnusableInput, match="is locked by another process"):
        open_for_writing(filled, durable=False)
    with open_for_reading(filled) as ledger:
        assert len(ledger.read_run("last").trials) == 40
    other.close()
    open_for_writing(filled, durable=False).close()


def test_a_lock_during_a_write_is_reported_and_writing_can_continue(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_LOCK_TIMEOUT_S", 0.05)
    with open_for_writing(filled, durable=False) as ledger:
        other = sqlite3.connect(filled, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnusableInput, match="is locked by another process"):
            ledger.begin_run(make_plan(), {}, 1.0)
        other.execute("ROLLBACK")
        other.close()
        ledger.begin_run(make_plan(), {}, 1.0)
        assert len(ledger.runs()) == 2


def test_a_ledger_that_is_removed_under_a_campaign_is_noticed(path: Path) -> None:
    with open_for_writing(path, durable=False) as ledger:
        run = ledger.begin_run(make_plan(), {}, 1.0)
        path.unlink()
        with pytest.raises(UnusableInput, match="was removed or replaced"):
            ledger.record_draw(run, Draw("measured", 1, (0, 1), 0))


def test_a_ledger_on_a_read_only_disk_can_be_read_and_an_error_explains_writes(
    filled: Path, public_folder: Path
) -> None:
    path = public_folder / "ledger.db"
    path.write_bytes(filled.read_bytes())
    path.chmod(0o444)
    public_folder.chmod(0o555)
    assert "read 40" in str(run_script(AS_A_STRANGER, "read", str(path)))
    refused = str(run_script(AS_A_STRANGER, "write", str(path)))
    assert "refused: the ledger" in refused
    assert "read-only" in refused
    fresh = str(run_script(AS_A_STRANGER, "write", str(public_folder / "new.db")))
    assert "refused: the ledger" in fresh
    assert "not writable" in fresh
    assert sorted(entry.name for entry in public_folder.iterdir()) == ["ledger.db"]


def test_a_read_only_folder_with_a_log_is_not_read_past_its_log(
    path: Path, public_folder: Path
) -> None:
    copy = public_folder / "ledger.db"
    with open_for_writing(path, durable=False) as ledger:
        record_blocks(ledger, ledger.begin_run(make_plan(), {}, 1.0), range(1, 21))
        shutil.copyfile(path, copy)
        shutil.copyfile(f"{path}-wal", f"{copy}-wal")
    public_folder.chmod(0o555)
    answer = str(run_script(AS_A_STRANGER, "read", str(copy)))
    assert "its last trials are in ledger.db-wal" in answer


def test_an_unreadable_file_is_reported(filled: Path, public_folder: Path) -> None:
    path = public_folder / "ledger.db"
    path.write_bytes(filled.read_bytes())
    path.chmod(0o000)
    assert "permission denied" in str(run_script(AS_A_STRANGER, "read", str(path)))


def test_durable_waits_for_the_disk_and_the_default_does_not(tmp_path: Path) -> None:
    def synchronous(ledger: Ledger) -> int:
        value: int = ledger.connection.execute("PRAGMA synchronous").fetchone()[0]
        return value

    with open_for_writing(tmp_path / "a.db", durable=True) as ledger:
        assert synchronous(ledger) == 2
    with open_for_writing(tmp_path / "b.db", durable=False) as ledger:
        assert synchronous(ledger) == 1
