"""Reads series of other tools: a value for each commit, with one module for each tool.

- ``reading.py``: reads the values of files, and joins the values to series
- ``asv.py``: airspeed velocity's folder of results
- ``bencher.py``: Bencher's series, or a file in Bencher Metric Format for each commit
- ``conbench.py``: Conbench's responses to ``/api/history`` and ``/api/benchmark-results``
- ``pyperf.py``: pyperf's JSON, with a suite for each commit
- ``plain_csv.py``: a CSV with the columns commit, date and value

A new format needs a module and an entry in `SERIES_FORMATS`.
"""

from __future__ import annotations

from equipoise.interop.reading import Format
from equipoise.interop.series import asv, bencher, conbench, plain_csv, pyperf
from equipoise.interop.series.reading import SeriesReading

SERIES_FORMATS: dict[str, Format[SeriesReading]] = {
    module.FORMAT.name: module.FORMAT for module in (asv, pyperf, conbench, bencher, plain_csv)
}
"""Formats by name. A file is read in the first format that recognises it."""
