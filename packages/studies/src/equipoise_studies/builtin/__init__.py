"""The built-in studies, a folder each.

study.toml   what is run and compared
analysis.py  ``findings``: tables and paragraphs that the study adds to its result
charts.py    ``figures``: its charts
page.md      what the study is about, with its numbers
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.model.result import ResultDocument
    from equipoise_studies.study_data import StudyData


def study_data(document: ResultDocument) -> StudyData:
    """Return what the modules of the studies read a result by."""
    from equipoise_studies.study_data import StudyData

    return StudyData(document)
