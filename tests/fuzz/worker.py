"""The process that runs cases: requests come in as lines of JSON, outcomes go out as lines."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from tests.fuzz.case import Case, Outcome, Target, from_json, generator_of
from tests.fuzz.guard import Guard, limit_memory
from tests.fuzz.judge import judge, minimised
from tests.fuzz.targets import TARGETS


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # What a library prints past Python is no answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        folder = Path(scratch, "case")
        folder.mkdir()
        for name in ("HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            os.environ[name] = str(folder)
        os.environ.pop("EQUIPOISE_LEDGER", None)
        tempfile.tempdir = str(folder)
        os.chdir(folder)
        guard = Guard(folder)
        for line in sys.stdin:
            _answer(json.loads(line), answers, folder, guard)
        os.chdir("/")


def _answer(request: dict[str, Any], answers: TextIO, folder: Path, guard: Guard) -> None:
    target = TARGETS[request["target"]]
    if "warm_up" in request:
        _warm_up(target, folder, guard, request.get("without", ()))
        limit_memory()
        print(json.dumps({"ready": target.name}), file=answers)
        return
    if "file" in request:
        case = from_json(Path(request["file"]).read_text())
        _begin(answers, request["number"], target, case)
        _end(answers, request["number"], judge(target, case, folder, guard), None)
        return
    for number in range(request["first"], request["first"] + request["count"]):
        case = target.make(generator_of(request["seed"], target.name, number))
        if case.variant in request.get("without", ()):
            continue
        _begin(answers, number, target, case)
        outcome = judge(target, case, folder, guard)
        shorter = None
        if outcome.kind == "find" and request["minimise"] and "more than" not in outcome.signature:
            shorter = minimised(target, case, folder, guard)
        _end(answers, number, outcome, case if shorter is None else shorter)
    print(json.dumps({"done": request["first"]}), file=answers)


def _warm_up(target: Target, folder: Path, guard: Guard, without: Sequence[str]) -> None:
    """Import what the first case of each variant imports: that is no time of the case."""
    seen = set(without)
    for number in range(60):
        case = target.make(generator_of(0, f"{target.name}/warm-up", number))
        if case.variant not in seen:
            seen.add(case.variant)
            judge(target, case, folder, guard)


def _begin(answers: TextIO, number: int, target: Target, case: Case) -> None:
    limit = target.cpu_seconds(case.variant)
    print(json.dumps({"begin": number, "limit": limit}), file=answers)


def _end(answers: TextIO, number: int, outcome: Outcome, case: Case | None) -> None:
    answer: dict[str, Any] = {"end": number, **asdict(outcome)}
    if case is not None and outcome.kind == "find":
        answer["variant"] = case.variant
        answer["content"] = case.content.hex()
    print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
