"""What a built-in study makes of its own result.

The folder of a study may have a module ``figure.py`` with two functions::

    def findings(document: ResultDocument) -> Findings: ...
    def figures(document: ResultDocument) -> Iterator[Figure]: ...

Both are pure: the result document goes in, and the same document gives the same words and charts.
Nothing in them prints, reads a file or starts a process. They meet results of ``--quick``, of
chosen levels and of interrupted campaigns: what a document does not hold is left out or said to be
missing, and is no error. altair is imported inside of ``figures`` only.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, cast

from equipoise.model.findings import Findings
from equipoise.model.result import ResultDocument
from equipoise.studies.catalogue import built_in_study

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure


class OwnFindings(Protocol):
    """The module ``figure.py`` of a study."""

    def findings(self, document: ResultDocument) -> Findings:
        """Tables and paragraphs."""

    def figures(self, document: ResultDocument) -> Iterator[Figure]:
        """Charts, each with a name for files."""


def own_findings(study: str) -> OwnFindings | None:
    """The module of a built-in study; ``None`` for any other, and for one that has none."""
    built_in = built_in_study(study)
    if built_in is None or built_in.analysis_module is None:
        return None
    return cast(OwnFindings, importlib.import_module(built_in.analysis_module))
