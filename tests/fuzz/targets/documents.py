"""Result documents as somebody sends them: reports, figures, and results held against them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from equipoise.ledger import open_for_writing
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Draw, Trial
from equipoise.report.builders.result import ReportInput
from equipoise.report.json_document import decode
from equipoise.studies.catalogue import with_findings
from packages.equipoise.tests.report.forms import page
from tests.fuzz.case import Case, Target
from tests.fuzz.judge import command_line
from tests.fuzz.mutators import json_bytes, mutated_bytes, mutated_tree
from tests.fuzz.targets.pages import check_csv, check_html, check_latex, check_markdown
from tests.fuzz.targets.samples_of_documents import sample_documents

FIGURES, AGAINST, IMPORT, TWO = "figures", "against", "import", "two"
WORDS = "words"
"""A page without its charts, which take a hundred times as long."""
PAGE = ".html"
CHECKS: dict[str, Callable[[str], None]] = {
    PAGE: check_html,
    ".md": check_markdown,
    ".tex": check_latex,
    ".csv": check_csv,
}
_SHARES = {
    ".md": 18, ".tex": 8, ".csv": 15, WORDS: 25,
    AGAINST: 26, IMPORT: 3, TWO: 3, PAGE: 2, FIGURES: 0.5,
}  # fmt: skip
"""Variants among 100 cases: a page takes a second, a table a hundredth of it."""
_PARTS = (
    *("comparisons", "conditions", "trials", "control", "run", "against", "findings"),
    *("steady_state", "imported", "extra_time", "gate", "why", "more_is_better", "warnings"),
)


def _make(generator: random.Random) -> Case:
    _, tree = generator.choice(sample_documents())
    choice = generator.random()
    if choice < 0.6:
        # What is concluded and drawn; the names of a document are few among its numbers.
        part = generator.choice([key for key in _PARTS if tree.get(key)])
        content = json_bytes({**tree, part: mutated_tree(generator, tree[part])})
    elif choice < 0.85:
        content = json_bytes(mutated_tree(generator, tree))
    else:
        others = [json_bytes(sample_documents()[0][1])]
        content = mutated_bytes(generator, json_bytes(tree), others)
    (variant,) = generator.choices(list(_SHARES), weights=list(_SHARES.values()))
    return Case(variant, content)


def _run(case: Case, folder: Path) -> None:
    path = folder / "result.json"
    path.write_bytes(case.content)
    ledger = str(folder / "ledger.db")
    match case.variant:
        case "figures":
            command_line("report", str(path), "--figures", str(folder / "figures"))
        case "against":
            _record(folder / "ledger.db", _names(case.content))
            command_line("show", "last", "--ledger", ledger, "--against", str(path))
        case "words":
            document = with_findings(decode(case.content, str(path)))
            with mock.patch("equipoise.figures.gallery.gallery", return_value=iter(())):
                check_html(page([ReportInput(document)]))
        case "import":
            command_line("import", "--ledger", ledger, str(path))
        case "two":
            sound = folder / "sound.json"
            sound.write_bytes(json_bytes(sample_documents()[0][1]))
            _report(folder / "page.md", path, sound)
        case ending:
            _report(folder / f"page{ending}", path)


def _report(page: Path, *documents: Path) -> None:
    command_line("report", *map(str, documents), "-o", str(page))
    CHECKS[page.suffix](page.read_text(encoding="utf-8"))


def _names(content: bytes) -> list[str]:
    """Conditions of the document, so that rows of the two have names in common."""
    try:
        conditions = json.loads(content)["conditions"]
        names = [one["name"] for one in conditions if isinstance(one["name"], str)]
    except (ValueError, LookupError, TypeError, RecursionError):
        names = []
    return list(dict.fromkeys(names))[:3] or ["a", "b"]


def _record(path: Path, names: list[str]) -> None:
    plan = Plan(
        "compare",
        tuple(Condition(name, (name,)) for name in names),
        Measure("/"),
        Stopping(),
        Judgement(),
        7,
    )
    with open_for_writing(path, durable=False) as ledger:
        run = ledger.begin_run(plan, {}, 1.0)
        for block in range(1, 4):
            ledger.record_draw(run, Draw("measured", block, tuple(range(len(names))), 0))
            for place in range(len(names)):
                took = Accounting(wall_s=0.5 + block / 100 + place / 10)
                ledger.record_trial(run, Trial("measured", block, place, place, 1.0, took, 0))


def _cpu_seconds(variant: str) -> float:
    return {PAGE: 15.0, FIGURES: 40.0}.get(variant, 5.0)


TARGET = Target(
    "documents",
    "result documents (`report`, `--figures`, `--against`, `import`)",
    17,
    _make,
    _run,
    _cpu_seconds,
)
