"""Every example of the documentation is run, and every command line is one that the program takes.

An example is run in a copy of a folder that holds what the pages speak of (``desk.py``): our
commands each by itself, anything else as one script. What cannot be run here stands in
``elsewhere.py``, with what runs it. ``equipoise`` has small limits (``limited.py``), and nothing
else is changed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from equipoise.cli.main import cli
from equipoise.studies.catalogue import built_in_studies
from packages.equipoise.tests.programs import finished
from tests.docs import desk
from tests.docs.elsewhere import ELSEWHERE
from tests.docs.limited import FEW_LEVELS, limited
from tests.docs.pages import (
    PAGES,
    ROOT,
    STUDY_PAGES,
    Example,
    command_lines,
    examples,
    is_ours_alone,
    lines,
    typed,
)
from tests.docs.preludes import LAID_OUT, PRELUDES, SESSIONS

MAKE = re.compile(r"make (?P<target>\w+)$")
AT_ONCE = 2
"""Examples: nothing that they print is a measurement."""

MARKS = {"docs/reference/document.md": (pytest.mark.live("sqlite3"),)}
"""Of pages whose examples need a program that neither we nor a compiler's package bring."""

ALL = [(page, list(examples(page))) for page in (*PAGES, *STUDY_PAGES)]
WITH_EXAMPLES = [
    pytest.param(found, id=str(page.relative_to(ROOT))) for page, found in ALL if found
]
TO_RUN = [
    pytest.param(found, id=found[0].page, marks=MARKS.get(found[0].page, ()))
    for _, found in ALL
    if found
]
EVERY_LINE = frozenset(line for _, found in ALL for one in found for line in lines(one))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def parsed(words: list[str]) -> None:
    """Hold one command line against the program.

    Raise `click.UsageError` if the program would not take it.
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


@pytest.mark.parametrize("found", WITH_EXAMPLES)
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


def test_command_lines_are_found_behind_prompts_and_over_several_lines() -> None:
    session = "$ equipoise show last # it\nsaid\n$ cd x && equipoise list | head\nsaid\n"
    text = typed(session) + "V=1 equipoise run \\\n  a 'b c'\n"
    assert list(command_lines(Example("page", 1, text))) == [
        ["show", "last"],
        ["list"],
        ["run", "a", "b c"],
    ]
    assert sum(1 for _, found in ALL for one in found for _ in command_lines(one)) > 100


@pytest.mark.parametrize(
    "words", [["compare", "a", "b", "--no-such-option"], ["no-such-command"], ["show", "--pool=3"]]
)
def test_a_command_line_that_the_program_does_not_take_is_found(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parsed(words)


@dataclass(frozen=True)
class Desk:
    """The prepared folder, its copies, and what became of the scripts that ran in one."""

    prepared: Path
    copies: Path
    pool: ThreadPoolExecutor
    outcomes: dict[str, Future[str | None]] = field(default_factory=dict)

    def page(self, page: str) -> Path:
        """A copy of the folder, with what is otherwise on this page."""
        folder = copied(self.prepared, self.copies)
        for there, here in LAID_OUT.get(page, {}).items():
            shutil.copy(folder / there, folder / here)
        return folder

    def apart(self, script: str, folder: Path, *, as_prepared: bool) -> Future[str | None]:
        """Run a script in a copy of a page's folder; what stands on two pages, once."""
        if as_prepared and script in self.outcomes:
            return self.outcomes[script]
        words = ["bash", "-euc", script]
        outcome = self.pool.submit(failure, words, copied(folder, self.copies))
        if as_prepared:
            self.outcomes[script] = outcome
        return outcome


