"""The pages that the forges receive: comments, checks and Code Quality reports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from equipoise.kinds.gate.annotations import check_of, code_quality_report
from equipoise.kinds.gate.comment import summary_of
from equipoise.kinds.gate.terms import COMMENT_MARK, GateDocument, GateRow, GateShortage
from equipoise.model.record import CampaignWarning
from equipoise.model.revisions import Revision, SourcePlace
from equipoise.report.json_document import encode
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.kinds.gate.test_comment import (
    HEAD,
    ForgeServer,
    forge,
    github_variables,
    gitlab_variables,
)
from packages.equipoise.tests.kinds.gate.test_report import (
    HARMLESS,
    NOTHING,
    gate_document_of,
    kinds,
    row,
    tokens,
)
from packages.equipoise.tests.payloads import FORGE_PAYLOADS, PAYLOADS

__all__ = ["forge"]

PLACE = SourcePlace("tests/test_text.py", 12)
_REFERENCE = re.compile(
    r"(?<![\w`/])[@#!%~$](?=[\w\"])|&(?=\d)|://|\bwww\.|\bGH-\d|:[\w+-]*[a-z_+-][\w+-]*:|:100:"
    r"|\[\w+:|\*iteration:",
    re.IGNORECASE,
)
"""Text that GitHub or GitLab makes a link, a mention or an emoji of: their pages on Markdown."""
_QUICK_ACTION = re.compile(r"^\s*/\w", re.MULTILINE)
"""Line that GitLab runs as a command (https://docs.gitlab.com/user/project/quick_actions/)."""


def slower(name: str, place: SourcePlace | None = PLACE) -> GateRow:
    """A slower benchmark with the place of its definition."""
    summary = f"{name} is slower by more than 2 %, by at least 5 %."
    return replace(row(name, "slower", 1.05, 1.2), place=place, summary=summary)


def mixed_gate() -> GateDocument:
    """A gate with a slower benchmark that has a place, one that has none, and one that passes."""
    return gate_document_of(
        slower("tests/test_text.py::test_parse[100]"),
        slower("render", None),
        row("sum", "passes", 0.9, 1.01),
        words="HEAD (2222222222) against main (1111111111): 2 of 3 benchmarks are slower.",
    )


def pages(forge: ForgeServer) -> str:
    """Everything that the server was asked to write, with the lines of a text as lines."""
    return "\n".join(
        f"{method} {path}\n{json.dumps(body, indent=1, ensure_ascii=False)}".replace("\\n", "\n")
        for method, path, body in forge.written
    )


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_each_forge_receives_the_same_pages_as_before(
    name: str,
    forge: ForgeServer,
    tmp_path: Path,
    equipoise: Equipoise,
    snapshot: SnapshotAssertion,
) -> None:
    result = tmp_path / "gate.json"
    result.write_bytes(encode(mixed_gate()))
    on_github = name == "github"
    variables = github_variables(forge, tmp_path) if on_github else gitlab_variables(forge)
    report = ("--code-quality", "report.json")
    answer = equipoise("comment", f"--{name}", *report, str(result), environment=variables)
    assert answer.status == 0, answer
    assert pages(forge) == snapshot(name="requests")
    assert (tmp_path / "report.json").read_text() == snapshot(name="Code Quality report")


def test_a_code_quality_report_needs_no_forge_and_no_token(
    tmp_path: Path, equipoise: Equipoise
) -> None:
    (tmp_path / "gate.json").write_bytes(encode(gate_document_of(row("a", "passes", 0.9, 1.01))))
    answer = equipoise("comment", "--code-quality", "report.json", "gate.json")
    assert (answer.status, answer.err) == (0, "")
    assert json.loads((tmp_path / "report.json").read_text()) == []
    answer = equipoise("comment", "--code-quality", "missing/report.json", "gate.json")
    assert answer.status == 2
    assert "missing" in answer.err


def test_a_token_that_may_only_comment_costs_only_the_check(
    forge: ForgeServer, tmp_path: Path, equipoise: Equipoise
) -> None:
    (tmp_path / "gate.json").write_bytes(encode(mixed_gate()))
    forge.check_failures = [403]
    variables = github_variables(forge, tmp_path)
    answer = equipoise("comment", "--github", "gate.json", environment=variables)
    assert answer.status == 0, answer
    assert len(forge.bodies()) == 1
    assert "no check was written: POST" in answer.err
    assert "status 403" in answer.err
    assert "checks: write" in answer.err
    forge.check_failures = [422]
    answer = equipoise("comment", "--github", "gate.json", environment=variables)
    assert answer.status == 74
    assert "status 422" in answer.err


def test_the_annotations_come_in_requests_of_fifty(
    forge: ForgeServer, tmp_path: Path, equipoise: Equipoise
) -> None:
    document = gate_document_of(*(slower(f"b{number}") for number in range(120)))
    (tmp_path / "gate.json").write_bytes(encode(document))
    variables = github_variables(forge, tmp_path)
    answer = equipoise("comment", "--github", "--quiet", "gate.json", environment=variables)
    assert (answer.status, answer.err) == (0, "")
    checks = forge.checks()
    assert [len(check["output"]["annotations"]) for check in checks] == [50, 50, 20]
    assert [method for method, path, _ in forge.written if "/check-runs" in path] == [
        "POST",
        "PATCH",
        "PATCH",
    ]
    titles = [one["title"] for check in checks for one in check["output"]["annotations"]]
    assert titles == [f"slower: b{number}" for number in range(120)]
    assert {check["output"]["title"] for check in checks} == {
        "120 of 120 benchmarks slower by more than 2 %"
    }


@pytest.mark.parametrize(
    ("outcome", "passed", "conclusion"),
    [
        ("slower", False, "failure"),
        ("passes", True, "success"),
        ("undecided", True, "neutral"),
        ("undecided", False, "failure"),
    ],
)
def test_the_conclusion_of_the_check_is_that_of_the_gate(
    outcome: Any, passed: bool, conclusion: str
) -> None:
    document = gate_document_of(row("a", outcome, 0.9, 1.2), passed=passed)
    assert document.gate is not None
    shortage = GateShortage(undecided=1, blocks=5, block_s=1.0, needed_blocks=None, needed_s=None)
    gate = replace(document.gate, shortage=shortage if outcome == "undecided" else None)
    assert check_of(gate, HEAD).conclusion == conclusion
    assert check_of(None, HEAD).conclusion == "neutral"


def test_a_check_with_very_many_slower_benchmarks_annotates_the_first_ones() -> None:
    check = check_of(gate_document_of(*map(slower, map(str, range(501)))).gate, "2" * 40)
    assert len(check.annotations) == 500
    assert check.note == "Only the first 500 have an annotation."


def test_a_check_says_that_its_lines_are_those_of_another_commit() -> None:
    gate = mixed_gate().gate
    assert gate is not None
    assert "which was measured" in check_of(gate, HEAD).note
    assert "which was measured" not in check_of(gate, gate.candidate.commit).note


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../other.py", "a/../../b", "", "a\nb", "./a", "a//b", "a" * 2000, "\x1b[1m"],
)
def test_a_place_outside_of_the_repository_gets_no_annotation(path: str) -> None:
    document = gate_document_of(slower("a", SourcePlace(path, 1)), slower("b", SourcePlace("b", 0)))
    assert check_of(document.gate, HEAD).annotations == ()
    assert "2 of 2 slower benchmarks" in check_of(document.gate, HEAD).note
    assert json.loads(code_quality_report(document)) == []


