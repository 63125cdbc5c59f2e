"""Where the ledger lies if nobody says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

DEFAULT_PATH = Path(".equipoise/ledger.db")
VARIABLE = "EQUIPOISE_LEDGER"


def default_path() -> Path:
    """The ledger that ``EQUIPOISE_LEDGER`` names, or the one under the current folder."""
    return Path(os.environ.get(VARIABLE) or DEFAULT_PATH)
