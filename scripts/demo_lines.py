"""Writes the file that `make demo` sorts: the same 300,000 random lines every time."""

from __future__ import annotations

import random
import sys

LINES = 300_000


def main() -> None:
    """Write the lines to standard output."""
    coin = random.Random(2006)
    sys.stdout.writelines(f"{coin.getrandbits(64):016x}\n" for _ in range(LINES))


if __name__ == "__main__":
    main()
