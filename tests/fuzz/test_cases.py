"""Finds that were mended stay mended, and a few hundred fresh cases show no other one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fuzz.__main__ import requests_for
from tests.fuzz.case import CORPUS, Outcome, corpus_of, generator_of
from tests.fuzz.supervisor import Tally, run_requests
from tests.fuzz.targets import TARGETS

FILES = [(name, path) for name in TARGETS for path in corpus_of(name)]
SEED = 20261122
CASES = 300
WITHOUT = ("figures", ".html")
"""Drawing takes as long as a hundred other cases: `make fuzz` has them."""
SECONDS = 600.0
"""Far more than all of them take: a case that hangs is ended by its own limit."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the cases of a run of the tests show."""

    corpus: dict[str, Outcome]
    """By the path of the file; a file that shows nothing is not here."""
    fresh: dict[str, Tally]
    """By target."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Both kinds of cases in one process: what they import takes longer than they do."""
    folder = tmp_path_factory.mktemp("workers")
    again = [
        {"target": name, "file": str(path), "number": place, "without": WITHOUT}
        for place, (name, path) in enumerate(FILES)
    ]
    fresh = [
        {**request, "minimise": False, "without": WITHOUT}
        for request in requests_for(list(TARGETS.values()), CASES, SEED)
    ]
    tallies = run_requests([*again, *fresh], folder, workers=1, seconds=SECONDS)
    corpus: dict[str, Outcome] = {}
    for tally in tallies.values():
        corpus |= {one.file: one.outcome for one in tally.finds if one.file is not None}
        tally.finds = [one for one in tally.finds if one.file is None]
    return Shown(corpus, tallies)


@pytest.mark.parametrize(
    "path", [path for _, path in FILES], ids=[f"{name}/{path.stem}" for name, path in FILES]
)
def test_a_find_stays_mended(path: Path, shown: Shown) -> None:
    outcome = shown.corpus.get(str(path))
    assert outcome is None, f"{outcome.signature}\n{outcome.detail}"


def test_every_file_of_the_corpus_is_of_a_target() -> None:
    kept = {path for path in CORPUS.rglob("*") if path.is_file()}
    assert kept == {path for _, path in FILES}


@pytest.mark.parametrize("target", TARGETS)
def test_hostile_input_is_read_or_refused_in_a_line_or_two(target: str, shown: Shown) -> None:
    finds = shown.fresh[target].finds
    described = "\n".join(
        f"case {one.number}: {one.outcome.signature}\n{one.outcome.detail}" for one in finds
    )
    assert not finds, f"seed {SEED}\n{described}"


@pytest.mark.parametrize("target", TARGETS)
def test_some_hostile_input_is_still_read(target: str, shown: Shown) -> None:
    assert shown.fresh[target].read > 0


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "metrics"])
def test_some_hostile_input_is_refused(target: str, shown: Shown) -> None:
    assert shown.fresh[target].refused > 0


@pytest.mark.parametrize("target", TARGETS)
def test_a_case_is_made_again_from_its_seed_and_number(target: str) -> None:
    first, again = (TARGETS[target].make(generator_of(SEED, target, 3)) for _ in range(2))
    assert first == again
