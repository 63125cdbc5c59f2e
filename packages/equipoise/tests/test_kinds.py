"""Kinds of campaign: the kernel names none, and each goes away with its folder and its line."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from equipoise.ledger.rows import plan_from_text, to_text
from equipoise.model import kinds, packages
from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import ORDINARY, REGISTER, every_kind, kind_named, load
from equipoise.model.result import ResultDocument
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.test_layers import ROOT, imports

SOURCE = ROOT / "packages/equipoise/src/equipoise"
KERNEL = (
    "model", "files", "design", "measure", "ledger", "stats", "campaign", "analysis", "report",
    "figures",
)  # fmt: skip
THE_REGISTER = SOURCE / "model/kinds.py"
TESTS = ROOT / "packages/equipoise/tests"
KERNEL_TESTS = ("files", "design", "ledger", "analysis", "figures")
"""Rooms of the kernel whose tests start no campaign and draw no simulation."""
WITH_MANY_EXAMPLES = (
    "analysis/test_certificate.py::test_a_quiet_host_finds_the_injected_effects_and_few_others",
    "analysis/test_certificate.py::test_effects_that_were_not_injected_are_not_found",
    "analysis/test_iterations.py::test_equal_conditions_are_called_different_in_at_most_alpha",
    "analysis/test_typical.py::test_dependent_runs_give_a_warning_and_independent_ones_seldom",
    "analysis/test_reference.py::test_a_host_against_itself_has_not_changed",
    "figures/test_charts.py::test_every_figure_of_a_document_has_titles_units_and_a_line_on_how_to_read_it",
    "figures/test_save.py::test_a_page_of_one_chart_lets_no_name_out_of_its_string",
    "ledger/test_merge.py::test_a_ledger_that_was_split_merges_back_to_the_same_results",
    "ledger/test_merge.py::test_merging_is_associative_and_commutative",
    "ledger/test_opening.py::test_random_damage_never_escapes_as_another_error",
    "ledger/test_store.py::test_a_trial_comes_back_bit_for_bit",
    "ledger/test_survival.py::test_no_acknowledged_trial_is_lost_to_kill_9",
)
"""Tests of these rooms that repeat one thing with many random examples. The other tests of their
files run the same code, so a kind that is missed shows there."""
OF_ONE_CAMPAIGN = {"document", "plan", "record", "report", "terms"}
"""Names of what has a kind: an attribute of it that is called as a kind is about that kind."""


def kernel_files() -> Iterator[Path]:
    """Every file of the kernel but the register."""
    for room in KERNEL:
        yield from (file for file in sorted((SOURCE / room).rglob("*.py")) if file != THE_REGISTER)


def names_of_kinds_in(text: str) -> list[str]:
    """Places in a module that name a kind: its package, its name as a text, or its field."""
    tree = ast.parse(text)
    named: list[str] = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Constant(value=str(word)) if word in REGISTER or "equipoise.kinds" in word:
                named.append(f"{line}: {word!r}")
            case ast.ImportFrom(module=str(module)) if module.startswith("equipoise.kinds"):
                named.append(f"{line}: {module}")
            case ast.Import(names=names):
                named += (
                    f"{line}: {label.name}"
                    for label in names
                    if label.name.startswith("equipoise.kinds")
                )
            case ast.Attribute(value=value, attr=attribute) if attribute in REGISTER:
                if ast.unparse(value).split(".")[-1] in OF_ONE_CAMPAIGN:
                    named.append(f"{line}: {ast.unparse(node)}")
    return named


def test_no_kernel_file_names_a_kind() -> None:
    named = [
        f"{file.relative_to(SOURCE)}:{name}"
        for file in kernel_files()
        for name in names_of_kinds_in(file.read_text())
    ]
    assert named == []


@pytest.mark.parametrize(
    "text",
    [
        "from equipoise.kinds.gate.terms import GatePlan",
        "import equipoise.kinds.fleet",
        "if document.fleet is not None:\n    pass",
        "terms = record.plan.history",
        "kind = 'bisect'",
    ],
)
def test_a_planted_name_of_a_kind_is_found(text: str) -> None:
    assert len(names_of_kinds_in(text)) == 1


def test_words_that_are_no_kinds_are_not_taken_for_them() -> None:
    assert names_of_kinds_in("import bisect\nbisect.insort(values, 1)\nsearch.history[-1]") == []


def test_each_kind_has_a_folder_and_a_line() -> None:
    folders = {
        file.name for file in (SOURCE / "kinds").iterdir() if (file / "__init__.py").exists()
    }
    assert folders == set(REGISTER)
    for kind in map(kind_named, REGISTER):
        assert REGISTER[kind.name] == f"equipoise.kinds.{kind.name}"


def test_the_tags_of_a_kind_are_its_name() -> None:
    for kind in every_kind():
        document = load(kind.document)
        assert issubclass(document, ResultDocument)
        # A kind without terms is that of the campaigns of one study.
        assert document.__struct_config__.tag == (kind.name if kind.terms else ORDINARY)
        if kind.terms:
            assert load(kind.terms).__struct_config__.tag == kind.name


def test_terms_of_no_installed_kind_are_refused() -> None:
    plan = msgspec.json.decode(to_text(plan_of()))
    plan["terms"] = {"kind": "séance"}
    with pytest.raises(ValueError, match="no installed package has campaigns of the kind 'séance'"):
        plan_from_text(to_text(plan))
    with pytest.raises(UnusableInput, match="cannot read campaigns of the kind 'séance'"):
        kind_named("séance")


def test_a_package_beside_equipoise_registers_a_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "seance.py").write_text(
        "from msgspec import Struct\n"
        "from equipoise.model.kinds import TAG, Kind, Terms\n"
        "from equipoise.model.result import ResultDocument\n"
        "class Plan(Struct, Terms, frozen=True, tag_field=TAG, tag='seance'):\n"
        "    medium: str\n"
        "class Document(ResultDocument, frozen=True, kw_only=True, tag='seance'):\n"
        "    medium: str\n"
        "KIND = Kind('seance', terms='seance:Plan', document='seance:Document')\n"
    )
    folder = tmp_path / "seance-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: seance\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(f"[{kinds.ENTRY_POINTS}]\nseance = seance:KIND\n")
    monkeypatch.syspath_prepend(tmp_path)
    cached: tuple[Any, ...] = (packages.registered, kinds.kind_named, kinds.load)
    for function in cached:
        function.cache_clear()
    try:
        plan = msgspec.json.decode(to_text(plan_of()))
        plan["terms"] = {"kind": "seance", "medium": "Ouija"}
        read = plan_from_text(to_text(plan))
        assert read.kind.name == "seance"
        assert msgspec.to_builtins(read.terms) == plan["terms"]
    finally:
        for function in cached:
            function.cache_clear()


IN_EACH_FORM = """
import importlib, pkgutil, sys
from pathlib import Path
import equipoise
from equipoise.cli.main import run
from equipoise.model.kinds import REGISTER

