"""`equipoise bisect --why`: which commit, and why, in one answer."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import jsonschema
import pytest

from equipoise.ledger import open_for_reading
from equipoise.model.record import DIFF
from equipoise.report.json_document import schema
from packages.equipoise.tests.cli.conftest import RunIn
from packages.equipoise.tests.repositories import MadeRepository, everything_in, repository

COUNT, CULPRIT = 4, 3
PROGRAM = """#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) unsigned long count_letters(const char *text) {{
    unsigned long letters = 0;
    for (; *text; text++)
        letters += *text != ' ';
    return letters;
}}

__attribute__((noinline)) void clear_blocks(int number) {{
    for (int i = 0; i < number; i++) {{
        volatile char *block = malloc(100000);
        for (int place = 0; place < 100000; place++)
            block[place] = i;
        free((void *)block);
    }}
}}

int main(void) {{
    printf("%lu\\n", count_letters("commit {number}"));
    clear_blocks({blocks});
    return 0;
}}
"""
WORDS = ("--good", "good", "--build", "make -s", "--budget", "120", "--quiet", "--no-color")
KEPT = ("--ledger", "../ledger.db")


@pytest.fixture
def project(tmp_path: Path, scratch: Path) -> MadeRepository:
    """A C program that clears 40 times as many blocks from the third of four commits on."""
    project = repository(tmp_path / "project")
    project.write("Makefile", "bench: bench.c\n\t@$(CC) -g -O1 -fno-builtin -o bench bench.c\n")
    project.write(".gitignore", "bench\n")
    for number in range(COUNT + 1):
        blocks = 400 if number >= CULPRIT else 10
        project.write("bench.c", PROGRAM.format(number=number, blocks=blocks))
        project.write("notes", "a line\n" * number)
        project.commit(f"change {number}")
        if number == 0:
            project.git("tag", "good")
    return project


@pytest.fixture
def call(project: MadeRepository, run_in: RunIn) -> RunIn:
    """Run one command in the repository."""
    return partial(run_in, project.path)


@pytest.mark.live("cc", package="gcc")
def test_the_culprit_is_explained_with_its_diff(
    call: RunIn, project: MadeRepository, tmp_path: Path
) -> None:
    # Neither a diff program nor a hook of the user runs.
    witness = tmp_path / "ran"
    project.git("config", "diff.external", f"touch {witness}; false")
    project.git("config", "diff.c.textconv", f"touch {witness}; cat")
    project.write(".git/info/attributes", "*.c diff=c\n")
    before = everything_in(project.path)
    files = ("--json", "../result.json", "--report", "../page.md")
    words = ("bisect", *WORDS, *KEPT, *files, "--why", "--", "./bench")
    answer = call(*words)
    assert answer.status == 0, answer.err
    assert not witness.exists()
    assert everything_in(project.path) == before
    document = json.loads((tmp_path / "result.json").read_text())
    jsonschema.validate(document, schema())
    culprit, parent = (
        project.git("rev-parse", f"HEAD~{COUNT - place}").strip()
        for place in (CULPRIT, CULPRIT - 1)
    )
    explained = document["bisect"]["explained_culprit"]
    assert (explained["commit"], explained["parent"]) == (culprit, parent)
    assert [line.split("|")[0].strip() for line in explained["files"][:2]] == ["bench.c", "notes"]
    extra = document["extra_time"]
    assert extra["slower"] == culprit[:10]
    page = (tmp_path / "page.md").read_text()
    assert "bench.c" in page
    if "profile" in extra["run_counts"]:
        assert "clear_blocks" in explained["functions"], document["why"]
        assert "+    clear_blocks(400);" in explained["hunks"][0]["lines"]
        assert "+    clear_blocks(400);" in page
    else:
        # The kernel forbids samples: the answer says so.
        assert extra["unseen"]["profile"]
    with open_for_reading(tmp_path / "ledger.db") as ledger:
        experiments = ledger.runs_explaining(document["run"]["id"])
        record = ledger.read_run(document["run"]["id"])
    # The campaign that tested the causes, if anything here can test one.
    assert explained["run"] == next(iter(experiments), None)
    assert [observation.source for observation in record.observations].count(DIFF) == 1
    # Known results are shown again, and `why` continues from them.
    shown = call("show", document["run"]["id"], *KEPT, "--json", "-")
    assert json.loads(shown.out)["bisect"]["explained_culprit"] == explained
    why = call("why", document["run"]["id"], *KEPT, "--no-test", "--json", "-")
    assert why.status == 0, why.err
    assert json.loads(why.out)["bisect"]["explained_culprit"] == explained


def test_without_a_culprit_nothing_is_explained(call: RunIn) -> None:
    words = ("bisect", *WORDS, *KEPT, "--blocks", "1", "--why", "--", "./bench")
    answer = call(*words)
    assert answer.status == 0, answer.err
    assert "there is nothing to explain: no commit is named" in answer.err
    why = call("why", "last", *KEPT)
    assert why.status == 2
    assert "has not named a commit, and only a named commit can be explained" in why.err


def test_a_bisection_without_why_does_not_load_the_explanation() -> None:
    loads = (
        "import sys; import equipoise.kinds.bisect.command; "
        "print([name for name in sys.modules if name.startswith(('equipoise.why.gap', "
        "'equipoise.why.evidence', 'equipoise.why.explanation', "
        "'equipoise.kinds.explain.command'))])"
    )
    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.live("cc", package="gcc")
def test_an_interrupted_why_goes_on_when_the_search_is_resumed(
    call: RunIn, project: MadeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    words = ("bisect", *WORDS, *KEPT, "--why", "--no-test", "--", "./bench")
    with monkeypatch.context() as patch:
        patch.setattr("equipoise.kinds.explain.command.observe_gap", interrupt)
        assert call(*words).status == 130
    resume = ("resume", "last", "--quiet", *KEPT, "--json", "-")
    answer = call(*resume)
    assert answer.status == 0, answer.err
    document = json.loads(answer.out)
    culprit = project.git("rev-parse", f"HEAD~{COUNT - CULPRIT}").strip()
    assert document["bisect"]["explained_culprit"]["commit"] == culprit
    assert "--why --no-test" in document["run"]["command_line"]
    # Everything is done, so not even the repository is needed.
    project.path.rename(project.path.with_name("away"))
    project.path.mkdir()
    again = call(*resume)
    assert again.status == 0, again.err
    assert json.loads(again.out) == document
