"""A file or a pipe is read whole; nothing else is, and nobody waits for ever."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from equipoise.files import writing
from equipoise.files.writing import read_whole
from equipoise.model.errors import UnusableInput

HINT = "name a file"


def test_a_file_is_read_whole_and_no_further_than_asked(tmp_path: Path) -> None:
    content = bytes(3_000_000)
    (tmp_path / "file").write_bytes(content)
    assert read_whole(tmp_path / "file", hint=HINT) == content
    assert 1_000 < len(read_whole(tmp_path / "file", hint=HINT, most_bytes=1_000)) < len(content)


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


def test_a_fifo_to_which_nobody_writes_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "WRITER_PATIENCE_S", 0.05)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(UnusableInput, match="a FIFO to which nobody has written"):
        read_whole(fifo, hint=HINT)
    # A writer that says nothing is as bad as none.
    silent = os.open(fifo, os.O_RDWR)
    try:
        with pytest.raises(UnusableInput, match="a FIFO to which nobody has written"):
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
def test_what_is_no_file_is_named(path: str, words: str) -> None:
    with pytest.raises(UnusableInput, match=words) as caught:
        read_whole(Path(path), hint=HINT)
    assert caught.value.hint == HINT
