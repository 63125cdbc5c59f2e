"""The data sets of studies, and the files with their rows, which replace ``{data}`` in commands.

Equipoise has no copy of the rows. They come from another package, if this package is installed.
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

DATA_FOLDER = "data"
"""Folder next to the ledger for the files of rows."""


def with_data(study: Study, ledger: Path) -> tuple[Study, tuple[CampaignWarning, ...]]:
    """Return the study with its file of rows, or with made-up rows and a warning."""
    name = named_data(study)
    if name is None:
        return study, ()
    data_set = DATA_SETS[name]
    try:
        rows = data_set.read_rows()
    except UnusableInput as error:
        argument = data_set.fallback_argument
        summary = f"the rows of {name} are missing, and {argument} rows replace them: {error.what}"
        hint = error.hint or "see docs/reference/study.md"
        warnings: tuple[CampaignWarning, ...] = (CampaignWarning("data_missing", summary, hint),)
    else:
        argument, warnings = str(write_data_file(name, rows, ledger.parent / DATA_FOLDER)), ()
    return replace(study, workload=replace(study.workload, data_argument=argument)), warnings


def named_data(study: Study) -> str | None:
    """Return the name of the study's data set; ``None`` if no text contains ``{data}``."""
    return study.workload.data if any("{data}" in text for text in study.texts()) else None


def require_data(plan: Plan, ledger: Path) -> None:
    """Refuse to resume a campaign without its file of rows, because each trial would fail."""
    folder = (ledger.parent / DATA_FOLDER).absolute()
    commands = (condition.command for condition in plan.conditions)
    for argument in dict.fromkeys(argument for command in commands for argument in command):
        file = Path(argument)
        if file.parent == folder and not file.is_file():
            raise UnusableInput(
                f"the file with the rows of this campaign does not exist any more: {file}",
                hint="restore the file, or start the study again with `equipoise run`",
            )


class DataSet(Struct, frozen=True):
    """A data set: the source of the rows that a workload reads."""

    read_rows: Callable[[], str]
    """Function that returns the rows as CSV; it raises `UnusableInput` without the package."""
    fallback_argument: str
    """Argument that replaces ``{data}`` without the package: the workload makes up its rows."""


def write_data_file(name: str, rows: str, folder: Path) -> Path:
    """Write the rows of a data set into a folder, unless the file exists; return the file.

    The name of the file contains a hash of the rows, so another version of the package never
    overwrites the rows of an earlier campaign. Raise `UnusableInput` if the file cannot be written.
    """
    content = rows.encode()
    short_hash = hashlib.sha256(content).hexdigest()[:12]
    file = folder.absolute() / f"{name}-{short_hash}.csv"
    if file.exists():
        return file
    try:
        folder.mkdir(parents=True, exist_ok=True)
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
"""Data sets by name; the key ``data`` of ``[workload]`` is a name."""
