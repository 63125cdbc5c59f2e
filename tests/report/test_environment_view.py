"""The environment on the page: all of it, long parts folded, what is alike once."""

from __future__ import annotations

from equipoise.report.environment_view import environment_view


def test_short_parts_stand_open_and_unknown_is_said() -> None:
    found = environment_view({"cpus": 2, "governor": None, "libraries": {"libc.so.6": "2.36"}})
    assert found.facts == (
        ("cpus", "2"),
        ("governor", "unknown"),
        ("libraries, libc.so.6", "2.36"),
    )
    assert found.folded == ()


def test_a_long_part_is_folded_whole() -> None:
    mitigations = {f"flaw_{number}": "Not affected" for number in range(12)}
    found = environment_view({"mitigations": mitigations})
    ((title, lines),) = found.folded
    assert title == "mitigations"
    assert len(lines) == 12
    assert lines[3] == ("mitigations, flaw 3", "Not affected")


def test_what_is_alike_of_many_stands_once_with_whose_it_is() -> None:
    same = {"program": "/bin/x", "problems": []}
    mapped = dict.fromkeys("abcde", same) | {"f": {"program": "/bin/y", "problems": []}}
    found = environment_view({"mapped": mapped})
    assert found.facts == (
        ("mapped, a, b, c and 2 more, program", "/bin/x"),
        ("mapped, a, b, c and 2 more, problems", "none"),
        ("mapped, f, program", "/bin/y"),
        ("mapped, f, problems", "none"),
    )


def test_what_all_have_alike_is_said_of_all() -> None:
    found = environment_view({"mapped": {name: {"program": "/bin/x"} for name in "abcde"}})
    assert found.facts == (("mapped, all 5 alike, program", "/bin/x"),)
