"""BLAS libraries as levels, by name: on one thread each, unless the name says otherwise."""

from __future__ import annotations

from equipoise.design.blas import LIBRARIES, Blas
from equipoise.model.study import Level


def _level(library: Blas, name: str, threads: int | None, summary: str) -> Level:
    chosen = library.environment(threads=threads)
    # The study's own key: the process must then map a library from there.
    del chosen["LD_LIBRARY_PATH"]
    return Level(
        name,
        environment=chosen,
        library_path=(str(library.folder),),
        package=library.package,
        summary=summary,
    )


LIBRARY_LEVELS = (
    *(_level(one, one.name, 1, one.summary) for one in LIBRARIES),
    *(
        _level(one, f"{one.name}_threads", None, f"{one.name} on as many threads as it likes")
        for one in LIBRARIES
        if one.threads_variable is not None
    ),
)
