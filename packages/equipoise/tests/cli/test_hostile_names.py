"""Names of commands, labels and files are text: to a shell, to the ledger and in every file."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from equipoise.cli import compare
from equipoise.cli.main import run
from equipoise.shared.safe_text import MAX_NAME_LETTERS, shortened
from packages.equipoise.tests.cli.conftest import Equipoise, Gate
from packages.equipoise.tests.payloads import LONG, PAYLOADS
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import repository

NAMES = tuple(name for name in PAYLOADS if name.strip() and name.isprintable())
"""Names that a line of a CSV can hold; controls and bytes that are not text are another test's."""
EVERY = (*PAYLOADS, LONG)
SHORT = ("--blocks", "1", "--warmup", "0", "--budget", "600", "--min-blocks", "1")


def test_names_of_an_imported_file_come_back_as_they_went_in(equipoise: Equipoise) -> None:
    rows = io.StringIO()
    writer = csv.writer(rows)
    writer.writerow(["condition", "value"])
    writer.writerows([name, 1.0 + 0.01 * place] for name in NAMES for place in range(3))
    (equipoise.folder / "rows.csv").write_text(rows.getvalue(), encoding="utf-8")
    done = equipoise("import", "rows.csv", "--json", "-")
    assert done.status == 0, done.err
    assert [condition["name"] for condition in json.loads(done.out)["conditions"]] == list(NAMES)


