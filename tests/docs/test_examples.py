"""Every shell example of the documentation is one that works.

What is marked ``<!-- run -->`` is run, a page from its beginning to its end in one folder. Every
other command line is held against the program: its command, its options and their values.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from equipoise.cli.main import cli
from tests.docs.pages import PAGES, Example, command_lines, examples

ALL = [(page, list(examples(page))) for page in PAGES]
RUN = [
    pytest.param([one for one in found if one.runs], id=page.name)
    for page, found in ALL
    if any(one.runs for one in found)
]


def parsed(words: list[str]) -> None:
    """Hold one command line against the program.

    Raises
    ------
    click.UsageError
        The program would not take it.
    """
    above = click.Context(cli, info_name="equipoise")
    name, *arguments = words
    if name.startswith("-"):
        cli.make_parser(above).parse_args([name])
        return
    command = cli.get_command(above, name)
    if command is None:
        raise click.UsageError(f"no command {name}")
    command.make_context(name, arguments, parent=above)


@pytest.mark.parametrize(
    "found", [pytest.param(found, id=page.name) for page, found in ALL if found]
)
def test_every_command_line_is_one_that_the_program_takes(found: list[Example]) -> None:
    wrong = []
    for example in found:
        for words in command_lines(example):
            try:
                parsed(words)
            except click.UsageError as error:
                wrong.append(
                    f"{example.page}:{example.line}: {' '.join(words)}: {error.format_message()}"
                )
    assert wrong == []


def test_command_lines_are_found_in_blocks_behind_prompts_and_over_several_lines() -> None:
    text = (
        "$ equipoise show last # it\ncd x && equipoise list | head\nequipoise run \\\n  a 'b c'\n"
    )
    assert list(command_lines(Example("page", 1, text, False))) == [
        ["show", "last"],
        ["list"],
        ["run", "a", "b c"],
    ]
    assert sum(1 for _, found in ALL for one in found for _ in command_lines(one)) > 50


@pytest.mark.parametrize(
    "words", [["compare", "a", "b", "--no-such-option"], ["no-such-command"], ["show", "--pool=3"]]
)
def test_a_command_line_that_the_program_does_not_take_is_found(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parsed(words)


@pytest.mark.parametrize("found", RUN)
def test_what_is_marked_runs_from_the_beginning_of_a_page_to_its_end(
    found: list[Example], tmp_path: Path
) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for example in found:
        done = subprocess.run(
            ["sh", "-eu", "-c", example.text],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{example.page}:{example.line}: {done.stderr}"
        assert done.stdout
