"""Names in braces in a study's texts: each stands for something, or is refused."""

from __future__ import annotations

import re

from equipoise.model.study import Study, Words
from equipoise.studies.reader.server_table import PLACEHOLDERS, servers_of
from equipoise.studies.reader.table import Table, one_of

_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_][\w-]*)\}(?!\})")
_FILE_PLACEHOLDERS = ("study", "python")


def check_placeholders(file: Table, study: Study) -> None:
    """Refuse a name in braces that stands for nothing, and one in a path.

    Raises
    ------
    UnusableInput
        It names the key, and what there is.
    """
    known = {*_FILE_PLACEHOLDERS, *(factor.name for factor in study.factors)}
    if any(level.build is not None for factor in study.factors for level in factor.levels):
        known.add("build")
    if study.workload.data is not None:
        known.add("data")
    if study.measure.layouts is not None:
        if "layout" in known:
            raise file.table("measure").fail(
                "layouts", "there is a factor called layout already", "leave out one of them"
            )
        known.add("layout")
    server = study.workload.server
    if servers_of(study.workload, study.factors):
        known.update(PLACEHOLDERS)
    workload = file.table("workload")
    if server is None:
        _check_words(workload, "command", study.workload.command, known)
    else:
        table = workload.table("server")
        for key, words in {**server.commands(), "client": study.workload.command}.items():
            _check_words(table, key, words, known)
    if study.quick is not None and study.quick.command is not None:
        _check_words(file.table("quick"), "command", study.quick.command, known)
    factors = file.table("factors")
    for factor in study.factors:
        for level in factor.levels:
            table = factors.table(factor.name).table(level.name) if not factor.plain else factors
            if level.server is not None:
                for key, words in level.server.commands().items():
                    _check_words(table.table("server"), key, words, known)
            _check_words(table, "command", level.command or (), known)
            _check_words(table, "client", level.client_arguments, known)
            _check_words(table, "args", level.arguments, known)
            _check_words(table, "env", tuple(level.environment.values()), known)
            _check_words(table, "build", (level.build or "",), known)
            paths = {
                "preload": level.preload,
                "library_path": level.library_path,
                "folder": (level.working_folder or "",),
            }
            for key, words in paths.items():
                _refuse_placeholders(table, key, words, known)


def _check_words(table: Table, key: str, words: Words, known: set[str]) -> None:
    for name in (found for word in words for found in _PLACEHOLDER.findall(word)):
        if name not in known:
            raise table.fail(
                key,
                f"{{{name}}} stands for nothing",
                f"{one_of(name, sorted(known))}; write {{{{{name}}}}} for the braces themselves",
            )


def _refuse_placeholders(table: Table, key: str, words: Words, known: set[str]) -> None:
    for name in (found for word in words for found in _PLACEHOLDER.findall(word)):
        if name in known:
            raise table.fail(
                key,
                f"nothing is put in for {{{name}}} in a path",
                "write the path out; a relative one starts from the study's own folder",
            )