assert not {gone} & set(REGISTER), REGISTER
for module in pkgutil.walk_packages(equipoise.__path__, "equipoise."):
    if not module.name.endswith(("_native", "__main__")):
        importlib.import_module(module.name)

def ask(*words):
    status = run([*words])
    assert status == 0, (words, status)

ask("--help")
ask("gate", "--help")
ask("compare", "--blocks", "6", "--min-seconds", "0", "--quiet", "--json", "a.json", "true", "true")
ask("show", "last", "--report", "page.html")
for name in ("page.md", "page.tex", "page.csv"):
    ask("report", "last", "-o", name)
ask("report", "a.json", "-o", "again.html")
for name in ("trials.csv", "trials.json"):
    ask("export", "last", "-o", name)
ask("list")
"""
"""Imports every module, compares two commands, and shows and reports the result in each form."""


def without_kinds(folder: Path, gone: tuple[str, ...]) -> Path:
    """A copy of the package without the folders of some kinds and their lines."""
    copy = folder / "equipoise"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "_bin"))
    (copy / "_bin").symlink_to(SOURCE / "_bin")
    register = copy / "model/kinds.py"
    text = register.read_text()
    for kind in gone:
        shutil.rmtree(copy / "kinds" / kind)
        text, lines = re.subn(
            rf'^    "{kind}": "equipoise\.kinds\.{kind}",\n', "", text, flags=re.M
        )
        assert lines == 1
    register.write_text(text)
    return folder


WITHOUT_STUDIES = """
assert not run(["list", "studies"])
Path("mine.toml").write_text(
    "[study]\\nname = 'mine'\\n[workload]\\ncommand = ['true']\\n"
    "[factors.a]\\none = {}\\ntwo = {}\\n"
)
ask("run", "mine.toml", "--blocks", "2", "--quiet")
for words in (
    ["os", "--quick"],
    ["run", "sekhon2006"],
    ["list", "probes"],
    ["compare", "equipoise-workload spin", "true"],
    ["doctor", "--certify"],
):
    assert run(words) == 2, words
