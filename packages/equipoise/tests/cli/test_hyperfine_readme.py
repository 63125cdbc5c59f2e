"""Every example of hyperfine's README runs with `equipoise compare` in the place of `hyperfine`.

Those that need a network are left out: how to install it. A program that the README only supposes
is stood in for by a real one (`STAND_INS`). What an example does otherwise is printed; Equipoise
itself says it, in a line on stderr or in a warning.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import repository
from tests.crates import HYPERFINE, NotFetchedError, file_of_crate

FEW = "--budget 0.2 --min-seconds 0 --warmup 0 --allow-concurrent --json result.json"
"""Before the example's own words, which come last and count."""
TRUE = "exec true"
STAND_INS = {
    "my_command": TRUE,
    "my-command": TRUE,
    "benchmark-cpp": TRUE,
    "benchmark-rust": TRUE,
    "baseline": TRUE,
    "candidate": "exec sleep 0.005",
    # The caches of the host are not dropped for a test.
    "sudo": "exec cat > /dev/null",
    "sync": TRUE,
    "python": f"exec '{sys.executable}' \"$@\"",
}
"""Programs that the README supposes, each with its replacement."""
OF_THE_FOLDER = ("baseline", "candidate", "benchmark-cpp", "benchmark-rust")
IF_MISSING = {
    "hexdump": 'exec od -x "$@"',
    "xxd": 'exec od -t x1 "$@"',
    "zsh": 'exec bash "$@"',
    "g++": 'exec cc -x c "$@"',
    "clang++": 'exec cc -x c "$@"',
}
FILES = {
    "file": "0123456789\n" * 100,
    "notes.txt": "TODO: measure\n",
    "main.cpp": "int main(void) { return 0; }\n",
    "main.py": "print(1)\n",
    "Makefile": "all:\n\t@true\nclean:\n\t@true\n",
}
FENCE = re.compile(r"^```(?:sh|bash)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MIN_EXAMPLES = 18
DIFFER = (
    # An option, and how the line that Equipoise says begins.
    ("-S ", "-S: each time includes the start of the shell"),
    ("--setup 'git switch {branch}'", "--setup ran before each trial: it contains {branch}"),
    (":MiB", "--metrics: the units are ignored"),
)
FORESEEN = tuple(begin for _, begin in DIFFER)
PREFIX = "equipoise: "


@pytest.fixture(scope="module")
def readme() -> str:
    """The README of the crate, which `make test` fetches before tests lose the network."""
    try:
        return file_of_crate(*HYPERFINE).read_text(encoding="utf-8")
    except NotFetchedError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with what the README speaks of, and `hyperfine` that is `equipoise compare`."""
    desk = tmp_path / "desk"
    made = repository(desk)
    for name, text in FILES.items():
        made.write(name, text)
    made.commit()
    for branch in ("main", "performance-improvements"):
        subprocess.run(["git", "branch", "--force", branch], cwd=desk, capture_output=True)
    programs = tmp_path / "bin"
    programs.mkdir()
    missing = {name: line for name, line in IF_MISSING.items() if shutil.which(name) is None}
    ours = f"exec '{sys.executable}' -m equipoise.cli compare {FEW} \"$@\""
    for name, line in {**STAND_INS, **missing, "hyperfine": ours}.items():
        for folder in (programs, desk):
            program = folder / name
            if folder == programs or name in OF_THE_FOLDER:
                # Another shell loses the functions that bash exports.
                program.write_text(f"#!/usr/bin/env bash\n{line}\n", encoding="utf-8")
                program.chmod(0o755)
    for name, line in missing.items():
        print(f"stood in for: {name} by {line}")
    return desk


def said(answer: subprocess.CompletedProcess[str]) -> list[str]:
    """Lines in which Equipoise names a difference: every line of its own, known or not."""
    own = (line for line in answer.stderr.splitlines() if line.startswith(PREFIX))
    told = [line.removeprefix(PREFIX) for line in own]
    warnings = [line.removeprefix("warning: ") for line in answer.stdout.splitlines()]
    return told + [line for line in warnings if line.startswith(FORESEEN)]


def test_every_example_runs_and_says_what_it_does_otherwise(
    readme: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = [
        block.strip() for block in FENCE.findall(readme) if re.search(r"^hyperfine\b", block, re.M)
    ]
    assert len(examples) >= MIN_EXAMPLES
    environment = {**os.environ, "PATH": f"{desk.parent / 'bin'}:{os.environ['PATH']}"}
    wrong: list[str] = []
    table: list[str] = []
    for example in examples:
        answer = finished(
            ["bash", "-c", example], cwd=desk, env=environment, stdin=subprocess.DEVNULL
        )
        otherwise = said(answer)
        table += [f"{'differs' if otherwise else 'the same'}: {example}"]
        table += [f"    {line}" for line in otherwise]
        expected = [begin for option, begin in DIFFER if option in example]
        unlisted = [line for line in otherwise if not line.startswith(tuple(expected))]
        if answer.returncode != 0:
            wrong.append(f"{example}: status {answer.returncode}: {answer.stderr}")
        elif [
            beginning
            for beginning in expected
            if not any(line.startswith(beginning) for line in otherwise)
        ]:
            wrong.append(f"{example}: it does not say {expected}, but {otherwise}")
        elif unlisted:
            wrong.append(f"{example}: it says what is not listed: {unlisted}")
        else:
            document = json.loads((desk / "result.json").read_text(encoding="utf-8"))
            candidates = len(document["conditions"]) - 1
            metrics = {comparison["metric"] for comparison in document["comparisons"]}
            if len(document["comparisons"]) != candidates * max(1, len(metrics)):
                wrong.append(f"{example}: not every condition is compared with the first")
    with capsys.disabled():
        print("", *table, sep="\n")
    assert wrong == []
    assert list(desk.glob("output-0.log"))
