"""Files of other tools, as ``equipoise import`` reads them."""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path

from equipoise.interop.formats import FORMATS
from equipoise.interop.reading import read_source, read_within_bounds
from equipoise.kinds.imported.assembly import SourceReading, assemble
from equipoise.model.plan import Judgement
from packages.equipoise.tests.interop.test_damaged import WHOLE
from tests.fuzz.case import Case, Target
from tests.fuzz.judge import command_line
from tests.fuzz.mutators import json_bytes, mutated_bytes, mutated_tree

SAMPLES = Path(__file__).resolve().parents[3] / "packages/equipoise/tests/interop/samples"
BY_CONTENT = "content"
"""Variant in which the content of the file tells its format."""
WHOLLY = " whole"
"""Ending of a variant that goes through the command, ledger and screen included."""
_CRITERION = "criterion"
_IN_CRITERION = ("sample.json", "benchmark.json")


@functools.cache
def _samples() -> dict[str, tuple[bytes, ...]]:
    found: dict[str, tuple[bytes, ...]] = {form: (content,) for form, content in WHOLE.items()}
    found["hyperfine"] += tuple(
        (SAMPLES / name).read_bytes() for name in ("hyperfine_2.0.0.json", "hyperfine_1.20.0.json")
    )
    folder = SAMPLES / "criterion_0.5" / "plain" / "group" / "sum" / "10" / "new"
    parts = {name: json.loads((folder / name).read_bytes()) for name in _IN_CRITERION}
    found[_CRITERION] = (json_bytes(parts),)
    return found


def _make(generator: random.Random) -> Case:
    samples = _samples()
    form = generator.choice(list(samples))
    content = generator.choice(samples[form])
    others = [one for contents in samples.values() for one in contents]
    if content.lstrip()[:1] in (b"{", b"[") and generator.random() < 0.7:
        content = json_bytes(mutated_tree(generator, json.loads(content)))
    if content is samples[form][0] or generator.random() < 0.3:
        content = mutated_bytes(generator, content, others)
    variant = form if form == _CRITERION or generator.random() < 0.7 else BY_CONTENT
    return Case(variant + (WHOLLY if generator.random() < 0.4 else ""), content)


def _run(case: Case, folder: Path) -> None:
    form = case.variant.removesuffix(WHOLLY)
    path = folder / "results"
    if form == _CRITERION:
        _write_criterion(path, case.content)
    else:
        path.write_bytes(case.content)
    if case.variant.endswith(WHOLLY):
        chosen = () if form == BY_CONTENT else ("--format", form)
        page = str(folder / "page.md")
        ledger = str(folder / "ledger.db")
        command_line("import", *chosen, "--ledger", ledger, "--report", page, str(path))
        command_line("show", "last", "--ledger", ledger)
        return
    source = read_within_bounds(str(path), path)
    name, reading = read_source(source, None if form == BY_CONTENT else form, FORMATS)
    named = [SourceReading(str(path), None, name, reading)]
    assemble(named, judgement=Judgement(), folder="/", now=1.7e9, baseline=None)


def _write_criterion(path: Path, content: bytes) -> None:
    """Write the folder of one benchmark; content that is no object becomes its samples."""
    saved = path / "sum" / "new"
    saved.mkdir(parents=True)
    try:
        parts = json.loads(content)
    except (ValueError, RecursionError):
        parts = None
    if not isinstance(parts, dict):
        (saved / _IN_CRITERION[0]).write_bytes(content)
        return
    for name in _IN_CRITERION:
        if name in parts:
            (saved / name).write_bytes(json_bytes(parts[name]))


TARGET = Target("imports", "files of other tools, 11 formats (`import`)", 27, _make, _run)