"""
"""Lines that an installation without the studies can run, and what it says that it cannot."""


def without_studies(folder: Path) -> tuple[Path, ...]:
    """Folders of modules, none of which has the package with the studies or its metadata."""
    site = folder / "site"
    site.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "equipoise" not in entry.name:
            (site / entry.name).symlink_to(entry)
    return SOURCE.parent, ROOT / "packages/matching/src", site


def test_the_studies_go_away_with_their_package(tmp_path: Path) -> None:
    folders = without_studies(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        # Without the module `site`, the interpreter finds no installed packages on its own.
        [sys.executable, "-S", "-c", IN_EACH_FORM.replace("{gone}", "set()") + WITHOUT_STUDIES],
        cwd=work,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "EQUIPOISE_LEDGER": str(work / "ledger.db"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refusals = [line for line in done.stderr.splitlines() if "equipoise-studies, which" in line]
    assert [line.partition(" is in ")[0].removeprefix("equipoise: ") for line in refusals] == [
        "the command os",
        "the built-in study 'sekhon2006'",
        "the list of probes",
        "equipoise-workload",
        "equipoise-workload",
    ]
    assert done.stderr.count("pip install equipoise-studies") == len(refusals)
    assert not re.search(r"^  os ", done.stdout.split("Usage:", 2)[1], re.M)
    assert {file.name for file in work.glob("page.*")} == {
        "page.html", "page.md", "page.tex", "page.csv",
    }  # fmt: skip


def kinds_that(test: Path, seen: set[Path]) -> set[str]:
    """The kinds that a file of tests imports, or that what it imports of the tests does."""
    if test in seen:
        return set()
    seen.add(test)
    needed: set[str] = set()
    for imported in imports(ast.parse(test.read_text()), "tests"):
        match imported.module.split("."):
            case ["equipoise", "kinds", kind, *_]:
                needed.add(kind)
            case ["packages", "equipoise", "tests", *below, _]:
                file = TESTS.joinpath(*below).with_suffix(".py")
                needed |= kinds_that(file, seen) if file.exists() else set()
    return needed


def test_without_kinds_the_tests_of_the_kernel_pass(tmp_path: Path) -> None:
    gone = ("fleet", "history", "bisect")
    tests = [
        test
        for room in KERNEL_TESTS
        for test in sorted((TESTS / room).rglob("test_*.py"))
        if not kinds_that(test, set()) & set(gone)
    ]
    assert len(tests) > 30
    for name in WITH_MANY_EXAMPLES:
        file, _, function = name.partition("::")
        assert f"def {function}(" in (TESTS / file).read_text()
    folder = TESTS.relative_to(ROOT)
    source = str(without_kinds(tmp_path / "src", gone))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *(f"--deselect={folder / name}" for name in WITH_MANY_EXAMPLES),
            *map(str, tests),
        ],
        cwd=ROOT,
        # The summary of these tests is not that of the session around them.
        env={**os.environ, "PYTHONPATH": source, "EQUIPOISE_TEST_SUMMARY": str(tmp_path / "told")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_kind_goes_away_with_its_folder_and_its_line(tmp_path: Path, count: int) -> None:
    gone = ("fleet", "history", "bisect")[:count]
    source = without_kinds(tmp_path / "src", gone)
    work = tmp_path / "work"
    work.mkdir()
    done = finished(
        [sys.executable, "-c", IN_EACH_FORM.replace("{gone}", repr(set(gone)))],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    help_text = done.stdout.split("Usage:", 2)[1]
    assert "gate" in help_text
    assert not any(re.search(rf"^  {kind} ", help_text, re.M) for kind in gone)
    assert {file.name for file in work.glob("page.*")} == {
        "page.html", "page.md", "page.tex", "page.csv",
    }  # fmt: skip
