"""Hold `show --json` of 14 campaigns of the first release against what it printed then.

Renamed fields and prose may differ. An exact Student's t moved intervals by up to 1e-3 of their
value, another erfc `log_evidence` by up to 1e-6; everything else is the same to 1e-12.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CAMPAIGNS = ROOT / "tests/golden/first_release/campaigns.tar.xz"
RENAMED = {"words": "summary", "mend": "hint", "advice_words": "advice_summary"}
PROSE = frozenset(
    {"summary", "hint", "schema", "scope", "estimand", "disagreement", "advice_summary", "these"}
    | {"across", "notes", "paragraphs", "title", "answer", "headings", "spread_because"}
)
ADDED = frozenset(
    {"engine", "equivalence_ci", "equivalence_level", "means_veto", "ranking"}
    | {
        "ratio_is_constant",
        "ratio_segments",
        "resolutions",
        "unchanged",
        "in_these_layouts",
        "typical",
        "chance",
        "certain",
        "functions",
        "bisect",
        "bisects",
        "history",
        "hosts",
        "fleet",
        "host",
    }
    | {"adjust_by", "adjusted_by"}
)
"""Fields that the first release did not have."""
NAMED_BY_USERS = frozenset({"environment", "levels", "stratum"})
MOVED = (".extra_time", ".imported", "carry_over.", ".these_ci", ".across_ci")
"""Parts whose intervals rest on Student's t."""


def renamed(part: Any) -> Any:
    """Return a part of an old document with today's names."""
    if isinstance(part, dict):
        return {
            RENAMED.get(key, key) if isinstance(value, str | None) else key: (
                value if key in NAMED_BY_USERS else renamed(value)
            )
            for key, value in part.items()
        }
    return [renamed(inner) for inner in part] if isinstance(part, list) else part


def mended(document: Any) -> Any:
    """Return a document without the warnings that the first release gave wrongly, or not at all.

    That an effect is inflated by a stop at its verdict was also said where something else ended the
    campaign, and why a campaign failed was not said.
    """
    left_out = {"failed"}
    if document["run"]["stopped_because"] != "verdict":
        left_out.add("inflated")
    warnings = [one for one in document["warnings"] if one["code"] not in left_out]
    return {**document, "warnings": warnings}


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Return the places where two documents differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in {**old, **new} if key not in PROSE | ADDED]
        return [
            line
            for key in keys
            for line in differences(
                old.get(key, "absent"), new.get(key, "absent"), f"{place}.{key}"
            )
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for at, (a, b) in pairs for line in differences(a, b, f"{place}[{at}]")]
    if isinstance(old, float) and isinstance(new, float):
        by_student = "_ci[" in place and any(name in place for name in MOVED)
        near = 1e-3 if by_student else 1e-6 if "log_evidence" in place else 1e-12
        return [] if abs(old - new) <= near * max(abs(old), abs(new)) else [f"{place}: {old} {new}"]
    return [] if old == new else [f"{place}: {str(old)[:60]} {str(new)[:60]}"]


def main() -> int:
    """Compare every campaign; return 1 if one differs."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder, tarfile.open(CAMPAIGNS) as archive:
        archive.extractall(folder, filter="data")
        place = Path(folder, "first_release")
        for file in sorted(place.glob("*.json")):
            command = [sys.executable, "-m", "equipoise.cli", "show", file.stem, "--json", "-"]
            ledger = ["--ledger", str(place / "ledger.db")]
            shown = subprocess.run([*command, *ledger], capture_output=True, check=True).stdout
            found = differences(
                mended(renamed(json.loads(file.read_bytes()))), mended(json.loads(shown))
            )
            print(file.stem, "same" if not found else "\n  ".join(["differs", *found[:9]]))
            failed |= bool(found)
    return failed


if __name__ == "__main__":
    sys.exit(main())
