"""The fuzzer finds what it is there to find: each kind of defect, planted."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.model.errors import ConditionFailed, UnusableInput
from tests.fuzz.case import Case, Outcome, Target, WrongResult, from_json, to_json
from tests.fuzz.guard import Forbidden, Guard
from tests.fuzz.judge import judge, minimised
from tests.fuzz.mutators import any_value, json_bytes, mutated_bytes, mutated_tree
from tests.fuzz.targets.pages import check_html, check_latex, check_markdown

CASE = Case("plain", b"content")
Planted = Callable[[Callable[[Path], None]], Outcome]


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    """Its hook stays until the interpreter ends: one for all tests."""
    return Guard(tmp_path_factory.mktemp("guarded"))


@pytest.fixture
def judged(guard: Guard) -> Planted:
    """How a case ends whose reader does what is planted."""

    def run(planted: Callable[[Path], None]) -> Outcome:
        target = Target(
            "planted", "", 1, lambda generator: CASE, lambda case, folder: planted(folder), _quick
        )
        return judge(target, CASE, guard.folder, guard)

    return run


def _quick(variant: str) -> float:
    return 0.3


def test_a_result_is_read_and_a_plain_error_refuses(judged: Planted) -> None:
    def refuse(folder: Path) -> None:
        raise UnusableInput("it is empty", hint="write something")

    assert judged(lambda folder: None).kind == "read"
    assert judged(refuse).kind == "refused"


def test_any_other_exception_is_a_find(judged: Planted) -> None:
    def divide(folder: Path) -> None:
        assert 1 / int("0")

    found = judged(divide)
    assert found.kind == "find"
    assert found.signature.startswith("ZeroDivisionError in ")
    assert "Traceback" in found.detail


@pytest.mark.parametrize(
    ("error", "begins"),
    [
        (UnusableInput("what"), "an error without a hint"),
        (UnusableInput("it", hint="this is a defect of Equipoise"), "calls itself a defect"),
        (ConditionFailed("what", hint="how"), "exit status 3"),
        (UnusableInput(" ", hint="how"), "an error of 1 letters"),
    ],
)
def test_a_poor_error_is_a_find(judged: Planted, error: Exception, begins: str) -> None:
    def refuse(folder: Path) -> None:
        raise error

    assert judged(refuse).signature.startswith(begins)


def test_a_reader_that_never_ends_is_a_find(judged: Planted) -> None:
    def spin(folder: Path) -> None:
        while True:
            pass

    assert judged(spin).signature.startswith("more than 0.3 s")


def test_a_warning_of_python_is_a_find(judged: Planted) -> None:
    def warn(folder: Path) -> None:
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)

    assert judged(warn).signature.startswith("RuntimeWarning in ")


def test_a_file_outside_of_the_folder_is_a_find_and_is_not_written(
    judged: Planted, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"

    def write_outside(folder: Path) -> None:
        outside.write_text("x")

    def write_inside(folder: Path) -> None:
        (folder / "inside").write_text("x")

    found = judged(write_outside)
    assert found.signature.startswith("Forbidden: open outside")
    assert not outside.exists()
    assert judged(write_inside).kind == "read"


def _system(folder: Path) -> None:
    os.system("true")


def _program(folder: Path) -> None:
    subprocess.run([sys.executable, "-V"], check=True)


def _connection(folder: Path) -> None:
    with socket.socket() as opened:
        opened.connect(("127.0.0.1", 9))


def _removal(folder: Path) -> None:
    os.rmdir(folder.parent / "missing")


@pytest.mark.parametrize("act", [_system, _program, _connection, _removal])
def test_a_program_a_connection_and_a_removal_are_finds(
    judged: Planted, act: Callable[[Path], None]
) -> None:
    assert judged(act).signature.startswith("Forbidden: ")


def test_nothing_is_forbidden_between_cases(guard: Guard, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Forbidden), guard.watching(5.0):
        (tmp_path / "file").write_text("y")
    assert (tmp_path / "file").read_text() == "x"


def test_a_find_is_made_as_short_as_it_may_be(guard: Guard) -> None:
    def run(case: Case, folder: Path) -> None:
        if b"!" in case.content:
            raise WrongResult("a mark")

    target = Target("planted", "", 1, lambda generator: CASE, run)
    long = Case("plain", b"a" * 40 + b"!" + b"b" * 50)
    assert minimised(target, long, guard.folder, guard) == Case("plain", b"!")


@pytest.mark.parametrize("content", [b"text", b"\xff\x00 bytes", "größer".encode()])
def test_a_case_comes_back_from_the_corpus(content: bytes) -> None:
    assert from_json(to_json(Case("variant", content), "why")) == Case("variant", content)


def test_mutations_leave_the_original_alone_and_change_most_copies() -> None:
    tree = {"a": [1, 2.5, "text", None, True], "b": {"c": [[], {}]}}
    before = json_bytes(tree)
    trees = [mutated_tree(random.Random(seed), tree) for seed in range(200)]
    assert json_bytes(tree) == before
    assert len({json_bytes(one) for one in trees}) > 100
    contents = {mutated_bytes(random.Random(seed), before, [before]) for seed in range(200)}
    assert len(contents) > 150
    assert len({repr(any_value(random.Random(seed))) for seed in range(200)}) > 50


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (check_html, "<p><fuzzed></p>"),
        (check_html, "<p onclick='x'>a</p>"),
        (check_html, "<a href=' javascript:alert(1)'>a</a>"),
        (check_html, "<script>alert(1)</script>"),
        (check_markdown, "a <fuzzed> b"),
        (check_markdown, "[a](http://example.com)"),
        (check_latex, "a \\input{/etc/passwd} b"),
    ],
)
def test_what_a_document_brings_into_a_page_is_found(
    check: Callable[[str], None], text: str
) -> None:
    with pytest.raises(WrongResult):
        check(text)
    check("a &lt;fuzzed&gt; `b` \\textbackslash{}input")
