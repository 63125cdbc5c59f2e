"""The libraries of `equipoise.design.blas` as levels.

The library path of the process chooses one, whether a program is linked to it or opens it while
it runs; threads and core types are factors of their own (their ``env``).
"""

from __future__ import annotations

from equipoise.design.blas import LIBRARIES
from equipoise.model.study import Level

BLAS = tuple(
    Level(
        library.name,
        library_path=(str(library.folder),),
        package=library.package,
        summary=library.summary,
    )
    for library in LIBRARIES
)
