"""Formats of results, one module each. A new format needs a module and an entry in `FORMATS`."""

from __future__ import annotations

from equipoise.interop.formats import (
    catch2,
    criterion,
    divan,
    go_bench,
    google_benchmark,
    hyperfine,
    jmh,
    libtest,
    nanobench,
    plain_csv,
    pyperf,
    pytest_benchmark,
    rebench,
    sysbench,
    vitest,
)
from equipoise.interop.reading import Format, Reading

FORMATS: dict[str, Format[Reading]] = {
    module.FORMAT.name: module.FORMAT
    for module in (
        hyperfine,
        pyperf,
        google_benchmark,
        pytest_benchmark,
        jmh,
        criterion,
        go_bench,
        libtest,
        divan,
        catch2,
        nanobench,
        rebench,
        sysbench,
        vitest,
        plain_csv,
    )
}
"""Formats by name. A file is read in the first format that recognises it."""
