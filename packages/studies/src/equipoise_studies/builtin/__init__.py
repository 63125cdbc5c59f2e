"""The built-in studies, one folder each.

- ``study.toml``: the programs and their comparison
- ``analysis.py``: the function ``findings``, with tables and paragraphs for the result
- ``charts.py``: the function ``figures``, with the charts
- ``page.md``: the description of the study
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.model.result import ResultDocument
    from equipoise_studies.study_data import StudyData


def study_data(document: ResultDocument) -> StudyData:
    """Return a result document as `StudyData`."""
    from equipoise_studies.study_data import StudyData

    return StudyData(document)
