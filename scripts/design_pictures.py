"""Make the picture of the README of equipoise-matching: a love plot of LaLonde's data.

    python scripts/design_pictures.py

The designs are those of the README, and take some seconds. Needs altair and vl-convert, and
pngquant for a small file.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pandas

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from equipoise_matching import compare_designs, entropy_balance, optimal_match  # noqa: E402
from equipoise_matching.matching.datasets import cps_controls, lalonde  # noqa: E402
from equipoise_matching.shared.pictures import png  # noqa: E402

IMAGE = ROOT / "docs" / "images" / "love-plot-lalonde.png"


def main() -> None:
    """Write the picture, and print the comparison that the README prints."""
    people = pandas.concat([lalonde().query("treat == 1"), cps_controls()], ignore_index=True)
    X = people.drop(columns=["treat", "re78"])
    pairs, weights = (make(people["treat"], X) for make in (optimal_match, entropy_balance))
    comparison = compare_designs([pairs, weights])
    IMAGE.write_bytes(png(comparison.love_plot().to_dict()))
    if shutil.which("pngquant") is not None:
        command = ["pngquant", "--force", "--strip", "--output", str(IMAGE), str(IMAGE)]
        subprocess.run(command, check=True)
    print(comparison)
    print(f"{IMAGE.relative_to(ROOT)}: {IMAGE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
