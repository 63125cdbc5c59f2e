"""Every rule has an id of its own, and the docs tell what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.why.causes.ranking import RULES, Rule

DOCS = Path(__file__).resolve().parents[3] / "docs" / "why.md"


def test_ids_are_unique() -> None:
    ids = [rule.cause for rule in RULES]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.cause)
def test_the_docs_list_every_cause(rule: Rule) -> None:
    _, _, causes = DOCS.read_text(encoding="utf-8").partition("## Causes")
    table, _, _ = causes.partition("## Interventions")
    assert f"`{rule.cause}`" in table


def test_every_file_with_a_rule_is_asked() -> None:
    folder = Path(__file__).resolve().parents[3] / "src" / "equipoise" / "explain" / "causes"
    with_rule = {file.stem for file in folder.glob("*.py") if "\nCAUSE = " in file.read_text()}
    assert with_rule == {rule.cause for rule in RULES}