def copied(folder: Path, copies: Path) -> Path:
    """A copy in a folder of its own."""
    copy = copies / str(len(list(copies.iterdir())))
    return Path(shutil.copytree(folder, copy, symlinks=True))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The folder, for all pages."""
    folder = tmp_path_factory.mktemp("desk") / "desk"
    desk.prepare(folder)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield Desk(folder, tmp_path_factory.mktemp("copies"), pool)


def failure(words: list[str], folder: Path) -> str | None:
    """What a script said that failed; ``None`` of one that did not."""
    done = finished(words, cwd=folder, env=desk.environment(folder), stdin=subprocess.DEVNULL)
    said = done.stderr[-2000:]
    return None if done.returncode == 0 else f"exit status {done.returncode}: {said}"


def is_run_here(line: str) -> bool:
    """Whether a line is run with the documentation."""
    return line not in ELSEWHERE and not MAKE.match(line)


def scripts_of(example: Example) -> list[str]:
    """An example of shell: commands of ours each by itself, anything else as one."""
    kept = [line for line in lines(example) if is_run_here(line)]
    return kept if is_ours_alone(example) else ["\n".join(kept)]


def script_of(example: Example) -> list[str]:
    """The words that run an example of Python."""
    kept = [PRELUDES.get(example.page, ""), *filter(is_run_here, lines(example))]
    if any("import equipoise as eq" in line for line in kept):
        kept = [f"import runpy; runpy.run_path({str(desk.LIMITED)!r})['limit_python']()", *kept]
    return [sys.executable, "-c", "\n".join(kept)]


@pytest.mark.parametrize("found", TO_RUN)
def test_every_example_runs(found: list[Example], prepared: Desk) -> None:
    page = found[0].page
    folder, as_prepared = prepared.page(page), page not in LAID_OUT
    waited: list[tuple[str, Future[str | None]]] = []
    if page in SESSIONS:
        session = "\n".join(script for example in found for script in scripts_of(example))
        said = failure(["bash", "-euc", session], folder)
        assert said is None, f"{page}: {said}"
        return
    for example in found:
        if example.is_python:
            # What it writes is there for the examples below it.
            said = failure(script_of(example), folder)
            assert said is None, f"{page}:{example.line}: {said}"
            as_prepared = False
            continue
        for script in scripts_of(example):
            outcome = prepared.apart(script, folder, as_prepared=as_prepared)
            waited.append((f"{page}:{example.line}: {script}", outcome))
    wrong = [f"{script}: {said}" for script, outcome in waited if (said := outcome.result())]
    assert wrong == []


@pytest.mark.parametrize("line", sorted(ELSEWHERE))
def test_what_is_not_run_here_is_still_documented_and_run_elsewhere(line: str) -> None:
    assert line in EVERY_LINE, "no page has this line any more: take it out of elsewhere.py"
    because, runs_in = ELSEWHERE[line]
    assert because
    place, _, name = runs_in.partition("::")
    if place.startswith("make "):
        assert f"\n{place.removeprefix('make ')}:" in MAKEFILE
    else:
        assert f"def {name}(" in (ROOT / place).read_text(encoding="utf-8")


def test_what_make_is_told_to_make_is_in_the_makefile() -> None:
    targets = {found["target"] for line in EVERY_LINE if (found := MAKE.match(line))}
    assert {"build", "demo", "docs", "test"} <= targets
    assert {one for one in targets if f"\n{one}:" not in MAKEFILE} == set()


def test_an_example_that_fails_is_found(prepared: Desk) -> None:
    (script,) = scripts_of(Example("README.md", 1, "true\nequipoise show no-such-run # it\n"))
    outcome = prepared.apart(script, prepared.page("README.md"), as_prepared=True)
    assert "no run 'no-such-run'" in str(outcome.result())


def test_small_limits_stand_behind_the_words_of_a_page_and_before_a_double_dash() -> None:
    gate = limited(["gate", "--budget", "60", "--", "./bench"])
    assert gate[-2:] == ["--", "./bench"]
    assert gate[gate.index("--budget", 3) + 1] == "1"
    run = limited(["run", "sekhon2006", "--factor", "rows=890"])
    assert [one for one in run if "rows=" in one] == ["rows=890"]
    assert "algorithm=blas" in run
    assert limited(["show", "last"]) == ["show", "last"]


def test_studies_whose_levels_are_few_exist() -> None:
    assert set(FEW_LEVELS) <= {study.name for study in built_in_studies()}
