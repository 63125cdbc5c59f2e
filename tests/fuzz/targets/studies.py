"""Studies in TOML, as ``equipoise run`` reads them: up to the plan, nothing is run."""

from __future__ import annotations

import functools
import json
import random
import tomllib
from pathlib import Path
from typing import Any

from equipoise.design.grid import build_lines, grid_of
from equipoise.design.site import remove_missing_levels
from equipoise.measure.installation import host_site
from equipoise.measure.launcher import COUNTERS
from equipoise.studies.preparation import quick_form, without_idle_factors
from equipoise.studies.reader.study import read_study
from tests.fuzz.case import Case, Target
from tests.fuzz.mutators import TEXTS, any_text, mutated_bytes, mutated_tree

SOURCES = Path(__file__).resolve().parents[3] / "packages/studies/src/equipoise_studies/builtin"
QUICK, WHOLE = "quick", "whole"
_SERVER = """
[study]
name = "server"
[workload.server]
start = ["python3", "-m", "http.server", "{port}"]
client = ["true", "{port}"]
ready = ["true"]
stop = ["true"]
trial = "interval"
ready_s = 3
needs = { python3 = "python3" }
[factors.kind]
plain = {}
other = { env = { A = "1" }, client = { args = ["-x"] } }
[factors.rows]
levels = [1, 10, 100]
role = "size"
[measure]
metrics = ["wall_s", "max_rss_bytes"]
budget = 10
[compare]
factor = "kind"
baseline = "plain"
[[exclude]]
kind = "other"
rows = "10"
"""


@functools.cache
def _samples() -> tuple[bytes, ...]:
    built_in = (path.read_bytes() for path in sorted(SOURCES.glob("*/study.toml")))
    return (_SERVER.encode(), *built_in)


def _make(generator: random.Random) -> Case:
    variant = generator.choice((QUICK, WHOLE, WHOLE))
    content = generator.choice(_samples())
    if generator.random() < 0.4:
        return Case(variant, mutated_bytes(generator, content, _samples()))
    tree = tomllib.loads(content.decode())
    if generator.random() < 0.2:
        _add_factors(generator, tree)
    tree = mutated_tree(generator, tree)
    return Case(variant, _toml(tree).encode("utf-8", "replace"))


def _add_factors(generator: random.Random, tree: dict[str, Any]) -> None:
    """Add factors, whose combinations may be more than any host can run."""
    for number in range(generator.choice((1, 3, 12))):
        name = generator.choice((f"more_{number}", any_text(generator)))
        count = generator.choice((1, 2, 10))
        tree.setdefault("factors", {})[name] = {
            "levels": [generator.choice((place, *TEXTS[:30])) for place in range(count)]
        }


def _toml(tree: Any) -> str:
    """Write a tree as TOML: a line for each key of the two upper depths, and inline below them."""
    if not isinstance(tree, dict):
        return f"value = {_inline(tree)}\n"
    lines: list[str] = []
    for name, value in tree.items():
        if isinstance(value, dict):
            lines += [f"[{_key(name)}]", *(f"{_key(k)} = {_inline(v)}" for k, v in value.items())]
        else:
            lines.insert(0, f"{_key(name)} = {_inline(value)}")
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "a").isalnum() else json.dumps(name)


def _inline(value: Any) -> str:
    match value:
        case dict():
            return "{ " + ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_inline, value)) + "]"
        case None:
            return '"none"'
        case bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return repr(value)


def _run(case: Case, folder: Path) -> None:
    path = folder / "study.toml"
    path.write_bytes(case.content)
    study = read_study(path, str(path), counters=COUNTERS)
    if case.variant == QUICK:
        study = quick_form(study)
    site = host_site()
    study, _ = without_idle_factors(study)
    study, _ = remove_missing_levels(study, site)
    lines = build_lines(study)
    grid_of(study, site, dict.fromkeys(lines, "/build"))


TARGET = Target("studies", "studies (`run STUDY.toml`)", 20, _make, _run)
