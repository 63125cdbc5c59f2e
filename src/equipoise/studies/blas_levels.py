"""Libraries of linear algebra as levels, by name (reference: systems.md §4).

Debian keeps each in a folder of its own under the same soname, ``libblas.so.3``: the library path
of the process chooses, whether a program is linked to it or opens it while it runs.
"""

from __future__ import annotations

import sysconfig

from equipoise.model.study import Level

_FOLDER = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH') or ''}"


def _blas(name: str, folder: str, package: str, summary: str) -> Level:
    return Level(name, library_path=(f"{_FOLDER}/{folder}",), package=package, summary=summary)


LIBRARIES = (
    _blas("reference", "blas", "libblas3", "Netlib's reference"),
    _blas("atlas", "atlas", "libatlas3-base", "ATLAS, one thread"),
    _blas("openblas", "openblas-pthread", "libopenblas0-pthread", "the heir of Goto's BLAS"),
    _blas("blis", "blis-openmp", "libblis4-openmp", "BLIS"),
)
