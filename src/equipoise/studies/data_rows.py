"""The rows of a study's data set, in a file beside the ledger."""

from __future__ import annotations

from pathlib import Path

from equipoise.design.choice import named_data, with_data_word
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning
from equipoise.model.study import Study
from equipoise.studies.data_sets import DATA_SETS, data_file

DATA = "data"
"""Folder beside the ledger."""


def with_data(study: Study, ledger: Path) -> tuple[Study, tuple[CampaignWarning, ...]]:
    """Return the study with the file of its rows; if they are missing, with made-up rows.

    Raises
    ------
    UnusableInput
        The file cannot be written.
    """
    name = named_data(study)
    if name is None:
        return study, ()
    data_set = DATA_SETS[name]
    try:
        rows = data_set.text()
    except UnusableInput as missing:
        summary = f"{name}: {missing.what}; {data_set.otherwise} rows replace them"
        warning = CampaignWarning("data_missing", summary, missing.hint or "see docs/studies.md")
        return with_data_word(study, data_set.otherwise), (warning,)
    return with_data_word(study, str(data_file(name, rows, ledger.parent / DATA))), ()


def require_data(plan: Plan, ledger: Path) -> None:
    """Refuse to resume a campaign whose rows are gone: each trial would fail, and count as slowest.

    Raises
    ------
    UnusableInput
        A file of rows that a command names is gone.
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
