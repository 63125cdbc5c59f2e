"""What examples of Python take as given, and what lies otherwise on the desk of one page."""

from __future__ import annotations

PEOPLE = """
from equipoise_matching import gen_match, match
from equipoise_matching.matching.datasets import lalonde
people = lalonde()
y, treat = people["re78"], people["treat"]
X = people[["age", "educ", "black", "re74"]]
balance = X
"""
FUNCTION = """
import numpy
nvars = 2
fn = lambda x: -float(numpy.sum(numpy.square(x)))
"""
DOCUMENT = """
from pathlib import Path
from equipoise.report.json_document import decode
document = decode(Path("ours.json").read_bytes(), "ours.json")
"""
FUNCTIONS = """
f = lambda: sum(range(100))
g = lambda: sum(range(300))
"""
PRELUDES = {
    "README.md": FUNCTIONS,
    "docs/reference/result-page.md": DOCUMENT,
    "docs/reference/genetic-matching.md": PEOPLE + FUNCTION,
}
"""By page."""

LAID_OUT = {
    "docs/how-to/merge-ledgers.md": {
        ".equipoise/ledger.db": "host1.db",
        ".equipoise/os.db": "host2.db",
    },
    "docs/reference/document.md": {"ours.json": "result.json"},
    "docs/reference/result-page.md": {"ours.json": "result.json"},
    "docs/reference/primitives.md": {".equipoise/os.db": ".equipoise/ledger.db"},
}
"""By page: what stands in the place of what."""

SESSIONS = frozenset({"docs/how-to/merge-ledgers.md", "docs/tutorials/pull-request.md"})
"""Pages whose blocks of shell are one session: each block begins where the one above it ended."""