def hostile_gate(payload: str) -> GateDocument:
    """A gate whose every text is hostile, as a stranger could write it into the file."""
    document = gate_document_of(slower(payload), row(payload, "undecided", 0.9, 1.2), words=payload)
    assert document.gate is not None
    gate = replace(
        document.gate,
        baseline=Revision(payload, payload),
        candidate=Revision(payload, payload),
        bisect_lines={payload: payload},
    )
    warning = CampaignWarning("code", payload, payload)
    run = replace(document.run, command_line=payload)
    return replace(document, gate=gate, warnings=(warning,), run=run)


@pytest.mark.parametrize("payload", (*PAYLOADS, *FORGE_PAYLOADS))
def test_a_hostile_name_is_inert_on_a_forge(payload: str) -> None:
    document = hostile_gate(payload)
    check = check_of(document.gate, HEAD)
    summary = summary_of(document)
    assert summary.endswith(f"\n\n{COMMENT_MARK}\n")
    for page in (summary, check.note):
        page_tokens = list(tokens(page))
        assert kinds(page_tokens) <= HARMLESS | {"html_block"}
        html = [token.content.strip() for token in page_tokens if token.type.startswith("html")]
        assert set(html) <= {NOTHING, COMMENT_MARK}
        assert html.count(COMMENT_MARK) <= 1
        texts = [token.content for token in page_tokens if token.type == "text"]
        assert [text for text in texts if _REFERENCE.search(text)] == []
        outside_code = re.sub(r"^(`{3,})$.*?^\1$", "", page, flags=re.MULTILINE | re.DOTALL)
        assert _QUICK_ACTION.search(outside_code) is None
    plain = [text for one in check.annotations for text in (one.title, one.message)]
    plain += [entry["description"] for entry in json.loads(code_quality_report(document))]
    assert len(plain) == 3
    for text in plain:
        assert text.isprintable() and len(text) <= 400
        assert re.search(r"://\S|\bwww\.\S", text) is None
