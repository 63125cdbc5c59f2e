"""Helpers hand a password to a load generator in a private file, and nowhere else."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise_studies.load_generators import pgbench, sysbench
from equipoise_studies.load_generators.load_generator import read_password

PASSWORD = "5ec4e7"
PROGRAM = """#!{python}
import json, os, sys
files = [word.partition("=")[2] for word in sys.argv if word.startswith("--config-file=")]
files += [value for name, value in os.environ.items() if name == "PGPASSFILE"]
told = {{"words": sys.argv, "variables": list(os.environ.values()), "files": [
    (os.stat(file).st_mode, open(file).read(), file) for file in files
]}}
json.dump(told, open({told!r}, "w"))
"""


@pytest.mark.parametrize(
    ("run", "lines"),
    [
        (sysbench.run, ["mysql-password=5ec4e7", "pgsql-password=5ec4e7"]),
        (pgbench.run, ["*:*:*:*:5ec4e7"]),
    ],
)
def test_load_generator_reads_its_password_only_from_a_private_file(
    run: Callable[[list[str], str], None],
    lines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EQUIPOISE_METRICS", str(tmp_path / "metrics.jsonl"))
    file, program, told = tmp_path / "password", tmp_path / "generator", tmp_path / "told"
    file.write_text(f"{PASSWORD}\n")
    program.write_text(PROGRAM.format(python=sys.executable, told=str(told)))
    program.chmod(0o755)
    with pytest.raises(SystemExit, match="cannot be read"):
        run([f"--password-file={file}", "--threads=1"], str(program))
    result = json.loads(told.read_text())
    ((mode, text, where),) = result["files"]
    assert (stat.S_IMODE(mode), text.splitlines()) == (0o600, lines)
    assert "--threads=1" in result["words"]
    assert not any(PASSWORD in word or str(file) in word for word in result["words"])
    assert not any(PASSWORD in variable for variable in result["variables"])
    assert not Path(where).exists()


def test_a_password_file_that_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    real.write_text(f"{PASSWORD}\nmore\n")
    link.symlink_to(real)
    os.mkfifo(pipe)
    assert read_password(str(real)) == PASSWORD
    with pytest.raises(SystemExit, match="cannot read the password file .*link"):
        read_password(str(link))
    with pytest.raises(SystemExit, match=r"pipe must contain one line of letters"):
        read_password(str(pipe))


@pytest.mark.parametrize("text", ["", "\n", "two words\n", "x" * 2000 + " ", "\u00e9\n"])
def test_a_password_that_would_need_quotes_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="must contain one line of letters, digits"):
        read_password(str(file))
