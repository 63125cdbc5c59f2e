"""Names of runs, such as ``20261120-113005-4f2a``: the time in UTC and a random end."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


def new_run_id(started_at: float) -> str:
    """Make the name of a run that starts at ``started_at`` (seconds since the epoch).

    Names sort by the second at which their runs started. Two may be equal by chance; the
    ledger then asks for another one.
    """
    moment = datetime.fromtimestamp(started_at, UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
