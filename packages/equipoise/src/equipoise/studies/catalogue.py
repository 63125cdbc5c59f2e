"""The built-in studies of installed packages. Each study is a folder with a ``study.toml``.

A package registers its studies under the entry point group ``equipoise.studies``. The entry point
names a package whose folders are studies. The function ``study_data`` of that package converts an
`equipoise.model.result.ResultDocument` to the argument of the studies' functions.
"""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.packages import folder_of, missing_studies_error, registered
from equipoise.model.plan import COMPARE_STUDY
from equipoise.model.result import Findings, ResultDocument

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

ENTRY_POINTS = "equipoise.studies"
"""Group of the entry points by which packages register studies."""
STUDY_FILE = "study.toml"
ANALYSIS_FILE = "analysis.py"
CHARTS_FILE = "charts.py"


class BuiltInStudy(Struct, frozen=True):
    """A built-in study, with its analysis and its charts, if it has them.

    The folder of a study may have two modules::

        analysis.py   def findings(data) -> Findings: ...
        charts.py     def figures(data) -> Iterator[Figure]: ...

    ``figures`` may be in ``analysis.py`` if that file does not import altair. Both functions are
    pure: the same result gives the same sentences and charts. The result may lack conditions or
    trials, for example after ``--quick`` or an interruption. The functions then leave out the
    missing data or report it as missing.
    """

    folder: Path
    package: str
    """Package that contains the folder."""

    @property
    def name(self) -> str:
        """Name of the study and of its folder."""
        return self.folder.name

    @property
    def summary(self) -> str:
        """Summary of the study in one line."""
        tables = tomllib.loads(self.file.read_text(encoding="utf-8"))
        return str(tables.get("study", {}).get("summary", ""))

    @property
    def file(self) -> Path:
        """File of the study."""
        return self.folder / STUDY_FILE

    def findings(self, document: ResultDocument) -> Findings:
        """Return the tables and paragraphs of the study."""
        return cast(Findings, self._load_module(ANALYSIS_FILE).findings(self._data(document)))

    def figures(self, document: ResultDocument) -> tuple[Figure, ...]:
        """Return the charts of the study, each with a name for its file."""
        has_charts = (self.folder / CHARTS_FILE).is_file()
        figures = getattr(
            self._load_module(CHARTS_FILE if has_charts else ANALYSIS_FILE), "figures", None
        )
        return () if figures is None else tuple(figures(self._data(document)))

    def _data(self, document: ResultDocument) -> Any:
        return importlib.import_module(self.package).study_data(document)

    def _load_module(self, file: str) -> Any:
        module = file.removesuffix(".py")
        return importlib.import_module(f"{self.package}.{self.name}.{module}")


def built_in_studies() -> tuple[BuiltInStudy, ...]:
    """Return the built-in studies, sorted by name."""
    studies = (
        BuiltInStudy(file.parent, package)
        for package in registered(ENTRY_POINTS).values()
        for file in folder_of(package).glob(f"*/{STUDY_FILE}")
    )
    return tuple(sorted(studies, key=lambda study: study.name))


def find_study(reference: str) -> tuple[Path, str]:
    """Return the file of a study, and the name of the file in errors.

    ``reference`` is the path of a file, or the name of a built-in study. Raise `UnusableInput` if
    neither exists.
    """
    path = Path(reference)
    if path.is_file() or path.suffix == ".toml" or "/" in reference:
        if not path.is_file():
            raise UnusableInput(
                f"the study's file {reference} does not exist",
                hint="check the path, or run `equipoise list studies` to see the built-in studies",
            )
        return path, reference
    studies = {study.name: study for study in built_in_studies()}
    if not studies:
        raise missing_studies_error(f"the built-in study {reference!r}")
    if reference not in studies:
        from equipoise.studies.reader.toml_file import one_of

        raise UnusableInput(
            f"{reference!r} is neither a file nor a built-in study",
            hint=one_of(reference, list(studies)),
        )
    return studies[reference].file, f"{reference}/{STUDY_FILE}"


def analysis_of(study: str) -> BuiltInStudy | None:
    """Return the built-in study with this name; ``None`` if there is none, or no analysis."""
    if study == COMPARE_STUDY:
        return None
    studies = (built_in for built_in in built_in_studies() if built_in.name == study)
    built_in = next(studies, None)
    has_analysis = built_in is not None and (built_in.folder / ANALYSIS_FILE).is_file()
    return built_in if has_analysis else None


def with_findings(document: ResultDocument) -> ResultDocument:
    """Return the document with the findings of its built-in study, if it has an analysis.

    Raise `UnusableInput` if the document has levels that the study cannot have: it may be a file of
    the user.
    """
    study = document.run.study
    analysis = analysis_of(study)
    if analysis is None:
        return document
    try:
        # The ratio of two measurements in a file may overflow.
        with np.errstate(all="ignore"):
            return replace(document, findings=analysis.findings(document))
    except ValueError as error:
        raise UnusableInput(
            f"the findings of {study} cannot be computed for run {document.run.id}, because it has "
            f"levels that the study cannot have: {error}",
            hint=f"run the study again with its own levels: equipoise run {study}",
        ) from error
