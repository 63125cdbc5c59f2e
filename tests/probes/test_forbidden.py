"""What a machine forbids a probe is said, and there is no number for it."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from .forbidding import IO_URING_SETUP, forbid

SHORT = ("--batches", "2", "--batch-ms", "1")


@pytest.mark.parametrize("probe", ["io_uring_nop", "io_uring_read_byte"])
def test_where_io_uring_is_forbidden_there_is_the_reason_and_no_number(
    native_folder: Path, probe: str
) -> None:
    done = subprocess.run(
        [native_folder / "equipoise-probe", probe, *SHORT],
        preexec_fn=partial(forbid, IO_URING_SETUP),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (69, "")
    assert "io_uring_setup: Operation not permitted" in json.loads(done.stderr)["unavailable"]


@pytest.mark.parametrize("probe", ["fifo", "file_reread", "mmap_reread"])
def test_a_folder_in_which_nothing_can_be_made_is_named(native_folder: Path, probe: str) -> None:
    done = subprocess.run(
        [native_folder / "equipoise-probe", probe, "--folder", "/proc", *SHORT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (69, "")
    assert "/proc" in json.loads(done.stderr)["unavailable"]
