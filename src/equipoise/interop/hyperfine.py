"""Results in the export formats of hyperfine (JSON, CSV, Markdown).

The layout is that of hyperfine 1.15 with ``memory_usage_byte`` of 1.19, which its readers
ignore where they do not know it. The figures are hyperfine's: means and standard
deviations over trials, and in Markdown a ratio to the fastest mean whose ± propagates the
standard deviations. They are description; the verdict is not in them.

Only analysed trials of the phase ``measured`` with a known wall time count. Of a run that was
imported from hyperfine 1.x, the means of user and system time are those of the file, since no
trial has its own.
"""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from equipoise.interop.assembly import AS_THE_FILE_SAYS
from equipoise.interop.formats.hyperfine import MEANS
from equipoise.model.result import ConditionResult, ResultDocument, TrialRow

CSV_COLUMNS = ("command", "mean", "stddev", "median", "user", "system", "min", "max")
_UNKNOWN = "n/a"


class _Result(msgspec.Struct, omit_defaults=True):
    """One entry of ``results``, in hyperfine's order; times in seconds."""

    command: str
    mean: float | None
    stddev: float | None
    median: float | None
    user: float | None
    system: float | None
    min: float | None
    max: float | None
    times: list[float]
    exit_codes: list[int | None]
    memory_usage_byte: list[int | None] | None = None
    parameters: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class _Unit:
    name: str
    per_second: float
    digits: int

    def show(self, seconds: float) -> str:
        return f"{seconds * self.per_second:.{self.digits}f}"


_MILLISECONDS = _Unit("ms", 1e3, 1)
_SECONDS = _Unit("s", 1.0, 3)


def to_json(document: ResultDocument) -> bytes:
    """Write what ``hyperfine --export-json`` would: indented, with a final newline.

    A figure that is not known is null; ``memory_usage_byte`` is left out if no trial has
    it, and ``parameters`` (the levels of the condition) if there are none.
    """
    encoded = msgspec.json.encode({"results": _results(document)})
    return msgspec.json.format(encoded, indent=2) + b"\n"


def to_csv(document: ResultDocument) -> str:
    """Write what ``hyperfine --export-csv`` would; a figure that is not known is empty."""
    results = _results(document)
    parameters = sorted({name for result in results for name in result.parameters})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*CSV_COLUMNS, *(f"parameter_{name}" for name in parameters)])
    for result in results:
        writer.writerow(
            [
                *(getattr(result, column) for column in CSV_COLUMNS),
                *(result.parameters.get(name) for name in parameters),
            ]
        )
    return text.getvalue()


def to_markdown(document: ResultDocument) -> str:
    """Write what ``hyperfine --export-markdown`` would.

    The unit is milliseconds if the first mean is under a second, else seconds. A name
    stays in its cell: bars are escaped, line ends and other control characters are spaces.
    """
    results = _results(document)
    first = next((result.mean for result in results if result.mean is not None), 1.0)
    unit = _MILLISECONDS if first < 1.0 else _SECONDS
    fastest = min(
        (result for result in results if result.mean is not None),
        key=lambda result: result.mean or 0.0,
        default=None,
    )
    lines = [
        f"| Command | Mean [{unit.name}] | Min [{unit.name}] | Max [{unit.name}] | Relative |",
        "|:---|---:|---:|---:|---:|",
    ]
    for result in results:
        cells = (
            _code(result.command),
            _with_spread(unit, result),
            _shown(unit, result.min),
            _shown(unit, result.max),
            _relative(result, fastest),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _results(document: ResultDocument) -> list[_Result]:
    rows: dict[str, list[TrialRow]] = {condition.name: [] for condition in document.conditions}
    for row in document.trials:
        counts = row.analysed and row.phase == "measured" and row.wall_s is not None
        if counts and row.condition in rows:
            rows[row.condition].append(row)
    means = _imported_means(document)
    return [
        _result(condition, rows[condition.name], means.get(" ".join(condition.command), {}))
        for condition in document.conditions
    ]


def _imported_means(document: ResultDocument) -> dict[str, dict[str, float]]:
    """Of each command of an imported file, what only the file knows."""
    said = document.environment.get(AS_THE_FILE_SAYS)
    means: dict[str, dict[str, float]] = said.get(MEANS, {}) if isinstance(said, dict) else {}
    return means


def _result(
    condition: ConditionResult, rows: Sequence[TrialRow], means: dict[str, float]
) -> _Result:
    times = [row.wall_s for row in rows if row.wall_s is not None]
    memory = [row.max_rss_bytes for row in rows]
    return _Result(
        command=_unicode(condition.name),
        mean=_mean(times),
        stddev=_standard_deviation(times),
        median=statistics.median(times) if times else None,
        user=_mean([row.user_s for row in rows if row.user_s is not None], means.get("user")),
        system=_mean([row.sys_s for row in rows if row.sys_s is not None], means.get("system")),
        min=min(times, default=None),
        max=max(times, default=None),
        times=times,
        exit_codes=[row.exit for row in rows],
        memory_usage_byte=memory if any(peak is not None for peak in memory) else None,
        parameters={
            _unicode(factor): _unicode(level) for factor, level in condition.levels.items()
        },
    )


def _mean(values: Sequence[float], of_none: float | None = None) -> float | None:
    return math.fsum(values) / len(values) if values else of_none


def _standard_deviation(values: Sequence[float]) -> float | None:
    mean = _mean(values)
    if mean is None or len(values) < 2:
        return None
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _shown(unit: _Unit, seconds: float | None) -> str:
    return _UNKNOWN if seconds is None else unit.show(seconds)


def _with_spread(unit: _Unit, result: _Result) -> str:
    mean = _shown(unit, result.mean)
    return mean if result.stddev is None else f"{mean} ± {unit.show(result.stddev)}"


def _relative(result: _Result, fastest: _Result | None) -> str:
    if result is fastest:
        return "1.00"
    if fastest is None or not result.mean or not fastest.mean:
        return _UNKNOWN
    ratio = result.mean / fastest.mean
    if result.stddev is None or fastest.stddev is None:
        return f"{ratio:.2f}"
    spread = ratio * math.hypot(result.stddev / result.mean, fastest.stddev / fastest.mean)
    return f"{ratio:.2f} ± {spread:.2f}"


def _code(text: str) -> str:
    """Show text as code in a cell of a table, whatever it holds."""
    line = "".join(character if character.isprintable() else " " for character in text)
    ticks = "`" * (1 + max(_lengths(re.findall("`+", line)), default=0))
    edge = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{ticks}{edge}{line}{edge}{ticks}".replace("|", r"\|")


def _lengths(texts: Iterable[str]) -> list[int]:
    return [len(text) for text in texts]


def _unicode(text: str) -> str:
    """Show the bytes of a command line that are no text as backslash escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
