"""The data sets that a study's ``{data}`` can stand for, and the file of their rows.

Nothing is copied into the project: the rows are those of a package, if it is installed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from equipoise.files.writing import write_whole
from equipoise.matching import own_errors, require_matching
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.model.study import Study
from equipoise.shared.spelling import option

DATA = "data"
"""Folder beside the ledger."""


def with_data(study: Study, ledger: Path) -> tuple[Study, tuple[CampaignWarning, ...]]:
    """Return the study with the file of its rows; if they are missing, with made-up rows.

    Raise `UnusableInput` if the file cannot be written.
    """
    name = named_data(study)
    if name is None:
        return study, ()
    data_set = DATA_SETS[name]
    try:
        rows = data_set.text()
    except UnusableInput as missing:
        word = data_set.otherwise
        summary = f"{name}: {missing.what}; {word} rows replace them"
        hint = missing.hint or "see docs/reference/study.md"
        warnings: tuple[CampaignWarning, ...] = (CampaignWarning("data_missing", summary, hint),)
    else:
        word, warnings = str(data_file(name, rows, ledger.parent / DATA)), ()
    return replace(study, workload=replace(study.workload, data_word=word)), warnings


def named_data(study: Study) -> str | None:
    """Return the name of the data set that ``{data}`` in the study stands for, if it is there."""
    return study.workload.data if any("{data}" in text for text in study.texts()) else None


def require_data(plan: Plan, ledger: Path) -> None:
    """Refuse to resume a campaign whose rows are gone: each trial would fail, and count as slowest.

    Raise `UnusableInput` if a file of rows that a command names is gone.
    """
    home = (ledger.parent / DATA).absolute()
    for word in dict.fromkeys(word for condition in plan.conditions for word in condition.command):
        file = Path(word)
        if file.parent == home and not file.is_file():
            raise UnusableInput(
                f"the rows of this campaign are gone: there is no {file}",
                hint="restore the file (`equipoise run` of the study writes it again), "
                "or start the study anew",
            )


class DataSet(Struct, frozen=True):
    """Rows that a workload reads."""

    text: Callable[[], str]
    """Returns the rows as CSV; raises UnusableInput with a hint if their package is missing."""
    otherwise: str
    """The word by which the workload makes up rows like them."""


def data_file(name: str, rows: str, home: Path) -> Path:
    """Write the rows of a data set into ``home``, unless they are there, and return the file.

    The name of the file contains a fingerprint of the rows: the rows of a campaign are never
    overwritten, so that it can be resumed after another version of the package came.

    Raise `UnusableInput` if the file cannot be written.
    """
    content = rows.encode()
    fingerprint = hashlib.sha256(content).hexdigest()[:12]
    file = home.absolute() / f"{name}-{fingerprint}.csv"
    if file.exists():
        return file
    try:
        home.mkdir(parents=True, exist_ok=True)
        write_whole(file, content)
    except OSError as error:
        raise UnusableInput(
            f"the rows of {name} cannot be written to {file}: {error.strerror}",
            hint=f"choose a folder that can be written to by {option('ledger')}",
        ) from error
    return file


def _lalonde() -> str:
    datasets = require_matching("equipoise_matching.matching.datasets")
    with own_errors():
        return str(datasets.lalonde().to_csv(index=False))


DATA_SETS: Mapping[str, DataSet] = {"lalonde": DataSet(_lalonde, "made-up")}
"""Data sets by the name that ``[workload] data`` gives them."""
