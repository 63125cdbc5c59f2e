"""The flame graph and the Firefox profile: what is in them, and that text stays text."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from equipoise.model.errors import UnusableInput
from equipoise.why.differences.stacks import Picture, draw_profiles
from equipoise.why.evidence.sources import EvidenceSet, Runs
from packages.equipoise.tests.payloads import PAYLOADS
from packages.equipoise.tests.why.differences.example_evidence import sampled

HOSTILE = '<script>alert("x")</script>&amp;]]>\x01\x1b[31m\n# 5 7'
PROFILES = EvidenceSet(
    profile=Runs(
        (sampled({"main": 0.5, "main;work": 0.1}), sampled({"main": 0.5, "main;work": 0.3})),
        (sampled({"main": 0.25, "main;work;mmap@kernel": 0.75}),),
    )
)


def elements(svg: bytes, name: str) -> list[str]:
    """The texts of the elements of that name; fails if the picture is not well-formed XML."""
    tree = ElementTree.fromstring(svg)
    return [element.text or "" for element in tree.iter(f"{{http://www.w3.org/2000/svg}}{name}")]


def firefox(evidence: EvidenceSet, names: tuple[str, str]) -> dict[str, Any]:
    """The profile, read."""
    document: dict[str, Any] = json.loads(draw_profiles("firefox", evidence, names, "candidate"))
    return document


def test_widths_are_of_the_slower_condition_and_differences_of_own_time() -> None:
    svg = draw_profiles("flame-graph", PROFILES, ("before", "after"), "candidate")
    assert elements(svg, "title") == [
        "all (1,000,000 µs, 100%)",
        "main (1,000,000 µs, 100.00%; -25.00%)",
        "work (750,000 µs, 75.00%; -20.00%)",
        "mmap (750,000 µs, 75.00%; +75.00%)",
    ]
    turned = draw_profiles("flame-graph", PROFILES, ("before", "after"), "baseline")
    assert elements(turned, "title")[0] == "all (700,000 µs, 100%)"


def test_the_same_profiles_give_the_same_bytes() -> None:
    kinds: tuple[Picture, ...] = ("flame-graph", "firefox")
    for kind in kinds:
        first, second = (
            draw_profiles(kind, PROFILES, ("before", "after"), "candidate") for _ in "12"
        )
        assert first == second


def test_a_hostile_name_stays_text_in_the_flame_graph() -> None:
    profile = sampled({HOSTILE: 1.0})
    both = EvidenceSet(profile=Runs((profile,), (profile,)))
    svg = draw_profiles("flame-graph", both, (HOSTILE, HOSTILE), "candidate")
    assert [told.partition(" (")[0] for told in elements(svg, "title")] == [
        "all",
        '<script>alert("x")</script>&amp',
        "]]>\ufffd\ufffd[31m\ufffd\uff03 5 7",
    ]
    (script,) = elements(svg, "script")
    assert "alert(" not in script


def test_no_name_of_a_function_or_a_condition_makes_an_element_or_an_attribute() -> None:
    # What was observed is text; the name of a condition may hold other bytes.
    names = [name.replace(";", ",").replace("\udcff", "") for name in PAYLOADS]
    kinds = []
    for functions in (names, [f"function {place}" for place in range(len(names))]):
        profile = sampled(dict.fromkeys(functions, 1.0))
        both = EvidenceSet(profile=Runs((profile,), (profile,)))
        svg = draw_profiles("flame-graph", both, ("no text \udcff", functions[0]), "candidate")
        tree = ElementTree.fromstring(svg)
        kinds.append({(element.tag, tuple(sorted(element.attrib))) for element in tree.iter()})
    assert kinds[0] == kinds[1]


def test_the_firefox_profile_has_both_conditions_with_their_milliseconds() -> None:
    document = firefox(PROFILES, ("before", "after"))
    before, after = document["threads"]
    assert [thread["processName"] for thread in (before, after)] == ["before", "after"]
    assert before["samples"]["weightType"] == "tracing-ms"
    assert before["samples"]["weight"] == [pytest.approx(500.0), pytest.approx(200.0)]
    assert after["samples"]["weight"] == [pytest.approx(750.0), pytest.approx(250.0)]


def test_the_firefox_profile_is_whole() -> None:
    """Every table has the length that it says, and every place in another table is there."""
    document = firefox(PROFILES, ("before", HOSTILE))
    meta = document["meta"]
    assert meta["preprocessedProfileVersion"] > 0
    assert meta["symbolicated"] is True
    assert {"interval", "startTime", "categories", "product", "processType"} <= meta.keys()
    for thread in document["threads"]:
        tables = {
            name: thread[name] for name in ("frameTable", "funcTable", "stackTable", "samples")
        }
        for table in tables.values():
            columns = [column for column in table.values() if isinstance(column, list)]
            assert {len(column) for column in columns} == {table["length"]}
        assert all(
            stack is None or stack < tables["stackTable"]["length"]
            for stack in tables["samples"]["stack"]
        )
        assert all(
            frame < tables["frameTable"]["length"] for frame in tables["stackTable"]["frame"]
        )
        assert all(
            prefix is None or prefix < place
            for place, prefix in enumerate(tables["stackTable"]["prefix"])
        )
        assert all(func < tables["funcTable"]["length"] for func in tables["frameTable"]["func"])
        assert all(name < len(thread["stringArray"]) for name in tables["funcTable"]["name"])
        assert all(
            category < len(meta["categories"]) for category in tables["frameTable"]["category"]
        )
    after = document["threads"][1]
    kernel = [category["name"] for category in meta["categories"]].index("Kernel")
    entry_points = [
        after["stringArray"][after["funcTable"]["name"][func]]
        for func, category in zip(
            after["frameTable"]["func"], after["frameTable"]["category"], strict=True
        )
        if category == kernel
    ]
    assert entry_points == ["mmap"]
    assert after["processName"] == HOSTILE


@pytest.mark.parametrize("picture", ["flame-graph", "firefox"])
def test_drawing_needs_profiles_of_both_conditions(picture: Picture) -> None:
    one = EvidenceSet(profile=Runs((sampled({"main": 1.0}),), ()))
    for nothing in (EvidenceSet(), one, EvidenceSet(profile=Runs((sampled({}),), (sampled({}),)))):
        with pytest.raises(UnusableInput, match="no profile of both"):
            draw_profiles(picture, nothing, ("a", "b"), "candidate")
