"""Every option of hyperfine 1 and 2 is taken by `compare`; what differs is said in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from equipoise.cli import compare
from equipoise.cli.compare import CompareRequest
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.cli.conftest import Equipoise, compare_request

Script = Callable[[str, Sequence[str]], str]
ONCE = ("--blocks", "1", "--warmup", "0")


def document_of(equipoise: Equipoise, *arguments: str) -> dict[str, Any]:
    answer = equipoise("compare", *arguments, "--json", "-")
    assert answer.status == 0, answer.err
    document: dict[str, Any] = json.loads(answer.out)
    return document


def ours(*line: str) -> tuple[CompareRequest, tuple[str, ...]]:
    """The request of a command line in our words, and the notes."""
    request = compare_request(*line)
    return request.normalized(), tuple(request.hyperfine.notes(request.options))


def test_runs_are_exactly_that_many_whatever_is_known_before(equipoise: Equipoise) -> None:
    document = document_of(equipoise, "-r", "12", "true", "sleep 0.03", "--budget", "0.1")
    assert document["run"]["blocks"] == 12
    assert [condition["trials"] for condition in document["conditions"]] == [12, 12]


def test_at_least_and_at_most_so_many_runs() -> None:
    found, _ = ours("-m", "7", "-M", "9", "--min-benchmarking-time", "2", "true")
    limits = found.options.limits
    assert (limits.min_blocks, limits.blocks, limits.min_seconds) == (7, 9, 2.0)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (("-r", "3", "-m", "2"), "--runs and --min-runs"),
        (("-r", "3", "--blocks", "2"), "--runs and --blocks"),
        (("-S", "-N"), "-S, -N and --shell"),
        (("-S", "--shell", "sh"), "-S, -N and --shell"),
        (("-S", "bash"), "-S has no value"),
        (("--show-output", "--output", "null"), "--show-output and --output"),
        (("--reference-name", "a"), "--reference-name is given without --reference"),
        (("--ignore-failure=one",), "not a list of exit statuses"),
        (("-i=256",), "not a list of exit statuses"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_options_that_exclude_each_other_are_refused(line: tuple[str, ...], named: str) -> None:
    with pytest.raises(UnusableInput, match=named) as caught:
        ours(*line, "true")
    assert caught.value.hint


def test_a_shell_is_the_default_one_none_or_another() -> None:
    def shell(*line: str) -> str | None:
        return ours(*line, "true")[0].options.shell

    assert shell("-S") == "/bin/sh"
    assert shell("-N") == "none"
    assert shell("--shell", "none") == "none"
    assert shell("--shell", "bash --norc") == "bash --norc"


def test_without_a_shell_its_operators_are_plain_arguments(equipoise: Equipoise) -> None:
    document = document_of(equipoise, "-N", "echo a && b", *ONCE)
    assert document["conditions"][0]["command"][1:] == ["a", "&&", "b"]


def test_the_start_of_a_shell_is_not_subtracted_and_this_is_said(equipoise: Equipoise) -> None:
    answer = equipoise("compare", "-S", "true && true", *ONCE)
    assert answer.status == 0
    assert answer.err == (
        "equipoise: -S: each time includes the start of the shell; it is not subtracted\n"
    )
    assert equipoise("compare", "-S", "true && true", *ONCE, "--quiet").err == ""


def test_the_output_is_shown_or_goes_to_a_file_of_each_command(equipoise: Equipoise) -> None:
    assert equipoise("compare", "--show-output", "echo seen", *ONCE, "--quiet").out == "seen\n"
    equipoise("compare", "echo one", "echo two", *ONCE, "--output", "1.txt", "--output", "2.txt")
    assert (equipoise.folder / "1.txt").read_text() == "one\n"
    assert (equipoise.folder / "2.txt").read_text() == "two\n"


def test_a_pipe_becomes_a_file_that_is_counted_and_this_is_said(equipoise: Equipoise) -> None:
    line = ("echo one", *ONCE, "--output", "pipe", "--metrics", "output_bytes", "--json", "-")
    answer = equipoise("compare", *line)
    assert json.loads(answer.out)["conditions"][0]["metrics"]["output_bytes"]["median"] == 4
    assert "--output pipe: the output is written to a file" in answer.err


def test_only_the_named_exit_statuses_are_ignored(equipoise: Equipoise) -> None:
    document = document_of(equipoise, "--ignore-failure=3,1", "sh -c 'exit 3'", *ONCE)
    assert document["conditions"][0]["failures"] == 1
    answer = equipoise("compare", "-i=1,2", "sh -c 'exit 3'", *ONCE)
    assert answer.status == 3
    assert "exit status 3" in answer.err
    every = document_of(equipoise, "--ignore-failure=all-non-zero", "sh -c 'exit 3'", *ONCE)
    assert every["conditions"][0]["failures"] == 1


def test_a_reference_is_the_baseline_and_may_have_a_name(equipoise: Equipoise) -> None:
    line = ("true", "--reference", "sleep 0.001", "--reference-name", "base", *ONCE)
    document = document_of(equipoise, *line)
    assert [condition["name"] for condition in document["conditions"]] == ["base", "true"]
    assert document["comparisons"][0]["baseline"] == "base"


def test_a_reference_is_the_baseline_at_each_value(equipoise: Equipoise) -> None:
    line = ("--reference", "true", "-L", "n", "1,2", "echo {n}", *ONCE)
    document = document_of(equipoise, *line)
    assert {comparison["baseline"] for comparison in document["comparisons"]} == {"true"}
    assert [comparison["candidate"] for comparison in document["comparisons"]] == [
        "echo, n=1",
        "echo, n=2",
    ]


@pytest.mark.parametrize(
    ("style", "quiet", "color"),
    [
        ("auto", False, True),
        ("basic", False, False),
        ("nocolor", False, False),
        ("none", True, True),
    ],
)
def test_a_style_is_quiet_or_without_colour(style: str, quiet: bool, color: bool) -> None:
    found, notes = ours("--style", style, "true")
    assert (found.output.quiet, found.output.color) == (quiet, color)
    assert bool(notes) == (style == "basic")


def test_a_time_unit_is_that_of_the_tables_that_are_exported(equipoise: Equipoise) -> None:
    forms = {"markdown": "| Mean [s] |", "asciidoc": "| Mean [s] ", "orgmode": "|  Mean [s] |"}
    exports = [word for form in forms for word in (f"--export-{form}", form)]
    answer = equipoise("compare", "true", "true", *ONCE, "-u", "second", *exports)
    assert answer.status == 0
    assert "--time-unit: only tables of --export" in answer.err
    for form, heading in forms.items():
        assert heading in (equipoise.folder / form).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "found", "noted"),
    [
        ("default", "wall_s,max_rss_bytes", False),
        ("time", "wall_s,cpu_s,user_s,sys_s", False),
        ("memory_peak_resident:MiB,time_wall_clock", "max_rss_bytes,wall_s", True),
        ("cpu_cycles,instructions", "cycles,instructions", False),
        ("wall_s,my:metric", "wall_s,my:metric", False),
    ],
)
def test_metrics_have_hyperfine_s_names_too(given: str, found: str, noted: bool) -> None:
    request, notes = ours("--metrics", given, "true")
    assert request.options.metrics == found
    assert bool(notes) == noted


def test_a_command_can_read_the_number_of_its_run(equipoise: Equipoise, tmp_path: Path) -> None:
    line = "echo > log-${HYPERFINE_ITERATION}"
    document_of(equipoise, "--shell", "sh", line, "--runs", "3", "--warmup", "1")
    logs = sorted(file.name for file in tmp_path.glob("log-*"))
    assert logs == ["log-0", "log-1", "log-2", "log-warmup-0"]
    # A variable more is another environment: who does not ask has none.
    document_of(equipoise, "sh -c 'env | grep -q ^HYPERFINE && exit 1; exit 0'", *ONCE)


def test_every_option_of_the_help_of_hyperfine_is_one_of_ours() -> None:
    """Those of hyperfine 2.0.0 and 1.20, but for `--debug-mode`, which invents times."""
    theirs = """
        --metrics --warmup -w --min-runs -m --max-runs -M --runs -r --env --setup -s --prepare -p
        --conclude -C --cleanup -c --parameter-scan -P --parameter-step-size -D --parameter-list -L
        --shell -S -N --ignore-failure -i --style --sort --time-unit -u --export-asciidoc
        --export-csv --export-json --export-markdown --export-orgmode --show-output --output
        --input --command-name -n --reference --reference-name --min-benchmarking-time --help -h
    """
    context = compare.command.make_context("compare", ["true"])
    names = {name for option in compare.command.params for name in option.opts}
    names |= {*compare.command.get_help_option_names(context)}
    assert {*theirs.split()} - names == {"-h"}
