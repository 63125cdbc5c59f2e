"""The libraries of `equipoise.design.blas` as levels, as they are and told of a core type.

The library path of the process chooses one, whether a program is linked to it or opens it while
it runs; threads are a factor of their own (their ``env``).
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
"""Each finds out by itself what it runs on."""

TUNED_BLAS = tuple(
    Level(
        f"{library.name}_{name}",
        environment={library.core_variable: core.value},
        library_path=(str(library.folder),),
        instructions=core.instructions,
        tuned_for=(core.says,),
        package=library.package,
        summary=f"{library.name}, told that the CPU is of the type {core.says}",
    )
    for library in LIBRARIES
    if library.core_variable is not None
    for name, core in library.core_types.items()
)
"""``openblas_skylakex``: told what it runs on, whatever it would find out."""
