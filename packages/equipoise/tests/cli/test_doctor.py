"""`equipoise doctor` prints what disturbs measurements here, and changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from equipoise.cli.doctor import command, examination_document
from equipoise.model.errors import UnusableInput
from equipoise.model.host import SEVERITIES, Disturbance, Examination
from equipoise.report.document import Form
from equipoise.report.renderers.terminal import print_document
from packages.equipoise.tests.programs import finished

PROGRAM = (sys.executable, "-c", "from equipoise.cli.doctor import command; command()")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return finished([*PROGRAM, *arguments], env={**os.environ, **variables}, check=True)


def read(text: str) -> dict[str, Any]:
    document = json.loads(text)
    assert isinstance(document, dict)
    return document


def test_a_debug_variable_is_found_and_its_hint_named() -> None:
    done = run("--verbose", MALLOC_PERTURB_="165")
    lines = done.stdout.splitlines()
    place = next(n for n, line in enumerate(lines) if "MALLOC_PERTURB_=165 is set" in line)
    assert lines[place].startswith("disturbs: ")
    assert lines[place + 1].startswith("  hint: unset MALLOC_PERTURB_")


def test_the_document_holds_what_was_found_and_where(tmp_path: Path) -> None:
    file = tmp_path / "doctor.json"
    done = run("--json", str(file), "--quiet", LD_DEBUG="unused")
    assert done.stdout == ""
    document = read(file.read_text(encoding="utf-8"))
    assert document["schema"] == "equipoise.doctor/1"
    assert "debug_variable" in [disturbance["code"] for disturbance in document["disturbances"]]
    assert {disturbance["severity"] for disturbance in document["disturbances"]} <= set(SEVERITIES)
    assert "debug_variables" in document["checked"]
    assert document["environment"]["variables"]["LD_DEBUG"] == "unused"


def test_on_stdout_the_document_stands_alone() -> None:
    done = run("--json", "-")
    assert read(done.stdout)["schema"] == "equipoise.doctor/1"


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--json", f"{tmp_path}/no/where"])
    assert isinstance(done.exception, UnusableInput)
    assert f"cannot write {tmp_path}/no/where" in done.exception.what
    assert done.exception.hint


LACK = Disturbance("no_covariate", "lacks", "temperature_c will be unknown: why", "use another")
BUSY = Disturbance("busy_process", "disturbs", "process 1 ([red]x[/red]) uses 99 %", "kill 1")


def print_examination(
    examination: Examination, *, color: bool = False, form: Form = "brief"
) -> None:
    """Print an examination as ``equipoise doctor`` does."""
    print_document(examination_document(examination), color=color, form=form)


def test_of_a_quiet_host_the_answer_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_examination(Examination((), ("load",)))
    answer = "Nothing disturbs measurements here (1 of 1 checks were possible).\n"
    assert capsys.readouterr().out == answer


def test_facts_that_the_host_lacks_are_counted_and_do_not_disturb(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_examination(Examination((LACK,), ("unread_covariates",), {"turbo": "no switch"}))
    printed = capsys.readouterr().out
    assert printed.startswith("Nothing disturbs measurements here (1 of 2 checks were possible).\n")
    assert "lacks: 1 thing that Equipoise could use" in printed
    assert "temperature_c" not in printed


def test_verbose_names_missing_facts_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    examination = Examination((LACK,), ("unread_covariates",), {"turbo": "no switch"})
    print_examination(examination, form="verbose")
    printed = capsys.readouterr().out
    assert "lacks: temperature_c will be unknown: why\n  hint: use another\n" in printed
    assert "not checked: turbo: no switch\n" in printed


def test_a_name_of_a_process_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_examination(Examination((BUSY,), ()), color=True)
    assert "process 1 ([red]x[/red]) uses 99 %" in capsys.readouterr().out


def test_a_command_to_copy_is_not_broken_into_lines(capsys: pytest.CaptureFixture[str]) -> None:
    long = Disturbance("x", "weakens", "w", "echo max | sudo tee " + "/folder" * 60)
    print_examination(Examination((long,), ()))
    assert f"  hint: {long.hint}\n" in capsys.readouterr().out
