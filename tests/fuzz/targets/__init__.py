"""What is fuzzed, one file each: whoever adds one lists it here."""

from __future__ import annotations

from tests.fuzz.case import Target
from tests.fuzz.targets import documents, formulas, imports, ledgers, metrics, studies

TARGETS: dict[str, Target] = {
    module.TARGET.name: module.TARGET
    for module in (imports, studies, documents, metrics, formulas, ledgers)
}
"""By name, in the order of the table of results."""