def test_a_campaign_of_hostile_names_words_and_variables_leaves_everything_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # The first to come reports.
    say = 'mv reported mine 2> /dev/null && cat mine >> "$EQUIPOISE_METRICS"'
    (tmp_path / "say.sh").write_text(f'printf "%s\\0" "$HOSTILE" "$1" >> said\n{say}\ntrue\n')
    reported = (f'{{"metric": {json.dumps(name)}, "value": 1}}\n' for name in (*NAMES, "a\0b"))
    (tmp_path / "reported").write_text("".join(reported))
    commands = [shlex.join(["sh", "say.sh", name]) for name in EVERY]
    options = [part for name in EVERY for part in ("-n", name)]
    for place, one in enumerate(EVERY, start=1):
        options += ["--env", f"{place}:HOSTILE={one}"]
    ledger = "$(touch made) '\";\x1b[31m.db"
    monkeypatch.setenv("EQUIPOISE_LEDGER", ledger)
    prepare = f": {shlex.join(EVERY)}"
    # The names are the values of variables, too.
    options += ["--show-env", "--prepare", prepare]
    done = run(["compare", *options, "--json", "result.json", *SHORT, *commands])
    assert done == 0, capsys.readouterr().err
    answer = os.fsdecode((tmp_path / "said").read_bytes()).split("\0")[:-1]
    assert Counter(answer) == Counter(2 * EVERY)
    document = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    names = [shortened(name).encode("utf-8", "backslashreplace").decode() for name in EVERY]
    assert max(map(len, names)) == MAX_NAME_LETTERS
    assert [condition["name"] for condition in document["conditions"]] == names
    assert {*NAMES, "a\0b"} < {
        name for condition in document["conditions"] for name in condition["metrics"]
    }

    for words in (["show"], ["list"], ["report", "-o", "hidden.md"]):
        assert run(words) == 0
    for name in ("r.md", "r.csv"):
        assert run(["report", "-o", name, "--show-env"]) == 0
    for form in ("csv", "json", "parquet", "bmf", "hyperfine", "latex"):
        assert run(["export", "-o", "exported", "--format", form]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "n" * MAX_NAME_LETTERS not in shown.out
    assert [line for line in shown.out.split("\n") if not line.isprintable()] == []
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        assert {row["condition"] for row in csv.DictReader(file)} == set(names)
    whole(tmp_path / ledger, trials=len(EVERY))
    assert_again(tmp_path, (tmp_path / "r.md").read_text(encoding="utf-8"))
    assert not list(tmp_path.rglob("made"))


def whole(ledger: Path, trials: int) -> None:
    """The ledger has every table and every row."""
    with closing(sqlite3.connect(ledger)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM trial").fetchone() == (trials,)


def assert_again(folder: Path, markdown: str) -> None:
    """The line that runs it again gives a shell the very words, and the whole names."""
    (line,) = re.findall(r"^cd .*", markdown, re.MULTILINE)
    script = f"equipoise() {{ printf '%s\\0' \"$@\"; }}\n{line}\n"
    done = subprocess.run(["bash"], input=script.encode(), cwd=folder, capture_output=True)
    assert done.returncode == 0, done.stderr
    words = [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]
    repeated = compare.command.make_context("compare", words[1:]).params
    assert repeated["names"] == EVERY
    assert repeated["environments"] == tuple(
        f"{place}:HOSTILE={one}" for place, one in enumerate(EVERY, start=1)
    )
    assert [shlex.split(command)[1:] for command in repeated["commands"]] == [
        ["say.sh", name] for name in EVERY
    ]


OBSERVE = ("observe", "table.csv")
ARGUMENTS: dict[str, Callable[[str], list[str]]] = {
    "a command": lambda one: [one],
    "a run": lambda one: ["show", one],
    "a run to report": lambda one: ["report", one, "-o", "page.md"],
    "a report": lambda one: ["report", "last", "-o", one],
    "an export": lambda one: ["export", "last", "-o", one],
    "a ledger": lambda one: ["show", "last", "--ledger", one],
    "a study": lambda one: ["run", one],
    "a program": lambda one: ["compare", "--json", f"{one}/x", one, one],
    "a variable": lambda one: ["compare", "true", "true 1", "--env", one],
    "a parameter": lambda one: ["compare", "{x} a", "/nowhere", "-L", "x", one],
    "a shell": lambda one: ["compare", "true", "true 1", "--shell", one, "--input", one],
    "a file to import": lambda one: ["import", one],
    "a table": lambda one: ["match", one, "--treatment", one, "--outcome", one],
    "a column": lambda one: ["balance", "table.csv", "--treatment", one, "--covariates", one],
    "a formula": lambda one: ["balance", "table.csv", "--formula", f"treat ~ x + {one}"],
    "a quoted column": lambda one: ["balance", "table.csv", "--formula", f"treat ~ `{one}`"],
    "a log": lambda one: ["observe", one, "--treatment", "treat=1:0", "--outcome", one],
    "a version": lambda one: [*OBSERVE, "--treatment", f"x={one}:b", "--outcome", "y"],
    "a row": lambda one: ["os", "--only", one],
    "a suite": lambda one: ["gate", "--baseline", "HEAD", "--suite", one],
    "a benchmark": lambda one: ["gate", "--baseline", one, "--bench", one],
    "a program to link": lambda one: ["layouts", "--", "no-such-compiler", one],
}
"""Where a name is asked for, and none of ours will do."""


@pytest.mark.parametrize("what", ARGUMENTS)
def test_a_name_that_is_of_no_use_is_refused_in_two_lines_and_does_nothing(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # One of the names is "..": what other tests have left there is not for this one to read.
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "table.csv").write_text("treat,x,y\n0,1.5,2\n1,1.2,3\n0,1.1,2\n1,1.9,4\n")
    refused = 0
    for name in (*EVERY, "/dev/null/x", ""):
        status = run(ARGUMENTS[what](name))
        answer = capsys.readouterr()
        assert [
            line for line in (answer.out + answer.err).split("\n") if not line.isprintable()
        ] == []
        if status != 0:
            assert status == 2
            assert answer.err.startswith("equipoise: ")
            assert answer.err.count("\n") <= 2
            refused += 1
    assert refused > len(EVERY) / 2
    assert [file.name for file in tmp_path.rglob("*")] == ["folder", "table.csv"]


def test_a_gate_takes_branches_benchmarks_and_folders_as_text(tmp_path: Path, gate: Gate) -> None:
    branch = "x$(touch${IFS}made)'\"|<img>`id`@ada"
    made = repository(tmp_path / 'new\nline "quoted" \\ $(touch made)')
    made.write("bench", "#!/bin/sh\ntrue\n", executable=True)
    made.commit()
    made.git("checkout", "--quiet", "-b", branch)
    benches = [
        part
        for name in NAMES
        if "=" not in name and name == name.strip()
        for part in ("--bench", f"{name}={shlex.join(['./bench', name])}")
    ][:60]
    summary = tmp_path / "summary.md"
    answer = gate(
        made,
        *("--baseline", "main", "--candidate", branch, "--build", "true"),
        *("--blocks", "1", "--warmup", "0", *benches),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert answer.status == 0, answer.err
    assert summary.read_text(encoding="utf-8") == answer.out
    assert not re.search(r"^\s*(::|/)", answer.out, re.MULTILINE)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(answer.out)
    inner = [child for token in tokens for child in token.children or ()]
    assert {part.type for part in inner} <= {"text", "html_inline", "softbreak"}
    assert {part.content for part in inner if part.type == "html_inline"} <= {"<!-- -->"}
    assert sum(token.type == "tr_open" for token in tokens) == 1 + len(benches) // 2
    assert not list(tmp_path.rglob("made"))


def test_completion_in_a_shell_runs_nothing(tmp_path: Path) -> None:
    words = " ".join(shlex.quote(name) for name in NAMES)
    script = f"""
        PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH
        eval "$(equipoise completion bash)"
        touch '$(touch made)' '`touch made`'
        COMP_WORDS=(equipoise report {words}) COMP_CWORD={len(NAMES) + 1}
        _equipoise_completion equipoise "${{COMP_WORDS[COMP_CWORD]}}" report
    """
    done = finished(["bash", "-c", script], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "made").exists()
