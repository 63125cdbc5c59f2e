"""A file is replaced completely or not at all; a device or pipe is written in place."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from equipoise.files import writing
from equipoise.files.writing import UNFINISHED_PREFIX, read_whole, write_whole
from equipoise.model.errors import UnusableInput

OLD, NEW = b"the old page", b"the new page" * 1000


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Path]:
    """A page that exists already; at the end its folder may contain only pages."""
    path = tmp_path / "page.html"
    path.write_bytes(OLD)
    yield path
    assert not list(tmp_path.glob(f"{UNFINISHED_PREFIX}*"))


@contextmanager
def files_of_at_most(count: int) -> Iterator[None]:
    """Limit the size of files, which has the effect of a full disk."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_file_gets_its_new_content(page: Path) -> None:
    write_whole(page, NEW)
    assert page.read_bytes() == NEW


def test_a_disk_that_fills_up_leaves_the_old_file(page: Path) -> None:
    with files_of_at_most(100), pytest.raises(OSError) as caught:
        write_whole(page, NEW)
    assert caught.value.errno == errno.EFBIG
    assert page.read_bytes() == OLD


def test_a_disk_that_fills_up_leaves_no_new_file(tmp_path: Path) -> None:
    with files_of_at_most(100), pytest.raises(OSError):
        write_whole(tmp_path / "new.html", NEW)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "i/o error"), KeyboardInterrupt()])
def test_a_failed_or_interrupted_write_leaves_the_old_file(
    page: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fails(descriptor: int) -> None:
        assert os.fstat(descriptor).st_size == len(NEW)
        raise failure

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(type(failure)):
        write_whole(page, NEW)
    assert page.read_bytes() == OLD


def test_the_content_is_on_the_disk_before_it_takes_the_name(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(page.read_bytes()))
    write_whole(page, NEW)
    assert seen == [OLD]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o751])
def test_a_file_keeps_its_mode(page: Path, mode: int) -> None:
    page.chmod(mode)
    write_whole(page, NEW)
    assert stat.S_IMODE(page.stat().st_mode) == mode


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new", NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_root_replaces_a_users_file_by_a_file_of_that_user(page: Path) -> None:
    os.chown(page, 54321, 54322)
    write_whole(page, NEW)
    assert (page.stat().st_uid, page.stat().st_gid) == (54321, 54322)


def test_a_link_stays_and_its_target_is_replaced(page: Path) -> None:
    (page.parent / "folder").mkdir()
    link, second = page.parent / "folder" / "link", page.parent / "second"
    link.symlink_to("../page.html")
    second.symlink_to(link)
    write_whole(second, NEW)
    assert (second.is_symlink(), link.is_symlink(), page.is_symlink()) == (True, True, False)
    assert page.read_bytes() == NEW


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError) as caught:
        write_whole(tmp_path / "one", NEW)
    assert caught.value.errno == errno.ELOOP


def write_as_somebody_else(path: Path) -> int:
    """Write as a user without an account; return the number of the error, or 0."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(54321, 54321, 54321)
            os.setresuid(54321, 54321, 54321)
            write_whole(path, b"changed")
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 255)
        finally:
            os._exit(254)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_write_protected_file_stays_in_a_writable_folder(tmp_path: Path) -> None:
    open_to_all = reachable(tmp_path)
    page = open_to_all / "page"
    page.write_bytes(OLD)
    page.chmod(0o644)
    assert write_as_somebody_else(page) == errno.EACCES
    assert page.read_bytes() == OLD


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_file_in_a_folder_that_takes_no_other_is_written_in_place(tmp_path: Path) -> None:
    folder = reachable(tmp_path)
    page = folder / "page"
    page.write_bytes(OLD)
    page.chmod(0o666)
    folder.chmod(0o755)
    assert write_as_somebody_else(page) == 0
    assert page.read_bytes() == b"changed"


def reachable(tmp_path: Path) -> Path:
    """Make a folder in which every user may write, and let every user enter its parents."""
    for above in (tmp_path, *tmp_path.parents):
        if above == Path(tempfile.gettempdir()):
            break
        above.chmod(above.stat().st_mode | 0o055)
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def test_a_device_is_written_to_and_stays_one() -> None:
    before = os.stat("/dev/null")
    write_whole(Path("/dev/null"), NEW)
    assert os.stat("/dev/null").st_ino == before.st_ino
    with pytest.raises(OSError) as caught:
        write_whole(Path("/dev/full"), NEW)
    assert caught.value.errno == errno.ENOSPC


def test_a_fifo_is_written_to_and_stays_one(tmp_path: Path) -> None:
    fifo, content = tmp_path / "fifo", bytes(1_000_000)
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    write_whole(fifo, content)
    reader.join()
    assert read == [content]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_fifo_without_a_reader_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "READER_TIMEOUT_S", 0.05)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(OSError, match="nobody reads"):
        write_whole(fifo, NEW)
    idle = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(TimeoutError, match="reads nothing"):
            write_whole(fifo, bytes(1_000_000))
    finally:
        os.close(idle)


def test_a_descriptor_of_this_process_is_written_at_its_position(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with target.open("wb", buffering=0) as out:
        out.write(b"before ")
        write_whole(Path(f"/dev/fd/{out.fileno()}"), b"between")
        write_whole(Path(f"/proc/self/fd/{out.fileno()}"), b" and")
        out.write(b" behind")
    assert target.read_bytes() == b"before between and behind"


HINT = "name a file"


def test_a_file_is_read_completely_up_to_the_limit(tmp_path: Path) -> None:
    content = bytes(3_000_000)
    (tmp_path / "file").write_bytes(content)
    assert read_whole(tmp_path / "file", hint=HINT) == content
    assert 1_000 < len(read_whole(tmp_path / "file", hint=HINT, max_bytes=1_000)) < len(content)


def test_a_fifo_is_read_to_the_end_of_its_writer(tmp_path: Path) -> None:
    fifo, content = tmp_path / "fifo", bytes(1_000_000)
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(content))
    writer.start()
    assert read_whole(fifo, hint=HINT) == content
    writer.join()


def test_a_pipe_without_a_name_is_read_as_the_shell_hands_it_over() -> None:
    reader, writer = os.pipe()
    try:
        with open(writer, "wb") as end:
            end.write(b"content")
        assert read_whole(Path(f"/dev/fd/{reader}"), hint=HINT) == b"content"
    finally:
        os.close(reader)


def test_a_fifo_without_a_writer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "WRITER_TIMEOUT_S", 0.05)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(UnusableInput, match="a FIFO, and nothing was written to it"):
        read_whole(fifo, hint=HINT)
    # A writer that writes nothing is reported like a missing one.
    silent = os.open(fifo, os.O_RDWR)
    try:
        with pytest.raises(UnusableInput, match="a FIFO, and nothing was written to it"):
            read_whole(fifo, hint=HINT)
    finally:
        os.close(silent)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/dev/zero", "neither a file nor a pipe"),
        ("/", "it is a folder"),
        ("/no/such/file", "no such file"),
    ],
)
def test_a_path_that_is_not_a_file_is_named(path: str, words: str) -> None:
    with pytest.raises(UnusableInput, match=words) as caught:
        read_whole(Path(path), hint=HINT)
    assert caught.value.hint == HINT
