"""How long a campaign takes between the end of one trial and the start of the next.

Runs `equipoise compare true true` for 200 blocks and reads the gaps from its own ledger: each
holds committing the trial, reading covariates, and after a block the look.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from equipoise.ledger import open_for_reading

BOUND_MS = 2.0


def main() -> int:
    """Run the campaign and print its gaps; 1 if the median is over 2 ms."""
    with tempfile.TemporaryDirectory(prefix="equipoise-campaign-") as folder:
        ledger_path = Path(folder) / "ledger.db"
        subprocess.run(
            [sys.executable, "-m", "equipoise.cli", "compare", "true", "true", "--quiet"]
            + ["--blocks", "200", "--alpha", "1e-9", "--budget", "1e6"]
            + ["--ledger", str(ledger_path)],
            check=True,
        )
        with open_for_reading(ledger_path) as ledger:
            trials = ledger.read_run("last").trials
    gaps_ms = 1e3 * np.array(
        [
            after.started_at - before.started_at - (before.accounting.wall_s or 0.0)
            for before, after in itertools.pairwise(trials)
        ]
    )
    median, high = np.quantile(gaps_ms, [0.5, 0.99])
    print(
        f"between trials, {len(gaps_ms)} gaps: median {median:.2f} ms, 99 % {high:.2f} ms, "
        f"most {gaps_ms.max():.2f} ms (bound at the median: {BOUND_MS:g} ms)"
    )
    return int(median > BOUND_MS)


if __name__ == "__main__":
    sys.exit(main())
