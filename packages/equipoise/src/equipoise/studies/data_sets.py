"""The data sets for ``{data}`` in a study, and the files of their rows.

The project has no copy of the rows: they come from a package, if it is installed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from equipoise.files.writing import write_whole
from equipoise.matching import converted_errors, require_matching
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.model.study import Study
from equipoise.shared.spelling import option

DATA = "data"
"""Folder next to the ledger."""


def with_data(study: Study, ledger: Path) -> tuple[Study, tuple[CampaignWarning, ...]]:
    """Return the study with the file of its rows or, if they are missing, with made-up rows.

    Raise `UnusableInput` if the file cannot be written.
    """
    name = named_data(study)
    if name is None:
        return study, ()
    data_set = DATA_SETS[name]
    try:
        rows = data_set.text()
    except UnusableInput as missing:
        word = data_set.fallback_argument
        summary = f"{name}: {missing.what}; {word} rows replace them"
        hint = missing.hint or "see docs/reference/study.md"
        warnings: tuple[CampaignWarning, ...] = (CampaignWarning("data_missing", summary, hint),)
    else:
        word, warnings = str(data_file(name, rows, ledger.parent / DATA)), ()
    return replace(study, workload=replace(study.workload, data_word=word)), warnings


def named_data(study: Study) -> str | None:
    """Return the name of the data set for ``{data}``, if the study uses it."""
    return study.workload.data if any("{data}" in text for text in study.texts()) else None


def require_data(plan: Plan, ledger: Path) -> None:
    """Refuse to resume a campaign whose rows are gone, because each trial would fail.

    Raise `UnusableInput` if a file of rows that a command names is gone.
    """
    home = (ledger.parent / DATA).absolute()
    for word in dict.fromkeys(word for condition in plan.conditions for word in condition.command):
        file = Path(word)
        if file.parent == home and not file.is_file():
            raise UnusableInput(
                f"the rows of this campaign are gone: there is no {file}",
                hint="restore the file (`equipoise run` of the study writes it again), "
                "or start the study again",
            )


class DataSet(Struct, frozen=True):
    """Rows that a workload reads."""

    text: Callable[[], str]
    """Function that returns the rows as CSV; it raises `UnusableInput` without their package."""
    fallback_argument: str
    """Argument with which the workload makes up similar rows."""


def data_file(name: str, rows: str, home: Path) -> Path:
    """Write the rows of a data set into ``home``, unless the file exists; return the file.

    The name of the file contains a fingerprint of the rows, so that another version of the package
    never overwrites the rows of a campaign, which can still be resumed.

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
            hint=f"choose a writable folder with {option('ledger')}",
        ) from error
    return file


def _lalonde() -> str:
    datasets = require_matching("equipoise_matching.matching.datasets")
    with converted_errors():
        return str(datasets.lalonde().to_csv(index=False))


DATA_SETS: Mapping[str, DataSet] = {"lalonde": DataSet(_lalonde, "made-up")}
"""Data sets, by their name in ``[workload] data``."""
