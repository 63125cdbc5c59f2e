"""The environment on the page: all of it, long parts folded, what is alike once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.report.builders.result import environment_section
from equipoise.report.document import Facts, Section


def section_of(environment: Mapping[str, Any]) -> tuple[Facts, tuple[Section, ...]]:
    """The facts that are not folded, and the folded parts."""
    facts, *folded = environment_section(environment).parts
    assert isinstance(facts, Facts)
    return facts, tuple(part for part in folded if isinstance(part, Section) and part.folded)


def test_short_parts_are_open_and_what_is_null_is_unknown() -> None:
    facts, folded = section_of({"cpus": 2, "governor": None, "libraries": {"libc.so.6": "2.36"}})
    assert facts.pairs == (
        ("cpus", "2"),
        ("governor", "unknown"),
        ("libraries, libc.so.6", "2.36"),
    )
    assert folded == ()


def test_a_long_part_is_folded_whole() -> None:
    mitigations = {f"flaw_{number}": "Not affected" for number in range(12)}
    facts, folded = section_of({"mitigations": mitigations})
    (part,) = folded
    (lines,) = part.parts
    assert isinstance(lines, Facts)
    assert part.title == "Mitigations (12 lines)"
    assert len(lines.pairs) == 12
    assert lines.pairs[3] == ("mitigations, flaw 3", "Not affected")


def test_a_folded_part_leaves_the_title_of_the_whole() -> None:
    environment = {"mitigations": {f"flaw_{number}": "Not affected" for number in range(12)}}
    assert environment_section(environment).title == "Environment"
    assert environment_section(environment, "Environment of ada").title == "Environment of ada"


def test_equal_content_has_one_line_with_every_owner() -> None:
    same = {"program": "/bin/x", "problems": []}
    mapped = dict.fromkeys("abcde", same) | {"f": {"program": "/bin/y", "problems": []}}
    facts, folded = section_of({"mapped": mapped})
    assert facts.pairs == (
        ("mapped, a, b, c and 2 more, program", "/bin/x"),
        ("mapped, a, b, c and 2 more, problems", "none"),
        ("mapped, f, program", "/bin/y"),
        ("mapped, f, problems", "none"),
    )


def test_content_equal_for_all_has_one_line() -> None:
    facts, folded = section_of({"mapped": {name: {"program": "/bin/x"} for name in "abcde"}})
    assert facts.pairs == (("mapped, all 5 alike, program", "/bin/x"),)
