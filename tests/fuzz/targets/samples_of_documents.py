"""Result documents of every kind, small: what mutations start from."""

from __future__ import annotations

import functools
import json
import zlib
from itertools import product
from pathlib import Path
from typing import Any

from equipoise.model.result import ResultDocument
from equipoise.report.json_document import encode
from equipoise.studies.catalogue import built_in_studies, with_findings
from equipoise.studies.reader.study import read_study
from packages.equipoise.tests.documents import document_of, layered_document, sized_document
from packages.equipoise.tests.iterated import shaped_document
from packages.equipoise.tests.report import kinds
from packages.studies.tests.builtin.synthetic import study_document

STUDIES = Path(__file__).resolve().parents[3] / "packages/studies/src/equipoise_studies/builtin"
MAX_CONDITIONS = 24


@functools.cache
def sample_documents() -> tuple[tuple[str, Any], ...]:
    """Give a name and a document as a tree of dictionaries and lists."""
    made = {
        "compare": document_of(blocks=8),
        "three": document_of("a", "b", "c", blocks=6, timeouts=frozenset({2})),
        "layers": layered_document("a", "b"),
        "sizes": sized_document(),
        "shapes": shaped_document(),
        "os": kinds.primitives().result,
        "os against": kinds.against_another().result,
        "why": kinds.explained().result,
        "gate": kinds.gated().result,
        "bisection": kinds.bisected().result,
        "import": kinds.imported().result,
        **{f"study {study.name}": _of_study(study.name) for study in built_in_studies()},
    }
    return tuple((name, json.loads(encode(one))) for name, one in made.items())


def _of_study(name: str) -> ResultDocument:
    """Make a result of a built-in study, with some levels of each factor and invented values."""
    study = read_study(STUDIES / name / "study.toml")
    factors = {factor.name: tuple(one.name for one in factor.levels) for factor in study.factors}
    while len(list(product(*factors.values()))) > MAX_CONDITIONS:
        longest = max(factors, key=lambda factor: len(factors[factor]))
        factors[longest] = factors[longest][:-1]
    metrics = dict.fromkeys((*study.measure.metrics, *study.workload.reports, "wall_s"))

    def values(levels: dict[str, str]) -> dict[str, float]:
        return {
            metric: 0.001 * (1 + zlib.crc32(f"{metric}{sorted(levels.items())}".encode()) % 1000)
            for metric in metrics
        }

    found = study_document(name, factors, values, blocks=3, iterated=list(study.workload.reports))
    return with_findings(found)
