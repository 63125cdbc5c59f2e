"""The decision rules of other tools, one file each, written from their documentation.

Nothing is taken from their code. What a documentation leaves open is said in the file.
"""

from __future__ import annotations

from benchmarks.validity.rules.benchstat import BENCHSTAT
from benchmarks.validity.rules.hyperfine import HYPERFINE
from benchmarks.validity.rules.pyperf import PYPERF
from benchmarks.validity.rules.rule import Rule
from benchmarks.validity.rules.tachometer import TACHOMETER
from benchmarks.validity.rules.temci import TEMCI

RULES: tuple[Rule, ...] = (HYPERFINE, BENCHSTAT, PYPERF, TACHOMETER, TEMCI)
